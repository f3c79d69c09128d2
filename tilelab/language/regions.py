"""Operands of tile operations as regions: whole tiles, slices, and elements whose extents the other side
gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.lazy import LazyModule
from tilelab.language.values import Element, Scalar, Slice, Tile, Variable, is_symbolic, raw

if TYPE_CHECKING:
    from tilelab.ir import build as b
else:
    b = LazyModule("tilelab.ir.build")

__all__ = ["explicit_shape", "need_tile", "pair", "region", "squeezed", "tile_of"]


def tile_of(value: Any) -> Tile:
    """The tile that an operand belongs to."""
    return value if isinstance(value, Tile) else value.tile


def need_tile(value: Any, what: str, *, element: bool = False) -> Any:
    """The operand itself when it is a tile or a part of one; TileError otherwise."""
    allowed = (Tile, Slice, Element) if element else (Tile, Slice, Variable)
    if isinstance(value, allowed):
        return value.tile if isinstance(value, Variable) else value
    if isinstance(value, Element):
        raise TileError(
            "TL107",
            f"{what} is the single element {value}",
            help=f"give the whole tile {value.tile.name} or a slice of it",
        )
    kind = f"the number {value}" if isinstance(value, Scalar | int | float) else f"a {type(value).__name__}"
    raise TileError(
        "TL201", f"{what} is {kind}, and a tile is needed", help="give a tensor, or a tile made by T.alloc_…"
    )


def explicit_shape(value: Any) -> tuple[Any, ...] | None:
    """The extents that an operand states itself; None for an element, which states only where it begins."""
    return None if isinstance(value, Element) else tuple(value.shape)


def squeezed(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape without its axes of extent one."""
    return tuple(n for n in shape if not (isinstance(n, int) and n == 1))


def region(value: Any, extents: tuple[Any, ...] | None = None) -> Any:
    """The operand as an IR region; `extents` are those of an element's region."""
    if isinstance(value, Tile):
        return b.whole(value.var)
    if isinstance(value, Slice):
        return b.region(value.tile.var, [(raw(lo), raw(n)) for lo, n in value.ranges])
    sizes = _aligned(value, extents or ())
    return b.region(value.tile.var, [(raw(lo), raw(n)) for lo, n in zip(value.indices, sizes, strict=True)])


def _aligned(base: Element, extents: tuple[Any, ...]) -> tuple[Any, ...]:
    """Extents for each axis of the base's tile: aligned at the last axis, ones in front."""
    rank = base.tile.ndim
    while len(extents) > rank and isinstance(extents[0], int) and extents[0] == 1:
        extents = extents[1:]
    if len(extents) > rank:
        raise TileError(
            "TL201",
            f"a tile of shape {extents} does not fit in {base.tile.name}, which has {rank} axes "
            f"{base.tile.shape}",
        )
    return (1,) * (rank - len(extents)) + tuple(extents)


def same_extents(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether two shapes hold the same tile: equal apart from axes of one; unknown extents may be equal."""
    a, c = squeezed(left), squeezed(right)
    if len(a) != len(c):
        return False
    return all(is_symbolic(m) or is_symbolic(n) or m == n for m, n in zip(a, c, strict=True))


def pair(src: Any, dst: Any, what: str) -> tuple[Any, Any]:
    """Source and destination of a copy as regions; an element takes its extents from the other side."""
    src_shape, dst_shape = explicit_shape(src), explicit_shape(dst)
    if src_shape is not None and dst_shape is not None and not same_extents(src_shape, dst_shape):
        raise TileError(
            "TL201",
            f"{what} of {tile_of(src).name} {_text(src_shape)} to {tile_of(dst).name} {_text(dst_shape)}: "
            "the extents differ",
            help="make both sides the same size, or give one side as an element where the tile begins",
        )
    known = src_shape or dst_shape or (1,)
    return region(src, known), region(dst, known)


def _text(shape: tuple[Any, ...]) -> str:
    return " × ".join(str(n) for n in shape)
