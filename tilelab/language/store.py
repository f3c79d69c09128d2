"""Assignment to elements, variables and parts of tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.builder import current
from tilelab.language.lazy import LazyModule
from tilelab.language.regions import pair, region
from tilelab.language.values import Element, Slice, Tile, is_number, raw

if TYPE_CHECKING:
    from tilelab.ir import build as b
    from tilelab.language.parser import expressions
else:
    b = LazyModule("tilelab.ir.build")
    expressions = LazyModule("tilelab.language.parser.expressions")

__all__ = ["assign"]


def assign(target: Element | Slice | Tile, value: Any) -> None:
    """target = value: a store, a fill of a part by a number, or a copy of a tile into a part."""
    builder = current("an assignment to a tile")
    if isinstance(target, Element):
        if not is_number(value):
            raise TileError(
                "TL107",
                f"{target} is one element and is given {_kind(value)}",
                help="index the right side too, or T.copy whole tiles",
            )
        converted = (
            expressions.convert(raw(value), target.dtype)
            if not isinstance(value, float | int)
            else (expressions.constant(value, target.dtype))
        )
        builder.emit(b.store(target.tile.var, converted, [raw(i) for i in target.indices]))
    elif is_number(value):
        builder.emit(b.tile("fill", region(target), expressions.convert(raw(value), target.dtype)))
    elif isinstance(value, Tile | Slice):
        builder.emit(b.tile("copy", *pair(value, target, "assignment")))
    else:
        raise TileError("TL107", f"{target.name} is given {_kind(value)}", help="assign a number or a tile")


def _kind(value: Any) -> str:
    return f"the tile {value.name}" if isinstance(value, Tile | Slice) else f"a {type(value).__name__}"
