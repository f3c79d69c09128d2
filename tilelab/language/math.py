"""Arithmetic of the language: functions of numbers that are known when the kernel is read, or only when it
runs."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.dtypes import dtype as dtype_type
from tilelab.language.lazy import LazyModule
from tilelab.language.public import public
from tilelab.language.values import Scalar, Slice, Tile, binary, is_number, is_symbolic, raw, wrap
from tilelab.language.values import convert as convert_value

if TYPE_CHECKING:
    from tilelab.language.parser import expressions
else:
    expressions = LazyModule("tilelab.language.parser.expressions")

UNARY: dict[str, Callable[[float], float]] = {
    "exp": python_math.exp, "exp2": lambda x: 2.0**x, "exp10": lambda x: 10.0**x, "log": python_math.log,
    "log2": python_math.log2, "log10": python_math.log10, "log1p": python_math.log1p,
    "sqrt": python_math.sqrt, "rsqrt": lambda x: 1.0 / python_math.sqrt(x), "sin": python_math.sin,
    "cos": python_math.cos, "tan": python_math.tan, "tanh": python_math.tanh, "sinh": python_math.sinh,
    "cosh": python_math.cosh, "asin": python_math.asin, "acos": python_math.acos, "atan": python_math.atan,
    "erf": python_math.erf, "sigmoid": lambda x: 1.0 / (1.0 + python_math.exp(-x)),
    "floor": lambda x: float(python_math.floor(x)), "ceil": lambda x: float(python_math.ceil(x)),
    "trunc": lambda x: float(python_math.trunc(x)), "round": lambda x: float(round(x)),
}  # fmt: skip
_DOCS = {
    "exp": "e to the power of x", "exp2": "2 to the power of x", "exp10": "10 to the power of x",
    "log": "The natural logarithm of x", "log2": "The logarithm of x to base 2",
    "log10": "The logarithm of x to base 10", "log1p": "The natural logarithm of 1 + x",
    "sqrt": "The square root of x", "rsqrt": "One over the square root of x", "sin": "The sine of x",
    "cos": "The cosine of x", "tan": "The tangent of x", "tanh": "The hyperbolic tangent of x",
    "sinh": "The hyperbolic sine of x", "cosh": "The hyperbolic cosine of x", "asin": "The arc sine of x",
    "acos": "The arc cosine of x", "atan": "The arc tangent of x", "erf": "The Gauss error function of x",
    "sigmoid": "1 / (1 + e to the power of -x)",
    "floor": "The greatest whole number not above x, as a float",
    "ceil": "The least whole number not below x, as a float", "trunc": "x without its fraction, as a float",
    "round": "The whole number nearest to x, halves to the even one, as a float",
}  # fmt: skip

__all__ = [
    *sorted(UNARY), "Cast", "Select", "abs", "atan2", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "cast", "cdiv", "ceildiv", "clamp", "clz", "copysign", "floordiv", "floormod", "fma",
    "fmod", "if_then_else", "infinity", "isfinite", "isinf", "isnan", "max", "max_value", "min", "min_value",
    "popcount", "pow", "reinterpret", "shift_left", "shift_right", "truncdiv", "truncmod",
]  # fmt: skip


def number(value: Any, what: str) -> Any:
    """The value itself when it is a number; TileError otherwise."""
    if is_number(value):
        return value
    if isinstance(value, Tile | Slice):
        raise TileError(
            "TL109",
            f"{what} of the whole tile {value.name}: it works on elements",
            help=f"write a loop: for i in T.Parallel(...): … {what}({value.name}[i]) …",
        )
    raise TileError("TL109", f"{what} of a {type(value).__name__}, and a number is needed")


def _unary(name: str, python: Callable[[float], float]) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        if is_symbolic(number(x, f"T.{name}")):
            return wrap(expressions.intrinsic(name, raw(x)))
        return python(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCS[name] + "."
    function.__module__ = __name__
    return public()(function)


for _name, _python in UNARY.items():
    globals()[_name] = _unary(_name, _python)


def _operator(op: str, a: Any, b: Any, what: str) -> Any:
    a, b = number(a, what), number(b, what)
    if not is_symbolic(a) and not is_symbolic(b):
        return wrap(expressions.binary(op, a, b))
    return binary(op, a, b)


@public()
def max(a: Any, b: Any) -> Any:
    """The greater of two numbers."""
    return _operator("max", a, b, "T.max")


@public()
def min(a: Any, b: Any) -> Any:
    """The lesser of two numbers."""
    return _operator("min", a, b, "T.min")


@public()
def clamp(dst: Any, min_val: Any, max_val: Any) -> Any:
    """The number, brought into the range from min_val to max_val."""
    return min(max(dst, min_val), max_val)


@public()
def ceildiv(lhs: Any, rhs: Any) -> Any:
    """⌈lhs / rhs⌉ for non-negative lhs and positive rhs."""
    for value in (lhs, rhs):
        number(value, "T.ceildiv")
        if isinstance(value, float) or (is_symbolic(value) and value.dtype.is_float):
            raise TileError("TL109", f"T.ceildiv of {value}, which is not a whole number")
    if isinstance(rhs, int) and rhs <= 0:
        raise TileError("TL106", f"T.ceildiv({lhs}, {rhs}): a block size must be at least 1")
    if isinstance(lhs, int) and isinstance(rhs, int):
        return -(-lhs // rhs)
    return (lhs + (rhs - 1)) // rhs


cdiv = ceildiv


@public()
def floordiv(a: Any, b: Any) -> Any:
    """a / b, rounded down."""
    return _operator("//", a, b, "T.floordiv")


@public()
def floormod(a: Any, b: Any) -> Any:
    """The remainder of floordiv, with the sign of b."""
    return _operator("%", a, b, "T.floormod")


@public()
def truncdiv(a: Any, b: Any) -> Any:
    """a / b, rounded towards zero."""
    return _operator("truncdiv", a, b, "T.truncdiv")


@public()
def truncmod(a: Any, b: Any) -> Any:
    """The remainder of truncdiv, with the sign of a."""
    return _operator("truncmod", a, b, "T.truncmod")


@public()
def shift_left(x: Any, y: Any) -> Any:
    """x shifted left by y bits."""
    return _operator("<<", x, y, "T.shift_left")


@public()
def shift_right(x: Any, y: Any) -> Any:
    """x shifted right by y bits."""
    return _operator(">>", x, y, "T.shift_right")


@public()
def bitwise_and(x: Any, y: Any) -> Any:
    """The bits that both have."""
    return _operator("&", x, y, "T.bitwise_and")


@public()
def bitwise_or(x: Any, y: Any) -> Any:
    """The bits that either has."""
    return _operator("|", x, y, "T.bitwise_or")


@public()
def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits that one of the two has."""
    return _operator("^", x, y, "T.bitwise_xor")


@public()
def bitwise_not(x: Any) -> Any:
    """x with every bit turned."""
    return ~number(x, "T.bitwise_not")


@public()
def pow(x: Any, y: Any) -> Any:
    """x to the power of y."""
    return number(x, "T.pow") ** number(y, "T.pow")


@public()
def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z; the target's compiler makes it one fused operation."""
    for value in (x, y, z):
        number(value, "T.fma")
    return x * y + z


def _two(name: str, a: Any, b: Any) -> Any:
    return wrap(expressions.intrinsic(name, raw(number(a, f"T.{name}")), raw(number(b, f"T.{name}"))))


@public()
def fmod(x: Any, y: Any) -> Any:
    """The remainder of x / y with the sign of x."""
    return _two("fmod", x, y)


@public()
def atan2(x1: Any, x2: Any) -> Any:
    """The angle of the point (x2, x1)."""
    return _two("atan2", x1, x2)


@public()
def copysign(x1: Any, x2: Any) -> Any:
    """x1 with the sign of x2."""
    return _two("copysign", x1, x2)


@public()
def abs(x: Any) -> Any:
    """The absolute value."""
    return number(x, "T.abs").__abs__()


@public()
def isnan(x: Any) -> Any:
    """Whether x is not a number."""
    return wrap(expressions.intrinsic("isnan", raw(number(x, "T.isnan"))))


@public()
def isinf(x: Any) -> Any:
    """Whether x is infinite."""
    return wrap(expressions.intrinsic("isinf", raw(number(x, "T.isinf"))))


@public()
def isfinite(x: Any) -> Any:
    """Whether x is neither infinite nor not a number."""
    return wrap(expressions.intrinsic("isfinite", raw(number(x, "T.isfinite"))))


@public()
def popcount(x: Any) -> Any:
    """Number of set bits."""
    return wrap(expressions.intrinsic("popcount", raw(number(x, "T.popcount")), floats=False))


@public()
def clz(x: Any) -> Any:
    """Number of leading zero bits."""
    return wrap(expressions.intrinsic("clz", raw(number(x, "T.clz")), floats=False))


@public()
def if_then_else(cond: Any, t: Any, f: Any) -> Any:
    """t where the condition holds, else f; an access in the side that is not chosen does not happen."""
    for side in (t, f):
        number(side, "T.if_then_else")
    if not is_symbolic(cond):
        return t if cond else f
    return wrap(expressions.select(raw(cond), raw(t), raw(f)))


@public()
def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """As if_then_else."""
    return if_then_else(condition, true_value, false_value)


@public()
def infinity(dtype: Any) -> Scalar:
    """The infinity of a floating-point type."""
    kind = dtype_type(dtype)
    if not kind.is_float or kind.bits < 16:
        raise TileError("TL109", f"{kind} has no infinity", help=f'use T.max_value("{kind}")')
    return Scalar(expressions.constant(float("inf"), kind))


_GREATEST = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0,
    "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0,
}  # fmt: skip


@public()
def max_value(dtype: Any) -> Scalar:
    """The greatest finite value of the dtype."""
    kind = dtype_type(dtype)
    if kind.is_float:
        return Scalar(expressions.constant(_GREATEST[kind], kind))
    return Scalar(
        expressions.constant(2 ** (kind.bits - 1) - 1 if kind.is_signed else 2**kind.bits - 1, kind)
    )


@public()
def min_value(dtype: Any) -> Scalar:
    """The least finite value of the dtype."""
    kind = dtype_type(dtype)
    if kind.is_float:
        return Scalar(expressions.constant(-_GREATEST[kind], kind))
    return Scalar(expressions.constant(-(2 ** (kind.bits - 1)) if kind.is_signed else 0, kind))


@public(ignored=("round", "rbits"))
def cast(value: Any, dtype: Any, round: Any = None, sat: Any = True, rbits: Any = None) -> Any:
    """The number converted to the dtype."""
    return convert_value(value if isinstance(value, Tile | Slice) else number(value, "T.cast"), dtype)


@public()
def Cast(dtype: Any, value: Any) -> Any:
    """The number converted to the dtype."""
    return cast(value, dtype)


@public()
def reinterpret(value: Any, dtype: Any) -> Any:
    """The bits of the number read as another dtype of the same size."""
    if isinstance(value, str) and not isinstance(dtype, str):
        value, dtype = dtype, value
    expr = expressions.to_expr(raw(number(value, "T.reinterpret")))
    source, kind = Scalar(expr).dtype, dtype_type(dtype)
    if source.bits != kind.bits:
        raise TileError(
            "TL109",
            f"T.reinterpret of a {source} ({source.bits} bits) as {kind} ({kind.bits} bits)",
            help="both must have the same size",
        )
    return wrap(expressions.reinterpret(expr, kind))
