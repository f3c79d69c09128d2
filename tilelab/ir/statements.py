"""Walking statements: the few kinds that hold others, their children, and rebuilding them with others."""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tvm import tirx

from tilelab.ir.nodes import AttrStmt, For, IfThenElse, SeqStmt, Stmt, While

__all__ = ["children", "each_statement", "flatten", "is_empty", "map_statement", "seq", "with_children"]


def children(node: Any) -> tuple[Stmt, ...]:
    """The statements that stand directly inside `node`, in order; empty for leaves."""
    match node:
        case SeqStmt():
            return tuple(node.seq)
        case For() | While() | AttrStmt():
            return (node.body,)
        case IfThenElse():
            return (node.then_case,) if node.else_case is None else (node.then_case, node.else_case)
        case tirx.PrimFunc():
            return (node.body,)
        case _:
            return ()


def with_children(node: Stmt, new: tuple[Stmt, ...]) -> Stmt:
    """`node` with its children replaced; its own fields and span stay. The very node when nothing changed."""
    old = children(node)
    if len(old) == len(new) and all(a.same_as(b) for a, b in zip(old, new, strict=True)):
        return node
    match node:
        case SeqStmt():
            return seq(*new, span=node.span)
        case For():
            return For(
                node.loop_var,
                node.min,
                node.extent,
                node.kind,
                new[0],
                node.thread_binding,
                node.annotations,
                node.step,
                node.span,
            )
        case While():
            return While(node.condition, new[0], node.span)
        case AttrStmt():
            return AttrStmt(node.node, node.attr_key, node.value, new[0], node.span)
        case IfThenElse():
            return IfThenElse(node.condition, new[0], new[1] if len(new) > 1 else None, node.span)
    raise AssertionError(f"{type(node).__name__} holds no statements")


def is_empty(node: Stmt) -> bool:
    """Whether the statement does nothing: an empty sequence, or the evaluation of a constant."""
    if isinstance(node, SeqStmt):
        return len(node.seq) == 0
    return isinstance(node, tirx.Evaluate) and isinstance(node.value, tirx.IntImm)


def flatten(node: Stmt) -> list[Stmt]:
    """The statement as a list: nested sequences are opened and empty statements dropped."""
    if isinstance(node, SeqStmt):
        return [leaf for part in node.seq for leaf in flatten(part)]
    return [] if is_empty(node) else [node]


def seq(*parts: Stmt, span: Any = None) -> Stmt:
    """The statements one after another, flattened; a single one stands alone, none is `Evaluate(0)`."""
    flat = [leaf for part in parts for leaf in flatten(part)]
    if not flat:
        return tirx.Evaluate(0)
    return flat[0] if len(flat) == 1 else SeqStmt(flat, span)


def each_statement(node: Any) -> Iterator[Stmt]:
    """Every statement inside `node`, itself included, outer before inner, in source order."""
    if isinstance(node, Stmt):
        yield node
    for child in children(node):
        yield from each_statement(child)


def map_statement(node: Stmt, go: Callable[[Stmt], Stmt]) -> Stmt:
    """`node` with `go` applied to each direct child: the step of a hand-written recursion over statements."""
    kids = children(node)
    return with_children(node, tuple(go(kid) for kid in kids)) if kids else node
