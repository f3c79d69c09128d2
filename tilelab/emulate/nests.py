"""Scalar loops whose iterations provably do not touch one another: the emulator runs them as lanes.

A block of one thread is loops over single elements; a nest of them that ends in one store becomes one NumPy
statement when the store's indices are different in every iteration and the stored buffer is read at those
indices only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelab.ir import nodes as n
from tilelab.ir.nodes import same_structure
from tilelab.ir.rewrite import collect
from tilelab.ir.statements import flatten

__all__ = ["Nest", "lane_nests", "updates_shared_elements"]


@dataclass(frozen=True)
class Nest:
    """Loops, outermost first, around one statement: a store, or a branch without else around one."""

    loops: tuple[Any, ...]
    body: Any


def lane_nests(loop: Any) -> list[Nest] | None:
    """The loop as nests that may run one after another, each with its iterations as lanes; None if it may
    not.
    """
    nests = _perfect(loop)
    if nests is None or not all(_is_independent(nest) for nest in nests):
        return None
    written = [_store_of(nest.body).buffer for nest in nests]
    for position, buffer in enumerate(written):
        # Splitting a loop over its statements reorders them: each must keep to itself what it writes.
        others = [nest for at, nest in enumerate(nests) if at != position]
        if any(_touches(nest, buffer) for nest in others):
            return None
    return nests


def updates_shared_elements(loop: Any) -> bool:
    """Whether iterations may update one element in turn: what an atomic becomes in a block of one thread."""
    for store in collect(loop.body, n.Store):
        if any(load.source.same_as(store.buffer) for load in collect(store.value, n.Load)):
            return True
    return False


def _perfect(node: Any) -> list[Nest] | None:
    if isinstance(node, n.For):
        if node.step is not None or not isinstance(node.extent, n.IntImm):
            return None
        inner = [_perfect(part) for part in flatten(node.body)]
        if not inner or any(part is None for part in inner):
            return None
        return [Nest((node, *nest.loops), nest.body) for part in inner for nest in part or ()]
    return [Nest((), node)] if _store_of(node) is not None else None


def _store_of(node: Any) -> Any:
    """The one store in a statement, None if it is another kind of statement."""
    while isinstance(node, n.IfThenElse) and node.else_case is None:
        node = node.then_case
    if isinstance(node, n.SeqStmt) and len(node.seq) == 1:
        return _store_of(node.seq[0])
    if not isinstance(node, n.Store) or any(isinstance(i, n.Ramp) for i in node.indices):
        return None
    return node


def _touches(nest: Nest, buffer: Any) -> bool:
    parts = [nest.body, *(loop.min for loop in nest.loops)]
    return any(var.same_as(buffer) for part in parts for var in collect(part, n.Var))


def _is_independent(nest: Nest) -> bool:
    store = _store_of(nest.body)
    for load in collect(nest.body, n.Load):
        if load.source.same_as(store.buffer) and not all(
            same_structure(a, c) for a, c in zip(load.indices, store.indices, strict=True)
        ):
            return False
    extents = {loop.loop_var: int(loop.extent) for loop in nest.loops}
    seen: set[Any] = set()
    for index in store.indices:
        terms = _linear(index, extents)
        if terms is None:
            return False
        reached = 1
        for var, step in sorted(terms.items(), key=lambda item: item[1]):
            if step < reached or var in seen:
                return False
            reached = step * extents[var]
            seen.add(var)
    return all(var in seen or extent == 1 for var, extent in extents.items())


def _linear(index: Any, extents: dict[Any, int]) -> dict[Any, int] | None:
    """The factors of the nest's variables in an index; None if it is not linear in them with positive
    factors.
    """
    if isinstance(index, n.Var):
        return {index: 1} if index in extents else {}
    if not any(var in extents for var in collect(index, n.Var)):
        return {}
    if isinstance(index, n.Add):
        left, right = _linear(index.a, extents), _linear(index.b, extents)
        if left is None or right is None or set(left) & set(right):
            return None
        return left | right
    if isinstance(index, n.Mul):
        value, factor = (index.a, index.b) if isinstance(index.b, n.IntImm) else (index.b, index.a)
        terms = _linear(value, extents)
        if terms is None or not isinstance(factor, n.IntImm) or int(factor) <= 0:
            return None
        return {var: step * int(factor) for var, step in terms.items()}
    return None
