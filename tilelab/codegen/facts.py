"""What printing asks of an expression: whether it is negative, which operation a call is, its known value."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from tilelab.codegen.types import lanes
from tilelab.ir import build as b
from tilelab.ir import nodes as n

__all__ = ["is_nonnegative", "known", "operands", "times", "word_of"]


def is_nonnegative(e: Any, nonnegative: Container[Any]) -> bool:
    """Whether the integer is known not to be negative, `nonnegative` being the variables that are not."""
    match e:
        case n.IntImm():
            return int(e.value) >= 0
        case n.Var():
            return e in nonnegative
        case n.Add() | n.Mul() | n.FloorDiv() | n.BitwiseAnd() | n.BitwiseXor() | n.BitwiseOr() | n.Min():
            return is_nonnegative(e.a, nonnegative) and is_nonnegative(e.b, nonnegative)
        case n.Max():
            return is_nonnegative(e.a, nonnegative) or is_nonnegative(e.b, nonnegative)
        case n.FloorMod():
            return (known(e.b) or 0) > 0 or is_nonnegative(e.b, nonnegative)
        case n.Cast():
            return lanes(n.dtype_of(e)) == 1 and is_nonnegative(e.value, nonnegative)
        case n.Broadcast():
            return is_nonnegative(e.value, nonnegative)
        case n.Ramp():
            return is_nonnegative(e.base, nonnegative) and is_nonnegative(e.stride, nonnegative)
        case n.Call():
            word = word_of(e)
            both = all(is_nonnegative(a, nonnegative) for a in e.args[:2])
            return (word in ("bitwise_and", "bitwise_xor", "bitwise_or") and both) or (
                word == "if_then_else" and all(is_nonnegative(a, nonnegative) for a in e.args[1:])
            )
    return False


def operands(e: Any, kind: Any, word: str) -> tuple[Any, Any] | None:
    """Both sides of an operation that TVM builds as a node or as a call."""
    if isinstance(e, kind):
        return e.a, e.b
    return (e.args[0], e.args[1]) if isinstance(e, n.Call) and word_of(e) == word else None


def word_of(call: Any) -> str:
    """The operation of a call without its namespace."""
    return str(call.op.name).rpartition(".")[2]


def known(e: Any) -> int | None:
    """The integer that the expression is, or None."""
    if isinstance(e, int):
        return e
    return int(e.value) if isinstance(e, n.IntImm) else None


def times(a: Any, c: Any) -> Any:
    """a · c without factors of one."""
    x, y = known(a), known(c)
    if x is not None and y is not None:
        return b.as_expr(x * y)
    if x == 1:
        return c
    return a if y == 1 else a * c
