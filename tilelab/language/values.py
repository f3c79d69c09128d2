"""What the names of a kernel stand for while it is read: scalars, tiles, elements and parts of tiles.

They overload Python's operators and build expressions of the IR; statements that read or write them go to the
builder in force.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
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

__all__ = [
    "Element",
    "Scalar",
    "Slice",
    "Tile",
    "Variable",
    "convert",
    "is_number",
    "is_symbolic",
    "raw",
    "simplified",
    "wrap",
]


def is_symbolic(value: Any) -> bool:
    """Whether the value is known only when the kernel runs."""
    return isinstance(value, Scalar)


def is_number(value: Any) -> bool:
    """Whether the value can be an operand of arithmetic."""
    return isinstance(value, Scalar | bool | int | float)


def raw(value: Any) -> Any:
    """The IR expression of a scalar; other values as they are."""
    return value.expr if isinstance(value, Scalar) else value


def wrap(expr: Any) -> Any:
    """A value of the language for an IR expression: whole numbers and booleans that are known become
    Python's."""
    if isinstance(expr, nodes.IntImm):
        if (kind := nodes.dtype_of(expr)) == "int32":
            return int(expr.value)
        if kind == "bool":
            return bool(expr.value)
    return Scalar(expr)


def simplified(value: Any) -> Any:
    """The number with its expression simplified; a Python int when it is known."""
    return wrap(expressions.simplify(value.expr)) if isinstance(value, Scalar) else value


def convert(value: Any, kind: str) -> Any:
    """The number or scalar converted to the dtype."""
    if isinstance(value, Tile | Slice):
        raise TileError(
            "TL109",
            f"{value.name} is a whole tile and cannot be converted at once",
            help="convert its elements in a T.Parallel loop, or T.copy it into a tile of the other dtype",
        )
    return Scalar(expressions.convert(raw(value), dtype(kind)))


def binary(op: str, left: Any, right: Any) -> Any:
    """`left op right`, built as IR."""
    for side in (left, right):
        if isinstance(side, Tile | Slice):
            raise _whole_tile(side, op)
    if not (is_number(left) and is_number(right)):
        return NotImplemented
    return wrap(expressions.binary(op, raw(left), raw(right)))


def _whole_tile(side: Any, op: str) -> TileError:
    return TileError(
        "TL109",
        f"{op} of the whole tile {side.name} {tuple(side.shape)}: operators work on elements",
        help=f"write a loop: for i, j in T.Parallel(...): … {side.name}[i, j] …",
    )


class Scalar:
    """A number that is known only when the kernel runs: an expression of the IR."""

    def __init__(self, expr: Any) -> None:
        self._expr = expr

    @property
    def expr(self) -> Any:
        """The IR expression."""
        return self._expr

    @property
    def dtype(self) -> dtype:
        """The dtype of the number."""
        return dtype(nodes.dtype_of(self.expr))

    def astype(self, kind: str) -> Scalar:
        """The number converted to the dtype."""
        return convert(self, kind)

    def _known(self, python: Callable[[Any], Any], what: str) -> Any:
        if isinstance(self.expr, nodes.IntImm | nodes.FloatImm):
            return python(self.expr.value)
        raise TileError(
            "TL104",
            f"{self} is known only when the kernel runs, and Python needs {what} here",
            help="use T.if_then_else, or an `if` or `for` statement, which become part of the kernel",
        )

    def __bool__(self) -> bool:
        return self._known(bool, "True or False")

    def __int__(self) -> int:
        return self._known(int, "a whole number")

    __index__ = __int__

    def __float__(self) -> float:
        return self._known(float, "a number")

    def __iter__(self) -> Iterator[Any]:
        raise TileError("TL107", f"{self} is a number, and Python wants to go through its items")

    def __str__(self) -> str:
        return ir_text.print_node(self.expr).splitlines()[-1]

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Any:
        return wrap(expressions.negate(self.expr))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return wrap(expressions.intrinsic("abs", self.expr, floats=False))

    def __invert__(self) -> Any:
        if self.dtype == "bool":
            return wrap(expressions.logical("not", self.expr))
        return wrap(expressions.intrinsic("bitwise_not", self.expr, floats=False))


_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _forward(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: binary(op, self, other)


def _backward(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: binary(op, other, self)


def _refused(op: str) -> Callable[[Any, Any], Any]:
    def refuse(self: Any, other: Any) -> Any:
        raise _whole_tile(self, op)

    return refuse


class _Part:
    """What tiles and parts of tiles share."""

    name: str
    shape: tuple[Any, ...]
    dtype: dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __iter__(self) -> Iterator[Any]:
        raise TileError(
            "TL107",
            f"{self.name} is a tile, and Python wants to go through its items",
            help="loop over indices: for i in T.serial(...)",
        )

    def __repr__(self) -> str:
        return self.name


for _name, _op in _OPERATORS.items():
    setattr(Scalar, f"__{_name}__", _forward(_op))
    setattr(Scalar, f"__r{_name}__", _backward(_op))
    for _kind in ("", "r", "i"):
        setattr(_Part, f"__{_kind}{_name}__", _refused(_op))
for _name, _op in _COMPARISONS.items():
    setattr(Scalar, f"__{_name}__", _forward(_op))
    if _op not in ("==", "!="):
        setattr(_Part, f"__{_name}__", _refused(_op))


class Tile(_Part):
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
    if isinstance(entry, _Part):
        return f"the tile {entry.name}"
    return f"{entry!r} ({type(entry).__name__})"


class Slice(_Part):
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
