"""Operations on whole tiles: copy, gemm, fill, clear, reductions, scans and atomic additions."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.builder import current
from tilelab.language.lazy import LazyModule
from tilelab.language.public import public
from tilelab.language.regions import need_tile, pair, region, squeezed, tile_of
from tilelab.language.store import assign
from tilelab.language.values import Element, Slice, Tile, Variable, is_number, is_symbolic, raw

if TYPE_CHECKING:
    from tilelab.ir import build as b
    from tilelab.ir import nodes
    from tilelab.language.parser import expressions
else:
    b = LazyModule("tilelab.ir.build")
    nodes = LazyModule("tilelab.ir.nodes")
    expressions = LazyModule("tilelab.language.parser.expressions")

__all__ = ["GemmWarpPolicy", "atomic_add", "clear", "copy", "cumsum", "fill", "gemm"]


class GemmWarpPolicy(enum.IntEnum):
    """How the warps of a block share a gemm: over rows and columns, over rows only, or over columns only."""

    Square = 0
    FullRow = 1
    FullCol = 2


@public(ignored=("annotations", "loop_layout", "prefer_instruction"))
def copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: Any = None,
    disable_tma: bool = False,
    eviction_policy: Any = None,
    prefer_instruction: Any = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """dst = src for tiles, slices, and elements where a tile begins; one side gives the size."""
    what = "T.copy"
    builder = current(what)
    for side, name in ((src, "source"), (dst, "destination")):
        need_tile(side, f"the {name} of {what}", element=True)
    source, target = pair(src, dst, what)
    if "local" in (tile_of(src).scope(), tile_of(dst).scope()):
        builder.emit(_by_each_thread(source, target))
        return
    builder.emit(
        b.tile(
            "copy",
            source,
            target,
            coalesced_width=coalesced_width,
            disable_tma=disable_tma or None,
            eviction_policy=eviction_policy,
        )
    )


def _by_each_thread(source: Any, target: Any) -> Any:
    """A copy from or to the thread's own array, which each thread does by itself: loops over the elements."""
    wide = [[n for n, r in enumerate(side.region) if b.as_int(r.extent) != 1] for side in (source, target)]
    if len(wide[0]) != len(wide[1]):
        raise TileError("TL201", f"T.copy of {source} to {target}: the extents differ")
    loops = [(b.var(f"i{n}"), target.region[axis].extent) for n, axis in enumerate(wide[1])]
    places = []
    for side, axes in zip((source, target), wide, strict=True):
        where = [r.min for r in side.region]
        for axis, (index, _) in zip(axes, loops, strict=True):
            where[axis] = index if b.as_int(where[axis]) == 0 else where[axis] + index
        places.append(where)
    value = expressions.convert(b.load(source.source, places[0]), nodes.dtype_of(target.source))
    body = b.store(target.source, value, places[1])
    for index, extent in reversed(loops):
        body = b.for_(index, extent, body, b.UNROLLED)
    return body


@public()
def fill(buffer: Any, value: Any, annotations: Any = None) -> None:
    """Every element of the tile = value."""
    if not is_number(value):
        raise TileError("TL201", f"T.fill with a {type(value).__name__}, and a number is needed")
    if isinstance(buffer, Element):
        assign(buffer, value)
        return
    part = need_tile(buffer, "the tile of T.fill")
    current("T.fill").emit(b.tile("fill", region(part), expressions.convert(raw(value), part.dtype)))


@public()
def clear(buffer: Any, annotations: Any = None) -> None:
    """Every element of the tile = 0."""
    fill(buffer, 0)


@public(ignored=("annotations", "k_pack", "wg_wait"))
def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: Any = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    mbar: Any = None,
    annotations: Any = None,
    k_pack: int = 1,
    wg_wait: int = 0,
) -> None:
    """C += op(A) @ op(B) for tiles of two axes; with `clear_accum` C = op(A) @ op(B)."""
    if mbar is not None:
        raise TileError(
            "TL103",
            "T.gemm(mbar=…) is for Blackwell's tcgen05, which this version does not have",
            help="leave mbar out",
        )
    a, c, d = (need_tile(x, f"{name} of T.gemm") for name, x in (("A", A), ("B", B), ("C", C)))
    _check_gemm(a, c, d, bool(transpose_A), bool(transpose_B))
    if is_symbolic(clear_accum):
        raise TileError(
            "TL104",
            f"T.gemm(clear_accum={clear_accum}) is known only when the kernel runs",
            help="call T.clear on the accumulator before the loop",
        )
    chosen = _policy(policy)
    current("T.gemm").emit(
        b.tile(
            "gemm",
            *(region(x) for x in (a, c, d)),
            transpose_A=bool(transpose_A) or None,
            transpose_B=bool(transpose_B) or None,
            policy=None if chosen == "Square" else chosen,
            clear_accum=bool(clear_accum) or None,
        )
    )


def _policy(policy: Any) -> str:
    try:
        return GemmWarpPolicy(policy).name
    except ValueError:
        listed = ", ".join(f"T.GemmWarpPolicy.{p.name}" for p in GemmWarpPolicy)
        raise TileError("TL103", f"T.gemm(policy={policy!r})", help=f"policies: {listed}") from None


def _matrix(part: Any, name: str) -> tuple[Any, Any]:
    shape = tuple(part.shape)
    if len(shape) < 2 or any(is_symbolic(n) or n != 1 for n in shape[:-2]):
        raise TileError("TL201", f"{name} of T.gemm, {part.name}, has shape {shape} and must have two axes")
    return shape[-2], shape[-1]


def _check_gemm(A: Any, B: Any, C: Any, transpose_A: bool, transpose_B: bool) -> None:
    a, c, d = _matrix(A, "A"), _matrix(B, "B"), _matrix(C, "C")
    m, k = a[::-1] if transpose_A else a
    k2, n = c[::-1] if transpose_B else c
    for left, right in ((m, d[0]), (n, d[1]), (k, k2)):
        if not is_symbolic(left) and not is_symbolic(right) and left != right:
            raise TileError(
                "TL201",
                f"T.gemm: {_named(A, a, transpose_A)} @ {_named(B, c, transpose_B)} does not fit "
                f"{C.name} {d[0]}×{d[1]}",
                help=_gemm_help(a, c, d, transpose_A, transpose_B),
            )
    if A.dtype != B.dtype and not (A.dtype.startswith("float8") and B.dtype.startswith("float8")):
        raise TileError(
            "TL201",
            f"T.gemm: {A.name} is {A.dtype} and {B.name} is {B.dtype}",
            help="convert one: T.copy it into a tile of the other's dtype",
        )
    scope = tile_of(C).scope()
    if scope != "local.fragment":
        raise TileError(
            "TL201",
            f"T.gemm: the accumulator {C.name} lives in {scope} and must be a fragment",
            help=f'{C.name} = T.alloc_fragment(({d[0]}, {d[1]}), "float32")',
        )
    for part in (A, B):
        if tile_of(part).scope() == "global":
            raise TileError(
                "TL201",
                f"T.gemm: {part.name} lives in global memory",
                help=f"T.copy it into a tile made by T.alloc_shared({part.shape}, ...) first",
            )


def _named(part: Any, shape: tuple[Any, Any], transposed: bool) -> str:
    return f"{part.name} {shape[0]}×{shape[1]}" + (" transposed" if transposed else "")


def _gemm_help(a: Any, c: Any, d: Any, transpose_A: bool, transpose_B: bool) -> str:
    """A choice of transposes that fits, if there is one, else the rule."""
    for ta in (False, True):
        for tb in (False, True):
            (m, k), (k2, n) = (a[::-1] if ta else a), (c[::-1] if tb else c)
            if (m, n, k) == (d[0], d[1], k2) and (ta, tb) != (transpose_A, transpose_B):
                return f"these shapes fit with transpose_A={ta}, transpose_B={tb}"
    return "op(A) is M×K, op(B) is K×N and C is M×N"


@public()
def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: Any = None) -> None:
    """dst = running sums of src along axis `dim`, from the end with `reverse`; in place without dst."""
    source = need_tile(src, "the source of T.cumsum")
    target = source if dst is None else need_tile(dst, "the destination of T.cumsum")
    axis = axis_of(source, dim, "T.cumsum")
    if squeezed(tuple(source.shape)) != squeezed(tuple(target.shape)):
        raise TileError(
            "TL201", f"T.cumsum: {source.name} is {source.shape} and {target.name} is {target.shape}"
        )
    current("T.cumsum").emit(
        b.tile("cumsum", region(source), region(target), dim=axis, reverse=bool(reverse) or None)
    )


def axis_of(part: Any, dim: Any, what: str) -> int:
    """The axis as a number from zero; TileError when the tile has no such axis."""
    rank = len(part.shape)
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise TileError(
            "TL201",
            f"{what}: {part.name} of shape {tuple(part.shape)} has no axis {dim!r}",
            help=f"axes are 0 to {rank - 1}, or -1 for the last",
        )
    return dim % rank


@public(ignored=("use_tma", "annotations"))
def atomic_add(
    dst: Any,
    value: Any,
    memory_order: Any = None,
    return_prev: bool = False,
    use_tma: bool = False,
    annotations: Any = None,
) -> None:
    """dst += value, each element atomically; value is a number for an element, or a tile for a tile."""
    if return_prev:
        raise TileError(
            "TL103",
            "T.atomic_add(return_prev=True) is not in this version",
            help="leave return_prev out and read the sum in a later kernel",
        )
    builder = current("T.atomic_add")
    target = (
        dst.tile[0]
        if isinstance(dst, Variable)
        else need_tile(dst, "the target of T.atomic_add", element=True)
    )
    if isinstance(value, Tile | Slice):
        source, goal = pair(value, target, "T.atomic_add")
    elif isinstance(target, Element) and is_number(value):
        goal, source = (
            region(target, (1,) * target.tile.ndim),
            expressions.convert(raw(value), target.tile.dtype),
        )
    elif is_number(value):
        raise TileError(
            "TL201",
            f"T.atomic_add of one number to the tile {tile_of(target).name}",
            help="add to an element in a T.Parallel loop",
        )
    else:
        raise TileError("TL201", f"T.atomic_add of a {type(value).__name__}")
    builder.emit(b.tile("atomic_add", goal, source, memory_order=memory_order))
