"""Recursion over statements with what is known at each place: bounds of variables, bindings, allocations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.ir.build import group_of, negation
from tilelab.ir.indices import Bounds
from tilelab.ir.nodes import AllocBuffer, AttrStmt, IfThenElse, PrimFunc, Stmt, Var
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, seq, with_children

__all__ = [
    "Scope",
    "allocations",
    "block_body",
    "map_inside",
    "map_scoped",
    "with_block_body",
]


class Scope:
    """What holds at a place: bounds of the variables, and the threads that run it (group name, first, count).

    `thread` is the variable bound to threadIdx.x, which inside a group of a one-dimensional block has the
    group's range.
    """

    def __init__(
        self, bounds: Bounds, group: tuple[str, int, int] | None = None, thread: Var | None = None
    ) -> None:
        self.bounds = bounds
        self.group = group
        self.thread = thread

    def inside(self, node: Stmt) -> Scope:
        """The scope in the body of a loop, a launch binding or a group."""
        bound, group = _thread_of(node), group_of(node)
        thread = self.thread if bound is None else bound
        bounds = self.bounds.inside(node)
        if group is not None and thread is not None:
            bounds = bounds.narrowed(thread, *group[1:])
        return Scope(bounds, group or self.group, thread)

    def given(self, fact: Any) -> Scope:
        """The scope where a condition holds."""
        return Scope(self.bounds.given(fact), self.group, self.thread)


def _thread_of(node: Stmt) -> Var | None:
    """The variable that a launch binding binds to threadIdx.x."""
    is_launch = isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent"
    return node.node.var if is_launch and str(node.node.thread_tag) == "threadIdx.x" else None


Rule = Callable[[Stmt, Scope], Stmt | None]


def map_scoped(f: PrimFunc, rule: Rule, *, facts: bool = False) -> PrimFunc:
    """The function with `rule` applied to each statement, outer ones first.

    A rule returns the new statement, which is not entered again, or None to go on inside. With `facts` the
    condition of a branch is known inside its sides.
    """
    return f.with_body(_map(f.body, Scope(Bounds()), rule, facts))


def map_inside(node: Stmt, scope: Scope, rule: Rule, *, facts: bool = False) -> Stmt:
    """The statement with `rule` applied as by `map_scoped`, from a given scope on."""
    return _map(node, scope, rule, facts)


def _map(node: Stmt, scope: Scope, rule: Rule, facts: bool) -> Stmt:
    with at(node.span):
        new = rule(node, scope)
    if new is not None:
        return new
    kids = children(node)
    if not kids:
        return node
    if facts and isinstance(node, IfThenElse):
        sides = [scope.given(node.condition), scope.given(negation(node.condition))]
        return with_children(node, tuple(_map(k, s, rule, facts) for k, s in zip(kids, sides, strict=False)))
    inner = scope.inside(node)
    return with_children(node, tuple(_map(kid, inner, rule, facts) for kid in kids))


def allocations(f: PrimFunc) -> list[AllocBuffer]:
    """Every allocation, in order."""
    return [node for node in each_statement(f.body) if isinstance(node, AllocBuffer)]


def block_body(f: PrimFunc) -> Stmt:
    """What one block executes: the body inside the launch bindings."""
    node = f.body
    while isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
        node = node.body
    return node


def with_block_body(f: PrimFunc, body: Stmt) -> PrimFunc:
    """The function with another block body inside the same launch bindings."""

    def go(node: Stmt) -> Stmt:
        if isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
            return with_children(node, (go(node.body),))
        return seq(body)

    return f.with_body(go(f.body))
