"""Turn operations on a part of a fragment into nests over the whole fragment, each element under a condition.

Threads find their registers by the layout of the whole fragment, and a nest over all of it says so plainly:
what the part leaves out is skipped by its condition. A reduction of a part along an axis reads a copy in
which the elements left out do not count. Parts that move from fragment to fragment go through a shared tile.
A nest that goes over a part of a fragment itself becomes such a nest, too.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((64,), scope="local.fragment")
    T.fill(F[0:8], T.float32(0))

After:

    F = T.alloc_buffer((64,), scope="local.fragment")
    for i0 in T.parallel(64):
        if i0 < 8:
            F[i0] = T.float32(0)
"""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds
from tilelab.ir.nodes import (
    For,
    ForKind,
    Load,
    PrimFunc,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    dtype_of,
    same_structure,
)
from tilelab.ir.rewrite import collect, rewrite, substitute
from tilelab.ir.scoped import Scope, block_body, map_scoped, with_block_body
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement, seq
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because, slow
from tilelab.passes.nests import Access, Nest, accesses, is_nest, nest_of
from tilelab.passes.reductions import reduction

__all__ = ["is_partial", "lower_parts"]


def is_partial(region: Any) -> bool:
    """Whether the operand is a part of a fragment."""
    if not isinstance(region, Region) or str(region.source.scope()) != "local.fragment":
        return False
    pairs = zip(region.region, region.source.shape, strict=True)
    return not all(b.as_int(r.min) == 0 and b.as_int(r.extent) == b.as_int(n) for r, n in pairs)


class _Nest:
    """A nest over a whole fragment: its variables, and the condition that a point lies in the part."""

    def __init__(self, part: Region) -> None:
        self.part = part
        self.loop_vars = [b.var(f"i{n}") for n in range(len(part.region))]
        conditions = []
        for index, r, extent in zip(self.loop_vars, part.region, part.source.shape, strict=True):
            if b.as_int(r.min) != 0:
                conditions.append(index >= r.min)
            if b.as_int(r.min) != 0 or b.as_int(r.extent) != b.as_int(extent):
                conditions.append(index < r.min + r.extent)
        self.inside = b.all_of(conditions)

    def elsewhere(self, other: Region) -> list[Any]:
        """The indices at which another region holds the point: axes of extent one stay where they are."""
        steps = [
            index if b.as_int(r.min) == 0 else index - r.min
            for index, r in zip(self.loop_vars, self.part.region, strict=True)
            if b.as_int(r.extent) != 1
        ]
        wide = [axis for axis, r in enumerate(other.region) if b.as_int(r.extent) != 1]
        where = [r.min for r in other.region]
        for axis, step in zip(wide, steps, strict=True):
            where[axis] = step if b.as_int(where[axis]) == 0 else where[axis] + step
        return where

    def loops(self, body: Stmt) -> Stmt:
        for loop_var, extent in reversed(list(zip(self.loop_vars, self.part.source.shape, strict=True))):
            body = b.for_(loop_var, extent, body, ForKind.PARALLEL)
        return body

    def guarded(self, body: Stmt) -> Stmt:
        return self.loops(body if self.inside is None else b.if_(self.inside, body))


class _Parts:
    """The rule, and the tiles that it makes."""

    def __init__(self) -> None:
        self.made: list[Stmt] = []
        self.count = 0

    def rule(self, node: Stmt, scope: Scope) -> Stmt | None:
        if is_nest(node):
            new = over_whole_fragments(nest_of(node))
            self.count += new is not node
            return new
        return self._operation(node) if isinstance(node, TileCall) else None

    def _operation(self, call: TileCall) -> Stmt | None:
        if not any(is_partial(a) for a in call.args):
            return None
        name = op_of(call).name
        lower = {
            "copy": self._copy,
            "fill": self._fill,
            "atomic_add": self._atomic,
            "reduce": self._reduce,
        }.get(name)
        if lower is None:
            raise _refusal(call, "works on whole fragments")
        self.count += 1
        return lower(call)

    def _tile(self, name: str, shape: list[Any], dtype: str, scope: str) -> Var:
        buffer = b.buffer(name, shape, dtype, scope)
        self.made.append(b.alloc(buffer))
        return buffer

    def _fill(self, call: TileCall) -> Stmt:
        nest = _Nest(operand(call, "dst"))
        return nest.guarded(b.store(nest.part.source, operand(call, "value"), nest.loop_vars))

    def _copy(self, call: TileCall) -> Stmt:
        src, dst = operand(call, "src"), operand(call, "dst")
        scopes = [str(r.source.scope()) for r in (src, dst)]
        if scopes == ["local.fragment"] * 2:
            slow(
                f"a part moves from {src.source.name} to {dst.source.name} through shared memory: "
                "its elements lie in different threads",
                call.span,
            )
            space = self._tile(
                f"{dst.source.name}_part", [r.extent for r in src.region], dtype_of(src.source), "shared.dyn"
            )
            return seq(self._out(src, b.whole(space)), self._in(b.whole(space), dst))
        return self._out(src, dst) if is_partial(src) else self._in(src, dst)

    def _out(self, src: Region, dst: Region) -> Stmt:
        nest = _Nest(src)
        return nest.guarded(b.store(dst.source, b.load(src.source, nest.loop_vars), nest.elsewhere(dst)))

    def _in(self, src: Region, dst: Region) -> Stmt:
        nest = _Nest(dst)
        return nest.guarded(b.store(dst.source, b.load(src.source, nest.elsewhere(src)), nest.loop_vars))

    def _atomic(self, call: TileCall) -> Stmt:
        dst, nest = operand(call, "dst"), _Nest(operand(call, "value"))
        value = b.cast(dtype_of(dst.source), b.load(nest.part.source, nest.loop_vars))
        element = b.region(dst.source, [(w, 1) for w in nest.elsewhere(dst)])
        return nest.guarded(b.tile("atomic_add", element, value, **b.plain(call.config)))

    def _reduce(self, call: TileCall) -> Stmt:
        src, dst = operand(call, "src"), operand(call, "dst")
        config = b.plain(call.config)
        axis = int(config["dim"]) % len(src.region)
        others = [r for n, r in enumerate(src.region) if n != axis]
        sizes = [n for m, n in enumerate(src.source.shape) if m != axis]
        if is_partial(dst) or any(
            b.as_int(r.extent) != b.as_int(n) for r, n in zip(others, sizes, strict=True)
        ):
            raise _refusal(call, "takes a part of a fragment along the reduced axis only")
        nest = _Nest(src)
        space = self._tile(
            f"{src.source.name}_part", list(src.source.shape), dtype_of(src.source), "local.fragment"
        )
        neutral = reduction(str(config["kind"])).identity(dtype_of(src.source))
        kept = b.select(
            nest.inside, b.load(src.source, nest.loop_vars), b.as_expr(neutral, dtype_of(src.source))
        )
        return seq(nest.loops(b.store(space, kept, nest.loop_vars)), b.tile_with(call, b.whole(space), dst))


def over_whole_fragments(nest: Nest) -> Stmt:
    """The nest with loops that cover a part of a fragment's axis widened to the axis, under a condition."""
    spans = _axes_covered(nest)
    wide = [
        (v, *found)
        for v, found in spans.items()
        if not _is_all(*found, nest.extents[nest.loop_vars.index(v)])
    ]
    if not wide:
        return nest.loop
    fresh = {v: b.var(str(v.name)) for v, *_ in wide}

    def indices(buffer: Var, old: Any) -> list[Any] | None:
        if str(buffer.scope()) != "local.fragment":
            return None
        return [next((fresh[v] for v in fresh if b.moves_by_one(i, v)), i) for i in old]

    def load(node: Load) -> Any:
        where = indices(node.source, node.indices)
        return None if where is None else b.load(node.source, where)

    def store(node: Store) -> Any:
        where = indices(node.buffer, node.indices)
        return None if where is None else b.store(node.buffer, node.value, where)

    body = rewrite(nest.body, (Load, load), (Store, store))
    conditions, moved, extents = [], {}, dict(zip(nest.loop_vars, nest.extents, strict=True))
    for v, offset, full in wide:
        conditions += [] if b.as_int(offset) == 0 else [fresh[v] >= offset]
        conditions.append(fresh[v] < offset + extents[v])
        moved[v] = fresh[v] if b.as_int(offset) == 0 else fresh[v] - offset
        extents[v] = full
    body = b.if_(b.all_of(conditions), substitute(body, moved))
    for v in reversed(nest.loop_vars):
        body = b.for_(fresh.get(v, v), extents[v], body, ForKind.PARALLEL)
    return body


def _is_all(offset: Any, full: int, extent: int) -> bool:
    return b.as_int(offset) == 0 and full == extent


def _axes_covered(nest: Nest) -> dict[Var, tuple[Any, int]]:
    """For each loop variable along a fragment's axis: where on the axis it begins, and the axis's extent."""
    found: dict[Var, tuple[Any, int]] = {}
    names: dict[Var, Access] = {}
    for access in accesses(nest.body):
        if str(access.buffer.scope()) != "local.fragment":
            continue
        for index, size in zip(access.indices, access.buffer.shape, strict=True):
            v = next((v for v in nest.loop_vars if b.moves_by_one(index, v)), None)
            if v is None:
                continue
            offset = Bounds().simplify(index - v)
            if _changes_inside(offset, nest):
                continue
            here = (offset, b.as_int(size) or 1)
            if v in found and not (same_structure(found[v][0], offset) and found[v][1] == here[1]):
                raise _two_parts(v, names[v], access)
            found[v], names[v] = here, access
    return found


def _changes_inside(offset: Any, nest: Nest) -> bool:
    inner = [s.loop_var for s in each_statement(nest.body) if isinstance(s, For)]
    return bool(collect(offset, Load)) or any(
        v.same_as(x) for v in collect(offset, Var) for x in (*nest.loop_vars, *inner)
    )


def _two_parts(v: Var, one: Access, two: Access) -> TileError:
    texts = [f"{a.buffer.name}[{', '.join(map(str, a.indices))}]" for a in (one, two)]
    shapes = [" x ".join(map(str, a.buffer.shape)) for a in (one, two)]
    where = place_of(two.node.span)
    return TileError(
        "TL205",
        f"{v.name} goes over different parts of two fragments: "
        f"{texts[0]} of {shapes[0]} and {texts[1]} of {shapes[1]}",
        places=(where,) if where else (),
        help="T.copy one of the parts into a fragment that has its size, and use that in the loop",
    )


def _refusal(call: TileCall, what: str) -> TileError:
    part = next(a for a in call.args if is_partial(a))
    shown = ", ".join(f"{r.min}:{r.min + r.extent}" for r in part.region)
    whole = " x ".join(map(str, part.source.shape))
    where = place_of(call.span)
    return TileError(
        "TL201",
        f"T.{op_of(call).name} {what}; {part.source.name}[{shown}] is a part of the {whole} fragment "
        f"{part.source.name}",
        places=(where,) if where else (),
        help="T.copy the part into a fragment of its own, or keep it in a T.alloc_shared tile",
    )


def run(f: PrimFunc) -> PrimFunc:
    parts = _Parts()
    new = map_scoped(f, parts.rule)
    if not parts.count:
        because("every operation takes whole fragments")
        return f
    return with_block_body(new, seq(*parts.made, block_body(new))) if parts.made else new


lower_parts = Pass("lower_parts", run, needs="tile", gives="tile")
