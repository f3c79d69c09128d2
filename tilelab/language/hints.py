"""Wishes about how the kernel is compiled, and statements that help to find mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.builder import current
from tilelab.language.lazy import LazyModule
from tilelab.language.public import note, public
from tilelab.language.regions import region
from tilelab.language.values import Slice, Tile, is_number, is_symbolic, raw

if TYPE_CHECKING:
    from tilelab.ir import build as b
    from tilelab.language.parser import expressions
else:
    b = LazyModule("tilelab.ir.build")
    expressions = LazyModule("tilelab.language.parser.expressions")

__all__ = ["annotate_layout", "assume", "device_assert", "print", "sync_threads", "use_swizzle"]


@public()
def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Walk the grid in panels of `panel_size` rows or columns, so that neighbouring blocks share data in
    the L2."""
    if isinstance(panel_size, bool) or not isinstance(panel_size, int) or panel_size < 1:
        raise TileError(
            "TL103", f"T.use_swizzle(panel_size={panel_size!r}): a positive whole number is needed"
        )
    orders = {"row": "row", "column": "col", "col": "col"}
    if order not in orders:
        raise TileError("TL103", f"T.use_swizzle(order={order!r})", help='orders: "row", "column"')
    if enable:
        current("T.use_swizzle").attrs["swizzle"] = f"{orders[order]}:{panel_size}"


@public()
def annotate_layout(layout_map: dict[Any, Any]) -> None:
    """Fix the layouts of tiles: a dict from tile to a layout of `tilelab.layout`, or its text."""
    builder = current("T.annotate_layout")
    if not isinstance(layout_map, dict):
        raise TileError("TL103", "T.annotate_layout takes a dict from tile to layout")
    for tile, layout in layout_map.items():
        if not isinstance(tile, Tile) or tile.scope() not in ("shared.dyn", "local.fragment"):
            raise TileError(
                "TL103", f"T.annotate_layout: {tile!r} is no tile made by T.alloc_shared or T.alloc_fragment"
            )
        builder.layouts.append((tile.var, str(layout)))


@public()
def sync_threads(barrier_id: Any = None, arrive_count: Any = None) -> None:
    """All threads of the block wait for one another."""
    current("T.sync_threads").emit(
        b.tile("barrier", id=barrier_id, threads=arrive_count, why="T.sync_threads")
    )


@public(ignored=("warp_group_id", "warp_id"))
def print(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Print a number or a tile from one thread while the kernel runs."""
    builder = current("T.print")
    if isinstance(obj, str) and not msg:
        obj, msg = None, obj
    if isinstance(obj, Tile | Slice):
        value = region(obj)
    elif obj is None or is_number(obj):
        value = expressions.to_expr(raw(0 if obj is None else obj))
    else:
        raise TileError(
            "TL103", f"T.print of a {type(obj).__name__}", help="it prints numbers, tiles and text"
        )
    builder.emit(b.tile("print", value, message=msg))


@public()
def device_assert(condition: Any, msg: str = "") -> None:
    """Print the message from each thread for which the condition does not hold."""
    builder = current("T.device_assert")
    if not is_symbolic(condition):
        if not condition:
            raise TileError("TL110", msg or "an assertion does not hold")
        return
    failed = expressions.logical("not", raw(condition))
    text = f"assertion failed: {msg or condition}"
    builder.emit(b.if_(failed, b.tile("print", expressions.to_expr(raw(condition)), message=text)))


@public()
def assume(cond: Any = None) -> None:
    """State a fact about sizes that the compiler may rely on."""
    if isinstance(cond, bool) and not cond:
        raise TileError("TL110", "T.assume of something that does not hold")
    if is_symbolic(cond):
        note(f"T.assume({cond})")
