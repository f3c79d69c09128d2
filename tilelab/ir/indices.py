"""Index expressions: proofs and simplification under known bounds, and layouts turned into expressions."""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add as add_
from operator import floordiv, mod, mul, sub
from typing import Any

from tvm import ir, sym, tirx

from tilelab.ir.build import as_expr, const
from tilelab.ir.nodes import AttrStmt, Expr, For, IntImm, Stmt, Var, dtype_of
from tilelab.layout import AxisDigit, Composed, Layout

__all__ = ["Bounds", "add", "digit_sum", "evaluate", "in_bounds", "linear_index", "offset_of", "product"]


class Bounds:
    """What is known of the variables in scope: proofs (`prove`), simplification, and divisibility.

    Enter a loop or launch binding with `inside`, which gives the bounds that hold in its body.
    """

    def __init__(self, known: Iterable[tuple[Var, Any, Any]] = (), facts: Iterable[Expr] = ()) -> None:
        self._known = tuple(known)
        self._facts = tuple(facts)
        self._analyzer = sym.Analyzer()
        for variable, low, extent in self._known:
            if isinstance(extent, int | IntImm):
                self._analyzer.bind(variable, ir.Range.from_min_extent(as_expr(low), as_expr(extent)))
            else:
                self._analyzer.bind(variable, ir.Range.from_min_extent(as_expr(low), extent))

    def inside(self, node: Stmt) -> Bounds:
        """The bounds inside a loop or a launch binding; other statements add nothing."""
        if isinstance(node, For):
            return Bounds((*self._known, (node.loop_var, node.min, node.extent)), self._facts)
        if isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
            return Bounds((*self._known, (node.node.var, 0, node.value)), self._facts)
        return self

    def with_variables(self, known: Iterable[tuple[Var, Any, Any]]) -> Bounds:
        """The bounds with more variables: (variable, first value, number of values)."""
        return Bounds((*self._known, *known), self._facts)

    def narrowed(self, variable: Var, low: int, extent: int) -> Bounds:
        """The bounds with another range of a variable that is known already."""
        others = (entry for entry in self._known if not entry[0].same_as(variable))
        return Bounds((*others, (variable, low, extent)), self._facts)

    def given(self, fact: Expr) -> Bounds:
        """The bounds where `fact` also holds."""
        return Bounds(self._known, (*self._facts, fact))

    def simplify(self, value: Any) -> Any:
        """A simpler equal expression."""
        if not isinstance(value, Expr):
            return value
        return self._with_facts(lambda: self._analyzer.simplify(value))

    def prove(self, condition: Any) -> bool:
        """Whether the condition holds for all values in bounds."""
        if isinstance(condition, bool):
            return condition
        if self._with_facts(lambda: self._analyzer.can_prove(condition)):
            return True
        return self._follows_from_a_fact(condition)

    def _follows_from_a_fact(self, condition: Expr) -> bool:
        """Whether a goal x < y leaves at least the room y − x ≥ b − a of a known a < b, which TVM does not
        look for.
        """
        room = _room(condition)
        if room is None:
            return False
        known = [r for fact in self._facts for part in _conjuncts(fact) if (r := _room(part)) is not None]
        return any(self._analyzer.can_prove(room - other >= const(0, dtype_of(room))) for other in known
                   if dtype_of(other) == dtype_of(room))  # fmt: skip

    def divisor(self, value: Any) -> int:
        """The largest power of two (up to 2³⁰) that surely divides the value; a value of 0 gives 2³⁰."""
        value = as_expr(value)
        simple = self._analyzer.simplify(value)
        if isinstance(simple, IntImm):
            number = abs(int(simple.value))
            return (number & -number) if number else 1 << 30
        known = self._analyzer.modular_set(simple)
        number = abs(int(known.coeff)) or 1 << 30
        base = abs(int(known.base))
        number = number & -number
        return min(number, base & -base) if base else number

    def _with_facts(self, action: Any) -> Any:
        if not self._facts:
            return action()
        whole = reduce(tirx.And, self._facts)
        with self._analyzer.constraint_scope(whole):
            return action()


def _conjuncts(fact: Expr) -> list[Expr]:
    return [*_conjuncts(fact.a), *_conjuncts(fact.b)] if isinstance(fact, tirx.And) else [fact]


def _room(condition: Expr) -> Expr | None:
    """How much an integer comparison x < y (in whichever spelling) leaves: it holds when the result is
    positive.
    """
    if isinstance(condition, tirx.LT | tirx.GT | tirx.LE | tirx.GE) and "int" not in dtype_of(condition.a):
        return None
    match condition:
        case tirx.LT():
            return condition.b - condition.a
        case tirx.GT():
            return condition.a - condition.b
        case tirx.LE():
            return condition.b - condition.a + 1
        case tirx.GE():
            return condition.a - condition.b + 1
    return None


def add(*terms: Any) -> Any:
    """The sum, zeros left out; an int when all terms are."""
    total: Any = 0
    for term in terms:
        if isinstance(term, int) and term == 0:
            continue
        total = term if isinstance(total, int) and total == 0 else total + term
    return total


def product(values: Iterable[Any]) -> Any:
    """The product of ints or expressions."""
    return reduce(mul, values, 1)


def _digit(source: Any, divisor: int, size: int, extent: int | None) -> Any:
    """(source // divisor) % size, parts that change nothing left out; `extent` bounds the source."""
    if isinstance(source, int):
        return source // divisor % size
    value = source if divisor == 1 else tirx.floordiv(source, const(divisor))
    if extent is not None and extent <= divisor * size:
        return value
    return tirx.floormod(value, const(size))


def _scaled(value: Any, factor: int) -> Any:
    return value if factor == 1 or (isinstance(value, int) and value == 0) else value * factor


def digit_sum(digits: Sequence[AxisDigit], thread: Any, value: Any, threads: int, values: int) -> Any:
    """The coordinate that the digits give for a thread and a value number."""
    terms = []
    for digit in digits:
        source, extent = (thread, threads) if digit.source == "thread" else (value, values)
        terms.append(_scaled(_digit(source, digit.divisor, digit.size, extent), digit.stride))
    return add(*terms)


def linear_index(indices: Sequence[Any], strides: Sequence[Any]) -> Any:
    """Σ index · stride."""
    terms = []
    for index, stride in zip(indices, strides, strict=True):
        if isinstance(stride, IntImm):
            stride = int(stride.value)
        terms.append(_scaled(index, stride) if isinstance(stride, int) else index * stride)
    return add(*terms)


def _plain_offset(layout: Layout, indices: Sequence[Any]) -> Any:
    terms = []
    for mode, index in enumerate(indices):
        extent = layout[mode].size
        divisor = 1
        for size, stride in layout.digits(mode):
            if stride:
                terms.append(_scaled(_digit(index, divisor, size, extent), stride))
            divisor *= size
    return add(*terms)


def offset_of(layout: Layout | Composed, indices: Sequence[Any], bounds: Bounds | None = None) -> Any:
    """The element offset that a layout of one mode an axis gives for the indices, swizzle included.

    With `bounds`, what is a multiple of the swizzle's period stands outside of the exclusive or, which does
    not change it: the slot of a ring and the rows that loops step over are then added to an address that
    stays.
    """
    if isinstance(layout, Layout):
        return _plain_offset(layout, indices)
    base = add(_plain_offset(layout.layout, indices), layout.offset)
    swizzle = layout.swizzle
    if isinstance(base, int):
        return swizzle(base)
    terms = [base] if bounds is None else _addends(bounds.simplify(base))
    outside = [] if bounds is None else [t for t in terms if bounds.divisor(t) % swizzle.period == 0]
    inside = add(*(t for t in terms if not any(t is o for o in outside)))
    if isinstance(inside, int):
        return add(*outside, swizzle(inside))
    mask = ((1 << swizzle.bits) - 1) << swizzle.base
    moved = tirx.shift_right(inside, const(swizzle.shift))
    return add(*outside, tirx.bitwise_xor(inside, tirx.bitwise_and(moved, const(mask))))


def _addends(value: Any) -> list[Any]:
    return [*_addends(value.a), *_addends(value.b)] if isinstance(value, tirx.Add) else [value]


def evaluate(value: Any, known: dict[Var, Any]) -> Any:
    """The integer expression computed with NumPy arrays (or ints) for its variables; None if it is no such
    expression.
    """
    if isinstance(value, int):
        return value
    if isinstance(value, IntImm):
        return int(value.value)
    if isinstance(value, Var):
        return known.get(value)
    operation = _ARITHMETIC.get(type(value))
    if operation is None:
        return None
    sides = evaluate(value.a, known), evaluate(value.b, known)
    return None if sides[0] is None or sides[1] is None else operation(*sides)


_ARITHMETIC = {
    tirx.Add: add_,
    tirx.Sub: sub,
    tirx.Mul: mul,
    tirx.FloorDiv: floordiv,
    tirx.FloorMod: mod,
}


def in_bounds(index: Any, extent: Any, bounds: Bounds) -> Expr | None:
    """The conditions on an index that are not already known: None when it surely lies in [0, extent)."""
    conditions = []
    if not bounds.prove(as_expr(index) >= 0):
        conditions.append(as_expr(index) >= const(0, dtype_of(as_expr(index))))
    if not bounds.prove(as_expr(index) < as_expr(extent)):
        conditions.append(as_expr(index) < as_expr(extent))
    return reduce(tirx.And, conditions) if conditions else None
