"""Put a condition on every access that might leave its buffer: loads give zero there, stores are left out.

What can be proved from the bounds of loops and the conditions around needs no guard, so that shapes which
divide by the tile stay free of them. A vector is guarded as a whole where the buffer's extent and the
vector's start are multiples of its width; otherwise its loop is done element by element, and the trace says
so. Asynchronous copies carry the condition as their predicate.

Before (cuda:sm_80, threads=32):

    for k in T.serial(5):
        B[k * 32 + tx] = A[k * 32 + tx]

After:

    for k in T.serial(5):
        if k < 4:
            B[k * 32 + tx] = A[k * 32 + tx]
"""

from __future__ import annotations

from typing import Any

from tilelab.hardware import row
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, in_bounds
from tilelab.ir.nodes import (
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
    dtype_of,
)
from tilelab.ir.rewrite import collect, record_hit, rewrite, substitute
from tilelab.ir.scoped import Scope, map_inside, map_scoped
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, flatten, with_children
from tilelab.ir.tile_ops import op_of
from tilelab.passes.base import Pass, because, slow

__all__ = ["guard_bounds"]

_CHECKED = ("global", "shared.dyn")
# Of a tensor memory copy the hardware checks the bounds itself.
_CHECKED_BY_HARDWARE = ("tma",)


def _conditions(buffer: Var, indices: Any, bounds: Bounds) -> list[Any]:
    if str(buffer.scope()) not in _CHECKED:
        return []
    found = [in_bounds(i, n, bounds) for i, n in zip(indices, buffer.shape, strict=True)]
    return [bounds.simplify(c) for c in found if c is not None]


def _guard_loads(value: Any, bounds: Bounds, guarded: list[Any]) -> Any:
    def load(node: Load) -> Any:
        conditions = _conditions(node.source, node.indices, bounds)
        if not conditions:
            return None
        guarded.append(node)
        return b.select(b.all_of(conditions), node, b.const(0, dtype_of(node.source)))

    return rewrite(value, (Load, load))


class _Guard:
    """The rule, and how many accesses it guarded."""

    def __init__(self) -> None:
        self.count = 0

    def rule(self, node: Stmt, scope: Scope) -> Stmt | None:
        if isinstance(node, For) and node.kind == b.VECTORIZED:
            return self.vector(node, scope)
        if children(node):
            return self._head(node, scope)
        new = self.leaf(node, scope.bounds)
        if new is not node:
            record_hit("guard_access", node, new)
        return new

    def _head(self, node: Stmt, scope: Scope) -> Stmt | None:
        """A branch or a loop whose own condition or extent loads: these are guarded, then its inside."""
        guarded: list[Any] = []
        match node:
            case IfThenElse():
                condition = _guard_loads(node.condition, scope.bounds, guarded)
                new: Stmt = IfThenElse(condition, node.then_case, node.else_case, node.span)
            case While():
                new = While(_guard_loads(node.condition, scope.bounds, guarded), node.body, node.span)
            case For():
                first, extent = (_guard_loads(x, scope.bounds, guarded) for x in (node.min, node.extent))
                new = For(
                    node.loop_var,
                    first,
                    extent,
                    node.kind,
                    node.body,
                    node.thread_binding,
                    node.annotations,
                    node.step,
                    node.span,
                )
            case _:
                return None
        if not guarded:
            return None
        self.count += len(guarded)
        record_hit("guard_access", node, new)
        # What the condition loads is zero outside the tensor; it stays a fact inside, as it was.
        inner = [scope.inside(new)] * 2
        if isinstance(new, IfThenElse):
            inner = [scope.given(new.condition), scope.given(b.negation(new.condition))]
        kids = zip(children(new), inner, strict=False)
        return with_children(new, tuple(map_inside(kid, place, self.rule, facts=True) for kid, place in kids))

    def leaf(self, node: Stmt, bounds: Bounds) -> Stmt:
        guarded: list[Any] = []
        conditions: list[Any] = []
        new = node
        if isinstance(node, TileCall):
            new, conditions = self._tile(node, bounds)
        else:
            if isinstance(node, Store):
                conditions = _conditions(node.buffer, node.indices, bounds)
            # Inside the guard its condition is known, so loads of the same place need none of their own.
            inner = bounds
            for condition in conditions:
                inner = inner.given(condition)
            new = _guard_loads(node, inner, guarded)
        self.count += len(guarded) + len(conditions)
        with at(node.span):
            return b.if_(b.all_of(conditions), new) if conditions else new

    def _tile(self, node: TileCall, bounds: Bounds) -> tuple[Stmt, list[Any]]:
        name = op_of(node).name
        if name != "issue":
            if name != "atomic_add":
                return node, []
            return self._atomic(node, bounds)
        family = row(str(b.plain(node.config)["row"])).family
        if family in _CHECKED_BY_HARDWARE:
            return node, []
        conditions = []
        for arg in node.args:
            if isinstance(arg, Region) and str(arg.source.scope()) == "global":
                conditions += _conditions(arg.source, [r.min for r in arg.region], bounds)
        if not conditions:
            return node, []
        self.count += 1
        return b.tile_with(node, *node.args, b.all_of(conditions)), []

    def _atomic(self, node: TileCall, bounds: Bounds) -> tuple[Stmt, list[Any]]:
        """An addition to one element: its place and value may load, and it is left out outside its buffer."""
        guarded: list[Any] = []
        new = _guard_loads(node, bounds, guarded)
        self.count += len(guarded)
        regions = [arg for arg in new.args if isinstance(arg, Region)]
        return new, [c for a in regions for c in _conditions(a.source, [r.min for r in a.region], bounds)]

    # ---- vectors

    def vector(self, loop: For, scope: Scope) -> Stmt:
        inner = scope.inside(loop)
        body = flatten(loop.body)
        if any(children(s) for s in body):
            if not any(
                self.leaf_count(s, inner.bounds) for s in each_statement(loop.body) if not children(s)
            ):
                return loop
            return self._one_by_one(loop, scope, "a branch or a loop stands in it")
        lanes = b.as_int(loop.extent) or 1
        plain = [s for s in body if self.leaf_count(s, inner.bounds)]
        if not plain:
            return loop
        first = {loop.loop_var: b.const(0)}
        whole = all(self._is_whole(s, loop.loop_var, lanes, scope.bounds) for s in body)
        if not whole:
            return self._one_by_one(loop, scope, "the tensor's edge can lie inside it")
        out: list[Stmt] = []
        for statement in body:
            with at(statement.span):
                out.append(self._whole_vector(statement, loop, first, scope.bounds))
        return b.seq(*out)

    def _one_by_one(self, loop: For, scope: Scope, why: str) -> Stmt:
        slow(f"a vector of {loop.extent} elements is done one at a time: {why}", loop.span)
        unrolled = For(loop.loop_var, loop.min, loop.extent, b.UNROLLED, loop.body, span=loop.span)
        return map_inside(unrolled, scope, self.rule, facts=True)

    def leaf_count(self, node: Stmt, bounds: Bounds) -> int:
        """How many accesses of a statement need a guard."""
        total = sum(bool(_conditions(x.source, x.indices, bounds)) for x in collect(node, Load))
        if isinstance(node, Store):
            total += bool(_conditions(node.buffer, node.indices, bounds))
        return total

    def _is_whole(self, node: Stmt, lane: Var, lanes: int, bounds: Bounds) -> bool:
        """Whether the lanes of every access are either all inside or all outside."""
        places = [(x.source, x.indices) for x in collect(node, Load)]
        if isinstance(node, Store):
            places.append((node.buffer, node.indices))
        for buffer, indices in places:
            if str(buffer.scope()) not in _CHECKED:
                continue
            if any(_has(i, lane) for i in list(indices)[:-1]):
                return False
            if _has(indices[-1], lane):
                start = substitute(indices[-1], {lane: b.const(0)})
                if not b.moves_by_one(indices[-1], lane):
                    return False
                if bounds.divisor(start) % lanes or bounds.divisor(buffer.shape[-1]) % lanes:
                    return False
        return True

    def _whole_vector(self, node: Stmt, loop: For, first: dict[Var, Any], bounds: Bounds) -> Stmt:
        conditions: list[Any] = []
        if isinstance(node, Store):
            start = [substitute(i, first) for i in node.indices]
            conditions = _conditions(node.buffer, start, bounds)
        inner = bounds
        for condition in conditions:
            inner = inner.given(condition)

        def load(access: Load) -> Any:
            wanted = _conditions(access.source, [substitute(i, first) for i in access.indices], inner)
            if not wanted:
                return None
            self.count += 1
            return b.select(b.all_of(wanted), access, b.const(0, dtype_of(access.source)))

        self.count += len(conditions)
        new = rewrite(node, (Load, load))
        with at(loop.span):
            vector = For(loop.loop_var, loop.min, loop.extent, loop.kind, new, span=loop.span)
        return b.if_(b.all_of(conditions), vector) if conditions else vector


def _has(value: Any, variable: Var) -> bool:
    return any(v.same_as(variable) for v in collect(value, Var))


def run(f: PrimFunc) -> PrimFunc:
    guard = _Guard()
    new = map_scoped(f, guard.rule, facts=True)
    if not guard.count:
        because("every access is surely inside its buffer")
        return f
    return new


guard_bounds = Pass("guard_bounds", run, needs="threaded", gives="threaded")
