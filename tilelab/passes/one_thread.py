"""Work of one thread: branches on the elected thread put together, and roles left to it as a whole."""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.nodes import (
    AllocBuffer,
    AttrStmt,
    Bind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    same_structure,
)
from tilelab.ir.scoped import Scope, map_scoped
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, flatten, seq, with_children
from tilelab.passes.share_out import elected

__all__ = ["by_one_thread", "merge_guards"]


def merge_guards(node: Stmt) -> Stmt:
    """Neighbouring branches under one condition become one."""
    kids = children(node)
    node = with_children(node, tuple(merge_guards(k) for k in kids)) if kids else node
    if not isinstance(node, SeqStmt):
        return node
    out: list[Stmt] = []
    for part in flatten(node):
        last = out[-1] if out else None
        if (
            last is not None
            and _is_guard(part)
            and _is_guard(last)
            and same_structure(part.condition, last.condition)
        ):
            out[-1] = IfThenElse(last.condition, seq(last.then_case, part.then_case), None, last.span)
        else:
            out.append(part)
    return seq(*out, span=node.span)


def _is_guard(node: Stmt | None) -> bool:
    return isinstance(node, IfThenElse) and node.else_case is None


def _without_guard(node: Stmt, condition: Any) -> Stmt | None:
    """The statement as the condition's thread does it; None where other threads have work of their own."""
    if _is_guard(node) and same_structure(node.condition, condition):
        return node.then_case
    kids = children(node)
    if kids:
        inner = [_without_guard(k, condition) for k in kids]
        return None if any(k is None for k in inner) else with_children(node, tuple(inner))
    buffer = node.buffer if isinstance(node, AllocBuffer | Store) else None
    is_scalar = isinstance(node, Bind) or (buffer is not None and str(buffer.scope()) == "local.var")
    return node if is_scalar else None


def by_one_thread(f: PrimFunc) -> PrimFunc:
    """The function with each role in which only the elected thread has work left to that thread."""

    def role(node: Stmt, scope: Scope) -> Stmt | None:
        if b.group_of(node) is None:
            return None
        return _guarded_whole(node, elected(f, scope.inside(node)))

    return map_scoped(f, role)


def _guarded_whole(node: Stmt, condition: Any) -> Stmt | None:
    """A role's scopes with one branch around all inside, where only one thread has work in it."""
    if isinstance(node.body, AttrStmt):
        inner = _guarded_whole(node.body, condition)
        return None if inner is None else with_children(node, (inner,))
    alone = _without_guard(node.body, condition)
    if alone is None or not any(_is_guard(s) for s in each_statement(node.body)):
        return None
    with at(node.span):
        return with_children(node, (b.if_(condition, alone),))
