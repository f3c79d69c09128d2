"""Numbers of a kernel that are known only when it runs: Python's operators build expressions of the IR."""

from __future__ import annotations

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
    "Part",
    "Scalar",
    "binary",
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
    if isinstance(value, Part):
        raise TileError(
            "TL109",
            f"{value.name} is a whole tile and cannot be converted at once",
            help="convert its elements in a T.Parallel loop, or T.copy it into a tile of the other dtype",
        )
    return Scalar(expressions.convert(raw(value), dtype(kind)))


def binary(op: str, left: Any, right: Any) -> Any:
    """`left op right`, built as IR."""
    for side in (left, right):
        if isinstance(side, Part):
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
        if self.dtype.is_float:
            raise TileError(
                "TL109",
                f"~ works on integers and booleans, and its operand is {self.dtype}",
                help='T.reinterpret(x, "uint32") gives the bits of a float32; `not x` is its truth',
            )
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


class Part:
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

    def __bool__(self) -> bool:
        raise TileError(
            "TL107",
            f"{self.name} is a whole tile {tuple(self.shape)}, and a condition needs one value",
            help=f"compare an element: {self.name}[{', '.join('ijkl'[: self.ndim])}] > 0",
        )

    def __invert__(self) -> Any:
        raise _whole_tile(self, "~")

    def __neg__(self) -> Any:
        raise _whole_tile(self, "-")

    def __pos__(self) -> Any:
        raise _whole_tile(self, "+")

    def __repr__(self) -> str:
        return self.name


for _name, _op in _OPERATORS.items():
    setattr(Scalar, f"__{_name}__", _forward(_op))
    setattr(Scalar, f"__r{_name}__", _backward(_op))
    for _kind in ("", "r", "i"):
        setattr(Part, f"__{_kind}{_name}__", _refused(_op))
for _name, _op in _COMPARISONS.items():
    setattr(Scalar, f"__{_name}__", _forward(_op))
    if _op not in ("==", "!="):
        setattr(Part, f"__{_name}__", _refused(_op))
