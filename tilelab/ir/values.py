"""Builders of expressions; those on Python ints fold to a Python int."""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir, tirx

from tilelab.ir.nodes import (
    Cast,
    Expr,
    Var,
    dtype_of,
)
from tilelab.ir.rewrite import collect
from tilelab.ir.spans import current_span

__all__ = [
    "absolute",
    "all_of",
    "any_of",
    "as_expr",
    "as_int",
    "bitwise",
    "call",
    "cast",
    "ceildiv",
    "const",
    "floordiv",
    "floormod",
    "highest",
    "lowest",
    "maximum",
    "minimum",
    "moves_by_one",
    "negation",
    "quotient",
    "ramp",
    "remainder",
    "select",
    "shuffle_xor",
    "var",
]


def const(value: int | float | bool, dtype: str = "int32") -> Expr:
    """A constant."""
    return tirx.const(value, dtype)


def as_expr(value: Any, dtype: str = "int32") -> Expr:
    """`value` as an expression: Python numbers become constants of `dtype`."""
    return value if isinstance(value, Expr) else tirx.const(value, dtype)


def var(name: str, dtype: str = "int32") -> Var:
    """A new scalar variable."""
    return Var(name, ir.PrimType(dtype)) if not isinstance(dtype, str) else tirx.Var(name, dtype)


def cast(dtype: str, value: Expr) -> Expr:
    """`value` converted to `dtype`; the very value when it has that dtype."""
    return value if dtype_of(value) == dtype else Cast(dtype, value, current_span())


def ceildiv(a: Any, b: Any) -> Any:
    """⌈a / b⌉ for non-negative a and positive b; an int when both are ints."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else tirx.ceildiv(as_expr(a), as_expr(b))


def ramp(base: Any, lanes: int, stride: int = 1) -> Expr:
    """The vector of indices base, base + stride, …; the very base for one lane."""
    return as_expr(base) if lanes == 1 else tirx.Ramp(as_expr(base), const(stride), lanes)


def call(name: str, *args: Any, dtype: str) -> Expr:
    """A call of a TVM intrinsic such as `tirx.exp2`."""
    return ir.Call(name, list(args), ret_ty=dtype)


def negation(condition: Expr) -> Expr:
    """The opposite of a condition."""
    return tirx.Not(condition)


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """The conjunction; None of no conditions."""
    total: Expr | None = None
    for condition in conditions:
        total = condition if total is None else tirx.And(total, condition)
    return total


def any_of(conditions: Sequence[Expr]) -> Expr | None:
    """The disjunction; None of no conditions."""
    total: Expr | None = None
    for condition in conditions:
        total = condition if total is None else tirx.Or(total, condition)
    return total


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """`yes` where the condition holds, else `no`; only the chosen side is evaluated."""
    return tirx.if_then_else(condition, yes, no, current_span())


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else tirx.min(as_expr(a), as_expr(b))


def maximum(a: Any, b: Any) -> Any:
    """The larger of two."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else tirx.max(as_expr(a), as_expr(b))


def lowest(dtype: str) -> Expr:
    """What no value is below: −∞ for floating point where it exists, else the smallest number."""
    if dtype.startswith("float8"):
        return tirx.min_value(dtype)
    return tirx.const(float("-inf"), dtype) if "float" in dtype else tirx.min_value(dtype)


def highest(dtype: str) -> Expr:
    """What no value is above: ∞ for floating point where it exists, else the largest number."""
    if dtype.startswith("float8"):
        return tirx.max_value(dtype)
    return tirx.const(float("inf"), dtype) if "float" in dtype else tirx.max_value(dtype)


def absolute(value: Expr) -> Expr:
    """|value|."""
    return tirx.abs(value)


def bitwise(kind: str, a: Expr, c: Expr) -> Expr:
    """a and, or, xor c, bit by bit."""
    return {"and": tirx.bitwise_and, "or": tirx.bitwise_or, "xor": tirx.bitwise_xor}[kind](a, c)


def shuffle_xor(value: Expr, mask: int) -> Expr:
    """The value that lane (own lane xor mask) of the warp has."""
    return ir.Call("tl.shuffle_xor", [value, const(mask)], ret_ty=dtype_of(value), span=current_span())


def floormod(a: Any, b: int) -> Any:
    """a mod b for positive b."""
    return a % b if isinstance(a, int) else tirx.floormod(a, const(b))


def floordiv(a: Any, b: int) -> Any:
    """⌊a / b⌋ for positive b."""
    return a // b if isinstance(a, int) else tirx.floordiv(a, const(b))


def quotient(a: Any, c: Any) -> Any:
    """⌊a / c⌋ for positive c, which need not be known."""
    return a // c if isinstance(a, int) and isinstance(c, int) else tirx.floordiv(as_expr(a), as_expr(c))


def remainder(a: Any, c: Any) -> Any:
    """a mod c for positive c, which need not be known."""
    return a % c if isinstance(a, int) and isinstance(c, int) else tirx.floormod(as_expr(a), as_expr(c))


def as_int(value: Any) -> int | None:
    """The value as a Python int when it is a known one, else None."""
    if isinstance(value, int):
        return value
    return int(value.value) if isinstance(value, tirx.IntImm) else None


def moves_by_one(index: Any, variable: Var) -> bool:
    """Whether the index grows by one with the variable: it is the variable plus terms that lack it."""
    if not isinstance(index, Expr):
        return False
    if index.same_as(variable):
        return True
    if isinstance(index, tirx.Add):
        sides = (moves_by_one(index.a, variable), moves_by_one(index.b, variable))
        return sides[0] != sides[1] and not _contains(index.b if sides[0] else index.a, variable)
    return (
        isinstance(index, tirx.Sub) and moves_by_one(index.a, variable) and not _contains(index.b, variable)
    )


def _contains(value: Any, variable: Var) -> bool:
    return any(v.same_as(variable) for v in collect(value, Var))
