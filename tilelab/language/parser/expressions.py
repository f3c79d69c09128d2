"""Expressions of the IR made from the operands of Python's operators: promotion of dtypes and constant
folding.

Rules of promotion: equal dtypes stay; an integer meets a float in the float's dtype; of two floats the wider
wins, two unlike 16-bit floats meet in float32; of two integers the wider wins, at equal width the unsigned
one. A Python int is an int32, or an int64 when it needs to be, but takes the other side's dtype in bit
operations; a Python float is a float32, but takes the other side's dtype when that is a wider float.
"""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math
from typing import Any

from tvm import ir, tirx
from tvm.ir.prim import _ffi_api as prim
from tvm.sym import Analyzer

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import Call, Expr, FloatImm, IntImm, Load, Not, dtype_of
from tilelab.ir.rewrite import collect
from tilelab.ir.spans import current_span
from tilelab.language.dtypes import dtype

__all__ = [
    "binary", "constant", "convert", "intrinsic", "logical", "negate", "nest", "promote", "reads_memory",
    "reinterpret", "select", "simplify", "to_expr",
]  # fmt: skip

_BINARY = {
    "+": prim._OpAdd, "-": prim._OpSub, "*": prim._OpMul, "//": prim._OpFloorDiv, "%": prim._OpFloorMod,
    "/": prim._OpDiv, "max": prim._OpMax, "min": prim._OpMin, "==": prim._OpEQ, "!=": prim._OpNE,
    "<": prim._OpLT, "<=": prim._OpLE, ">": prim._OpGT, ">=": prim._OpGE, "truncdiv": prim._OpTruncDiv,
    "truncmod": prim._OpTruncMod, "ceildiv": prim._OpCeilDiv,
}  # fmt: skip
_BITS = {
    "&": tirx.bitwise_and, "|": tirx.bitwise_or, "^": tirx.bitwise_xor, "<<": tirx.shift_left,
    ">>": tirx.shift_right,
}  # fmt: skip
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_DIVISIONS = ("/", "//", "%", "truncdiv", "truncmod", "ceildiv")


def nest(callers: tuple[Any, ...], span: Any) -> Any:
    """The span of a statement that was reached through macro calls, outermost first."""
    return ir.SequentialSpan([*callers, span]) if callers else span


def constant(value: bool | int | float, kind: str | None = None) -> Expr:
    """A Python number as an expression, of the dtype `kind` or of the one that such a number has by
    itself."""
    if kind is None:
        if isinstance(value, bool):
            kind = "bool"
        elif isinstance(value, int):
            kind = "int32" if -(2**31) <= value < 2**31 else "int64"
        else:
            kind = "float32"
    _check_fits(value, dtype(kind))
    return tirx.const(bool(value) if kind == "bool" else value, kind)


def _check_fits(value: Any, kind: dtype) -> None:
    if kind.is_float or kind == "bool":
        return
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        raise TileError(
            "TL109",
            f"{value} is not a whole number, and the value must be {kind}",
            help=f'write T.cast({value}, "{kind}") of a rounded number',
        )
    low, high = (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1)) if kind.is_signed else (0, 2**kind.bits)
    if not low <= value < high:
        raise TileError("TL109", f"{value} does not fit in {kind}, which holds {low} to {high - 1}")


def to_expr(value: Any, kind: str | None = None) -> Expr:
    """A number or an expression as an expression; `kind` is the dtype for Python numbers only."""
    return value if isinstance(value, Expr) else constant(value, kind)


def convert(value: Any, kind: str) -> Expr:
    """The value converted to `kind`: a constant of that dtype, or a cast."""
    if not isinstance(value, Expr):
        return constant(int(value) if not dtype(kind).is_float and isinstance(value, float) else value, kind)
    if isinstance(value, IntImm | FloatImm) and dtype(kind).is_float:
        return constant(float(value.value), kind)
    return b.cast(kind, value)


def common(left: dtype, right: dtype) -> dtype:
    """The dtype in which operands of the two dtypes meet."""
    if left == right:
        return left
    if left == "bool" or right == "bool":
        return right if left == "bool" else left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if left.is_float:
        if left.bits == right.bits:
            return dtype("float32")
        return left if left.bits > right.bits else right
    if left.bits == right.bits:
        return right if left.is_signed else left
    return left if left.bits > right.bits else right


def promote(left: Any, right: Any, *, bits: bool = False) -> tuple[Expr, Expr]:
    """Both operands as expressions of one dtype; `bits` says that they meet in a bit operation."""
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        kind = "float32" if isinstance(left, float) or isinstance(right, float) else None
        return constant(left, kind), constant(right, kind)
    if not isinstance(left, Expr):
        second, first = promote(right, left, bits=bits)
        return first, second
    kind = dtype(dtype_of(left))
    if isinstance(right, Expr):
        kind = common(kind, dtype(dtype_of(right)))
    elif isinstance(right, float) and (not kind.is_float or kind.bits < 32):
        kind = dtype("float32")
    elif isinstance(right, int) and not isinstance(right, bool) and not kind.is_float and not bits:
        kind = common(kind, dtype(dtype_of(constant(right))))
    return convert(left, kind), convert(right, kind) if isinstance(right, Expr) else constant(right, kind)


def binary(op: str, left: Any, right: Any) -> Expr:
    """`left op right` for Python's operators, `max`, `min`, `truncdiv`, `truncmod` and `ceildiv`."""
    a, c = promote(left, right, bits=op in _BITS)
    kind = dtype(dtype_of(a))
    if kind == "bool" and op in ("&", "|", "^"):
        return {"&": prim._OpAnd, "|": prim._OpOr, "^": _differ}[op](a, c, current_span())
    if kind == "bool" and op not in _COMPARISONS:
        kind = dtype("int32")
        a, c = convert(a, kind), convert(c, kind)
    if kind.is_float and kind.bits == 8 and op not in ("==", "!="):
        kind = dtype("float32")
        a, c = convert(a, kind), convert(c, kind)
    _check_division(op, kind, a, c)
    if op in _BITS:
        if kind.is_float:
            raise TileError(
                "TL109",
                f"{op} works on integers, and its operands are {kind}",
                help='T.reinterpret(x, "uint32") gives the bits of a float32',
            )
        return _BITS[op](a, c, current_span())
    if op == "**":
        return _power(a, right, c)
    if kind.is_float and op in ("//", "%"):
        quotient = tirx.floor(prim._OpDiv(a, c, current_span()), current_span())
        return quotient if op == "//" else a - quotient * c
    return _BINARY[op](a, c, current_span())


def _differ(a: Expr, c: Expr, span: Any) -> Expr:
    return prim._OpNE(b.cast("int32", a), b.cast("int32", c), span)


def _check_division(op: str, kind: dtype, a: Expr, c: Expr) -> None:
    if op not in _DIVISIONS:
        return
    if op == "/" and not kind.is_float:
        raise TileError(
            "TL109",
            f"/ works on floats, and its operands are {kind}",
            help='write a // b for whole numbers, or T.cast(a, "float32") / b',
        )
    if isinstance(c, IntImm | FloatImm) and c.value == 0:
        cause = (
            "T.infinity(dtype) is infinity" if kind.is_float else "a block size of zero is the usual cause"
        )
        raise TileError("TL109", f"{op} by zero", help=cause)


def _power(a: Expr, exponent: Any, c: Expr) -> Expr:
    if isinstance(exponent, int) and 1 <= exponent <= 4:
        result = a
        for _ in range(exponent - 1):
            result = prim._OpMul(result, a, current_span())
        return result
    if not dtype(dtype_of(a)).is_float:
        a, c = convert(a, "float32"), convert(c, "float32")
    return tirx.pow(a, c, current_span())


def negate(value: Expr) -> Expr:
    """-value."""
    if isinstance(value, FloatImm):
        return constant(-float(value.value), dtype_of(value))
    return (
        binary("-", constant(0, dtype_of(value)), value)
        if not dtype(dtype_of(value)).is_float
        else binary("*", value, constant(-1.0, dtype_of(value)))
    )


def truth(value: Any) -> Expr:
    """The value as a boolean: numbers are true when they differ from zero."""
    if not isinstance(value, Expr):
        return constant(bool(value))
    return value if dtype_of(value) == "bool" else binary("!=", value, constant(0, dtype_of(value)))


def logical(op: str, *values: Any) -> Expr:
    """`and`, `or` or `not` of the values."""
    if op == "not":
        return Not(truth(values[0]), current_span())
    result = truth(values[0])
    for value in values[1:]:
        result = (prim._OpAnd if op == "and" else prim._OpOr)(result, truth(value), current_span())
    return result


def select(condition: Expr, yes: Any, no: Any) -> Expr:
    """`yes` where the condition holds, else `no`; only the chosen side is evaluated."""
    a, c = promote(yes, no)
    return tirx.if_then_else(truth(condition), a, c, current_span())


def intrinsic(name: str, *values: Any, floats: bool = True) -> Expr:
    """A call of the TVM function `tirx.<name>`; with `floats` integers become float32 first, 8-bit floats
    too."""
    args = [to_expr(v, "float32" if floats else None) for v in values]
    for other in args[1:]:
        args[0], _ = promote(args[0], other)
    kind = dtype(dtype_of(args[0]))
    if floats and (not kind.is_float or kind.bits == 8):
        kind = dtype("float32")
    args = [convert(a, kind) for a in args]
    return getattr(tirx, name)(*args)


def simplify(value: Expr) -> Expr:
    """The expression simplified."""
    return Analyzer().simplify(value)


def reads_memory(value: Expr) -> bool:
    """Whether evaluating the expression later could give another value: it loads from a buffer or calls a
    function."""
    return bool(collect(value, Load)) or bool(collect(value, Call))


def reinterpret(value: Expr, kind: str) -> Expr:
    """The bits of the value as another dtype."""
    return tirx.reinterpret(str(kind), value, current_span())
