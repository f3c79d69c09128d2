"""Expressions as Python source over NumPy: uniform values stay Python scalars, lane values are arrays.

A `Value` knows while the code is made whether it differs between lanes and how many vector elements it has:
uniform scalar → a scalar; lanes → shape (n,); uniform vector → (1, v); lanes of vectors → (n, v).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.emulate.dtypes import element, is_float, is_integer
from tilelab.errors import InternalError
from tilelab.ir import nodes as n
from tilelab.ir.nodes import dtype_of

if TYPE_CHECKING:
    from tilelab.emulate.compile import Compiler

__all__ = ["Value", "expression"]

_ARITHMETIC = {n.Add: "+", n.Sub: "-", n.Mul: "*", n.FloorDiv: "//", n.FloorMod: "%"}
_COMPARE = {n.EQ: "==", n.NE: "!=", n.LT: "<", n.LE: "<=", n.GT: ">", n.GE: ">="}
_BITWISE = {
    n.BitwiseAnd: "&", n.BitwiseOr: "|", n.BitwiseXor: "^", n.LShift: "<<", n.RShift: ">>",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """Source text of a value, whether lanes may differ in it, and its number of vector elements."""

    code: str
    varying: bool
    width: int = 1

    @property
    def is_array(self) -> bool:
        """Whether the value is a NumPy array at run time."""
        return self.varying or self.width > 1


def expression(c: Compiler, node: Any) -> Value:
    """The value of an expression; statements that it needs first are emitted by the compiler."""
    maker = _MAKERS.get(type(node))
    if maker is None:
        raise InternalError(f"the emulator knows no expression {type(node).__name__}")
    value = maker(c, node)
    return c.named(value) if len(value.code) > 90 else value


def _constant(c: Compiler, node: Any) -> Value:
    dtype = dtype_of(node)
    if dtype == "bool":
        return Value(str(bool(node.value)), False)
    if is_float(dtype):
        return Value(c.constant(float(node.value), dtype), False)
    return Value(f"({int(node.value)})" if int(node.value) < 0 else str(int(node.value)), False)


def _variable(c: Compiler, node: Any) -> Value:
    return c.variable(node)


def widen(value: Value, width: int) -> str:
    """The code of a lane value that meets vectors of `width`."""
    return f"{value.code}[:, None]" if value.varying and value.width == 1 and width > 1 else value.code


def _pair(c: Compiler, node: Any) -> tuple[str, str, bool, int]:
    a, b = expression(c, node.a), expression(c, node.b)
    width = max(a.width, b.width)
    return widen(a, width), widen(b, width), a.varying or b.varying, width


def _wrapped(code: str, dtype: str, is_array: bool) -> str:
    # Arrays wrap by themselves; Python integers have to be told, where wrapping is defined.
    name = element(dtype)
    if is_array or not name.startswith("uint"):
        return code
    return f"({code} & {(1 << int(name[4:])) - 1})"


def _arithmetic(c: Compiler, node: Any) -> Value:
    a, b, varying, width = _pair(c, node)
    code = f"({a} {_ARITHMETIC[type(node)]} {b})"
    return Value(_wrapped(code, dtype_of(node), varying or width > 1), varying, width)


def _divide(c: Compiler, node: Any) -> Value:
    a, b, varying, width = _pair(c, node)
    integer = is_integer(dtype_of(node))
    if isinstance(node, n.Div):
        return Value(f"truncated_divide({a}, {b})" if integer else f"({a} / {b})", varying, width)
    return Value(f"truncated_rest({a}, {b})" if integer else f"np.fmod({a}, {b})", varying, width)


def _compare(c: Compiler, node: Any) -> Value:
    a, b, varying, width = _pair(c, node)
    return Value(f"({a} {_COMPARE[type(node)]} {b})", varying, width)


def _bitwise(c: Compiler, node: Any) -> Value:
    a, b, varying, width = _pair(c, node)
    code = f"({a} {_BITWISE[type(node)]} {b})"
    return Value(_wrapped(code, dtype_of(node), varying or width > 1), varying, width)


def _extreme(c: Compiler, node: Any) -> Value:
    a, b, varying, width = _pair(c, node)
    return Value(f"{'maximum' if isinstance(node, n.Max) else 'minimum'}({a}, {b})", varying, width)


def _logical(c: Compiler, node: Any) -> Value:
    # As in C, the right side is evaluated only where the left side does not decide.
    conjunction = isinstance(node, n.And)
    a = c.named(expression(c, node.a))
    if not a.is_array:
        return _uniform_choice(c, a, node.b, conjunction)
    with c.masked(a if conjunction else Value(f"~{a.code}", a.varying, a.width)):
        b = c.named(expression(c, node.b))
    return Value(
        f"({a.code} {'&' if conjunction else '|'} {b.code})", a.varying or b.varying, max(a.width, b.width)
    )


def _uniform_choice(c: Compiler, a: Value, other: Any, conjunction: bool) -> Value:
    name = c.fresh("t")
    c.emit(f"{name} = {a.code}")
    c.emit(f"if {'' if conjunction else 'not '}{name}:")
    with c.indented():
        b = expression(c, other)
        c.emit(f"{name} = {b.code}")
    if not b.is_array:
        return Value(name, False)
    # The other side leaves a scalar; lanes are made alike so that the value is an array either way.
    return Value(f"as_lanes({name}, X, {b.width})".replace("X", c.context), b.varying, b.width)


def _not(c: Compiler, node: Any) -> Value:
    a = expression(c, node.a)
    return Value(f"(~{a.code})" if a.is_array else f"(not {a.code})", a.varying, a.width)


def _select(c: Compiler, condition: Any, yes: Any, no: Any, lazy: bool) -> Value:
    test = c.named(expression(c, condition))
    if not test.is_array and lazy:
        return _branch(c, test, yes, no)
    with c.masked(test if lazy else None):
        a = c.named(expression(c, yes))
    with c.masked(Value(f"(~{test.code})", test.varying, test.width) if lazy else None):
        b = c.named(expression(c, no))
    width = max(a.width, b.width, test.width)
    yes_code, no_code = widen(a, width), widen(b, width)
    if not test.is_array:
        varying = a.varying or b.varying
        if (a.varying, a.width) == (b.varying, b.width):
            return Value(f"({yes_code} if {test.code} else {no_code})", varying, width)
        return Value(f"np.where({test.code}, {yes_code}, {no_code})", varying, width)
    code = f"where({widen(test, width)}, {yes_code}, {no_code}, {c.type_of(dtype_of(yes))})"
    return Value(code, test.varying or a.varying or b.varying, width)


def _branch(c: Compiler, test: Value, yes: Any, no: Any) -> Value:
    name = c.fresh("t")
    c.emit(f"if {test.code}:")
    with c.indented():
        a = expression(c, yes)
        c.emit(f"{name} = {a.code}")
    c.emit("else:")
    with c.indented():
        b = expression(c, no)
        c.emit(f"{name} = {b.code}")
    varying, width = a.varying or b.varying, max(a.width, b.width)
    if (a.varying, a.width) == (b.varying, b.width):
        return Value(name, varying, width)
    return Value(f"as_lanes({name}, {c.context}, {width})", varying, width)


def _cast(c: Compiler, node: Any) -> Value:
    value = expression(c, node.value)
    dtype = element(dtype_of(node))
    old = element(dtype_of(node.value))
    if old == dtype:
        return value
    return Value(f"convert({value.code}, {dtype!r})", value.varying, value.width)


def _load(c: Compiler, node: Any) -> Value:
    indices = [expression(c, i) for i in node.indices]
    width = max(i.width for i in indices)
    codes = ", ".join(widen(i, width) for i in indices)
    name, per_lane = c.buffer(node.source)
    varying = per_lane or any(i.varying for i in indices)
    # Lanes that are iterations see one value of a thread's own buffer, which must be the same on all threads.
    if per_lane and c.in_iterations:
        varying = any(i.varying for i in indices)
    return c.named(Value(f"{name}.load({c.context}, ({codes},), {c.mask})", varying, width))


def _ramp(c: Compiler, node: Any) -> Value:
    base, stride = expression(c, node.base), expression(c, node.stride)
    lanes = int(node.lanes)
    return Value(f"ramp({base.code}, {stride.code}, {lanes})", base.varying, lanes)


def _broadcast(c: Compiler, node: Any) -> Value:
    value = expression(c, node.value)
    lanes = int(node.lanes)
    return Value(f"spread({value.code}, {lanes}, {c.type_of(dtype_of(node.value))})", value.varying, lanes)


def _shuffle(c: Compiler, node: Any) -> Value:
    parts = [expression(c, v) for v in node.vectors]
    picks = [int(i) for i in node.indices]
    varying = any(p.varying for p in parts)
    code = f"take_elements([{', '.join(p.code for p in parts)}], {picks}, {varying})"
    return Value(code, varying, len(picks))


def _let(c: Compiler, node: Any) -> Value:
    c.define(node.var, expression(c, node.value))
    return expression(c, node.body)


def _call(c: Compiler, node: Any) -> Value:
    name = str(node.op.name).rpartition(".")[2]
    args = list(node.args)
    special = _CALLS.get(name)
    if special is not None:
        return special(c, node, args)
    if name in _BITWISE:
        a, b = expression(c, args[0]), expression(c, args[1])
        width = max(a.width, b.width)
        code = f"({widen(a, width)} {_BITWISE[name]} {widen(b, width)})"
        return Value(_wrapped(code, dtype_of(node), a.is_array or b.is_array), a.varying or b.varying, width)
    values = [expression(c, a) for a in args]
    width = max((v.width for v in values), default=1)
    codes = ", ".join(widen(v, width) for v in values)
    c.needs_intrinsic(name)
    code = f"call_intrinsic({name!r}, {element(dtype_of(node))!r}, {codes})"
    return c.named(Value(code, any(v.varying for v in values), width))


def _lane_shuffle(c: Compiler, node: Any, args: list[Any]) -> Value:
    name = str(node.op.name).rpartition(".")[2]
    value, amount = expression(c, args[0]), expression(c, args[1])
    code = f"shuffle({name!r}, {value.code}, {amount.code}, {c.context}.count, {c.context}.machine.warp)"
    return c.named(Value(code, value.varying, value.width))


def _reinterpret(c: Compiler, node: Any, args: list[Any]) -> Value:
    value = expression(c, args[0])
    code = f"reinterpret({value.code}, {element(dtype_of(args[0]))!r}, {element(dtype_of(node))!r})"
    return Value(code, value.varying, c.width_of(node))


def _bitwise_not(c: Compiler, node: Any, args: list[Any]) -> Value:
    a = expression(c, args[0])
    return Value(_wrapped(f"(~{a.code})", dtype_of(node), a.is_array), a.varying, a.width)


_CALLS: dict[str, Callable[..., Value]] = {
    "if_then_else": lambda c, node, args: _select(c, *args, lazy=True),
    "likely": lambda c, node, args: expression(c, args[0]),
    "reinterpret": _reinterpret,
    "bitwise_not": _bitwise_not,
    "shuffle_xor": _lane_shuffle,
    "shuffle_down": _lane_shuffle,
}

_MAKERS: dict[type, Callable[..., Value]] = {
    n.IntImm: _constant,
    n.FloatImm: _constant,
    n.Var: _variable,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    n.Div: _divide,
    n.Mod: _divide,
    **dict.fromkeys(_COMPARE, _compare),
    **{kind: _bitwise for kind in _BITWISE if not isinstance(kind, str)},
    n.BitwiseNot: lambda c, node: _bitwise_not(c, node, [node.a]),
    n.Max: _extreme,
    n.Min: _extreme,
    n.And: _logical,
    n.Or: _logical,
    n.Not: _not,
    n.Select: lambda c, node: _select(c, node.condition, node.true_value, node.false_value, lazy=False),
    n.Cast: _cast,
    n.Load: _load,
    n.Ramp: _ramp,
    n.Broadcast: _broadcast,
    n.Shuffle: _shuffle,
    n.Let: _let,
    n.Call: _call,
}
