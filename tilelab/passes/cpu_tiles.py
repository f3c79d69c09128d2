"""What the CPU passes share: the chip's vectors, regions as arrays, and which axes are contiguous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilelab.errors import TileError
from tilelab.hardware import chip
from tilelab.hardware.model import Chip, bits
from tilelab.ir import build as b
from tilelab.ir.host import host_cpu
from tilelab.ir.nodes import AllocBuffer, Expr, PrimFunc, Region, Stmt, Var
from tilelab.ir.statements import each_statement
from tilelab.layout import Layout, parse

__all__ = ["Tile", "contiguous", "cpu_chip", "lanes_of", "layouts_of", "paired", "scalar_nest", "tile_of"]


def cpu_chip(f: PrimFunc) -> Chip:
    """The CPU that the function is compiled for: the attribute `tl.cpu`, else this machine's."""
    named = f.attrs.get("tl.cpu", None)
    return chip(str(named) if named is not None else host_cpu().arch)


def lanes_of(cpu: Chip, *dtypes: str) -> int:
    """Elements of the widest dtype in one vector register."""
    return max(1, cpu.vector_bits // max(bits(dtype) for dtype in dtypes))


@dataclass(frozen=True)
class Tile:
    """A region seen as an array: its axes are those of the buffer whose extent is not 1."""

    buffer: Var
    lows: tuple[Any, ...]
    extents: tuple[Any, ...]
    axes: tuple[int, ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.extents[axis] for axis in self.axes)

    @property
    def inside(self) -> bool:
        """Whether the region surely lies inside its buffer: only tensors have ragged edges."""
        return str(self.buffer.scope()) != "global"

    def at(self, coordinates: Sequence[Any]) -> list[Any]:
        """The buffer's indices of an element of the array."""
        indices = list(self.lows)
        for axis, coordinate in zip(self.axes, coordinates, strict=True):
            low = b.as_int(self.lows[axis])
            indices[axis] = coordinate if low == 0 else self.lows[axis] + coordinate
        return indices

    def load(self, coordinates: Sequence[Any]) -> Expr:
        """The element at these coordinates."""
        return b.load(self.buffer, self.at(coordinates))

    def store(self, value: Any, coordinates: Sequence[Any]) -> Stmt:
        """Write the element, converted to the buffer's dtype."""
        return b.store(self.buffer, value, self.at(coordinates))

    def with_axes(self, axes: Sequence[int]) -> Tile:
        """The same region with these of the buffer's axes, in this order."""
        return replace(self, axes=tuple(axes))


def tile_of(region: Region) -> Tile:
    """A region as an array; extents that are known become ints."""
    lows = tuple(r.min for r in region.region)
    extents = tuple(r.extent if b.as_int(r.extent) is None else b.as_int(r.extent) for r in region.region)
    return Tile(region.source, lows, extents, tuple(i for i, n in enumerate(extents) if n != 1))


def paired(*regions: Region) -> list[Tile]:
    """Regions of one shape, extents of 1 apart, as arrays of equal rank. Raises TL201 if shapes differ."""
    tiles = [tile_of(region) for region in regions]
    first = tiles[0]
    for other in tiles[1:]:
        known = [(b.as_int(x), b.as_int(y)) for x, y in zip(first.shape, other.shape, strict=False)]
        if len(first.axes) != len(other.axes) or any(x != y for x, y in known if None not in (x, y)):
            shapes = [f"{tile.buffer.name} {list(tile.shape)}" for tile in (first, other)]
            raise TileError("TL201", f"the shapes of {shapes[0]} and {shapes[1]} differ")
    return tiles


def layouts_of(f: PrimFunc) -> dict[Var, Layout]:
    """The layout of each allocated buffer that has a plain one."""
    found: dict[Var, Layout] = {}
    for node in each_statement(f.body):
        if isinstance(node, AllocBuffer):
            text = b.plain(node.annotations).get("tl.layout")
            layout = parse(text) if text else None
            if isinstance(layout, Layout):
                found[node.buffer] = layout
    return found


def contiguous(buffer: Var, axis: int, layouts: dict[Var, Layout]) -> int:
    """How many elements along `axis` lie side by side; 0: neighbors are apart, -1: no limit."""
    layout = layouts.get(buffer)
    if layout is not None:
        size, stride = layout.digits(axis)[0]
        return (size if size < layout[axis].size else -1) if stride == 1 else 0
    strides = list(getattr(buffer, "strides", None) or ())
    if strides:
        return -1 if b.as_int(strides[axis]) == 1 else 0
    return -1 if axis == len(buffer.shape) - 1 else 0


def scalar_nest(shape: Sequence[Any], body: Any, kind: Any = b.SERIAL) -> Stmt:
    """Loops over `shape`, the last axis innermost, around `body(coordinates)`."""
    loops = [b.var(name) for name in _names(len(shape))]
    inner = body(loops)
    for variable, extent in reversed(list(zip(loops, shape, strict=True))):
        inner = b.for_(variable, extent, inner, kind=kind)
    return inner


def _names(count: int) -> list[str]:
    return list("ijklmn"[:count]) if count <= 6 else [f"i{axis}" for axis in range(count)]


def element_nest(tile: Tile, body: Any, lanes: int, layouts: dict[Var, Layout]) -> Stmt:
    """Loops over a tile's elements around `body(coordinates)`, vectors along a contiguous axis that fits.

    Only for bodies whose accesses are all to elements at those coordinates, or the same for all of them.
    """
    if not tile.axes:
        return body([])
    axis = len(tile.axes) - 1
    extent, run = b.as_int(tile.shape[axis]), contiguous(tile.buffer, tile.axes[axis], layouts)
    width = lanes if tile.inside and run else 1
    while extent is not None and width > 1 and (extent % width or (run > 0 and run % width)):
        width //= 2
    if width == 1 or extent is None:
        return scalar_nest(tile.shape, body)

    def vector(loops: list[Var]) -> Stmt:
        v = b.var("v")
        last = v if extent == width else loops[-1] * width + v
        return b.for_(v, width, body([*loops[: len(tile.axes) - 1], last]), kind=b.VECTORIZED)

    return scalar_nest([*tile.shape[:-1], *([] if extent == width else [extent // width])], vector)
