"""What the names of a kernel stand for while it is read: scalars, tiles, elements and parts of tiles.

They overload Python's operators and build expressions of the IR; statements that read or write them go to the
builder in force.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.dtypes import dtype
from tilelab.language.lazy import LazyModule

if TYPE_CHECKING:
    from tilelab.ir import build as b
    from tilelab.ir import nodes
    from tilelab.ir import text as ir_text
    from tilelab.language import store
    from tilelab.language.parser import expressions
else:
    b = LazyModule("tilelab.ir.build")
    nodes = LazyModule("tilelab.ir.nodes")
    ir_text = LazyModule("tilelab.ir.text")
    expressions = LazyModule("tilelab.language.parser.expressions")
    store = LazyModule("tilelab.language.store")
from tilelab.language.scalars import (
    Part,
    Scalar,
    binary,
    convert,
    is_number,
    is_symbolic,
    raw,
    simplified,
    wrap,
)

__all__ = [
    "Element",
    "Scalar",
    "Slice",
    "Tile",
    "Variable",
    "binary",
    "convert",
    "is_number",
    "is_symbolic",
    "raw",
    "simplified",
    "wrap",
]


class Tile(Part):
    """A buffer: a tensor argument, an output, or a tile on the chip. Indexing gives an element or a part."""

    def __init__(self, var: Any, origin: Any = None) -> None:
        self.var = var
        self.name = str(var.name)
        self.shape = tuple(wrap(n) for n in var.shape)
        self.dtype = dtype(nodes.dtype_of(var))
        self.origin = origin

    def scope(self) -> str:
        """Where the buffer lives: global, shared.dyn, local.fragment, local or local.var."""
        return str(self.var.scope())

    @property
    def strides(self) -> tuple[Any, ...]:
        """Elements between neighbours along each axis."""
        if len(self.var.strides):
            return tuple(wrap(n) for n in self.var.strides)
        out: list[Any] = []
        step: Any = 1
        for n in reversed(self.shape):
            out.insert(0, step)
            step = step * n
        return tuple(out)

    def numel(self) -> Any:
        """Number of elements."""
        total: Any = 1
        for n in self.shape:
            total = total * n
        return total

    def __len__(self) -> int:
        return operator.index(self.shape[0])

    def __getitem__(self, index: Any) -> Element | Slice:
        entries = self._entries(index)
        if len(entries) == self.ndim and not any(isinstance(e, slice) for e in entries):
            return Element(self, tuple(self._position(e, axis) for axis, e in enumerate(entries)))
        return Slice(self, tuple(self._range(e, axis) for axis, e in enumerate(entries)))

    def __setitem__(self, index: Any, value: Any) -> None:
        store.assign(self[index], value)

    def _entries(self, index: Any) -> list[Any]:
        entries = list(index) if isinstance(index, tuple | list) else [index]
        dots = [i for i, e in enumerate(entries) if e is Ellipsis]
        if len(dots) > 1:
            raise TileError("TL107", f"{self.name} is indexed with more than one `...`")
        missing = self.ndim - (len(entries) - len(dots))
        if missing < 0:
            raise TileError(
                "TL107", f"{self.name} has {self.ndim} axes {self.shape} and is indexed with {len(entries)}"
            )
        at = dots[0] if dots else len(entries)
        return entries[:at] + [slice(None)] * missing + entries[at + len(dots) :]

    def _position(self, entry: Any, axis: int) -> Any:
        if isinstance(entry, bool) or not isinstance(entry, int | Scalar):
            raise TileError(
                "TL107",
                f"axis {axis} of {self.name} is indexed with {_describe(entry)}, which is no index",
                help="an index is a whole number, a loop variable, an expression of those, or a slice",
            )
        if isinstance(entry, Scalar):
            if entry.dtype.is_float or entry.dtype == "bool":
                raise TileError(
                    "TL107",
                    f"axis {axis} of {self.name} is indexed with {entry}, a {entry.dtype}",
                    help=f'convert it: T.cast({entry}, "int32")',
                )
            return entry
        extent = self.shape[axis]
        if entry < 0 and not (isinstance(extent, int) and self.scope() == "global" and extent == 0):
            entry = extent + entry
        if (
            isinstance(entry, int)
            and isinstance(extent, int)
            and self.scope() != "global"
            and not (0 <= entry < extent)
        ):
            raise TileError(
                "TL107", f"index {entry} is outside axis {axis} of {self.name}, which has {extent}"
            )
        return entry

    def _range(self, entry: Any, axis: int) -> tuple[Any, Any]:
        if not isinstance(entry, slice):
            return self._position(entry, axis), 1
        if entry.step not in (None, 1):
            raise TileError(
                "TL107",
                f"axis {axis} of {self.name} is sliced with step {entry.step}",
                help="only slices of neighbouring elements can be tiles",
            )
        first = 0 if entry.start is None else self._bound(entry.start, axis)
        stop = self.shape[axis] if entry.stop is None else self._bound(entry.stop, axis)
        extent = simplified(stop - first)
        if isinstance(extent, int) and extent < 0:
            raise TileError("TL107", f"the slice {first}:{stop} of axis {axis} of {self.name} is empty")
        return first, extent

    def _bound(self, entry: Any, axis: int) -> Any:
        if isinstance(entry, bool) or not isinstance(entry, int | Scalar):
            raise TileError("TL107", f"axis {axis} of {self.name} is sliced with {_describe(entry)}")
        return self.shape[axis] + entry if isinstance(entry, int) and entry < 0 else entry


def _describe(entry: Any) -> str:
    if isinstance(entry, Part):
        return f"the tile {entry.name}"
    return f"{entry!r} ({type(entry).__name__})"


class Slice(Part):
    """A rectangular part of a tile: (first index, extent) for each axis, in elements."""

    def __init__(self, tile: Tile, ranges: tuple[tuple[Any, Any], ...]) -> None:
        self.tile = tile
        self.ranges = ranges
        self.name = tile.name
        self.dtype = tile.dtype
        self.shape = tuple(extent for _, extent in ranges)

    def __getitem__(self, index: Any) -> Any:
        raise TileError(
            "TL107", f"a part of {self.name} is indexed again", help=f"index once: {self.name}[i, j:j + n]"
        )


class Element(Scalar):
    """One element of a tile: its value in arithmetic, its place in T.copy and T.atomic_add."""

    def __init__(self, tile: Tile, indices: tuple[Any, ...]) -> None:
        self.tile = tile
        self.indices = indices

    @property
    def expr(self) -> Any:
        """The load of the element."""
        return b.load(self.tile.var, [raw(i) for i in self.indices])

    def __getitem__(self, index: Any) -> Any:
        raise TileError("TL107", f"an element of {self.tile.name} is indexed again")


class Variable(Element):
    """A mutable scalar made by T.alloc_var: assignment to its name stores a new value."""

    def __init__(self, tile: Tile) -> None:
        super().__init__(tile, (0,))

    @property
    def name(self) -> str:
        """The variable's name in the IR."""
        return self.tile.name

    def __getitem__(self, index: Any) -> Any:
        return self.tile[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tile[index] = value
