"""Rewriting: rules are (node type, function) pairs; each runs inside its node's span, and its hits are
recorded.

This is the one file that knows TVM's structural map and walk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import tvm_ffi

from tilelab.ir.spans import at, current_span

__all__ = ["RuleHit", "collect", "recording", "rewrite", "substitute", "walk"]

Rule = tuple[Any, Callable[[Any], Any]]


@dataclass(frozen=True)
class RuleHit:
    """A rule that fired: its name, the node's span, and the nodes before and after."""

    rule: str
    span: Any
    before: Any
    after: Any


_hits: ContextVar[list[RuleHit] | None] = ContextVar("tilelab_rule_hits", default=None)


@contextmanager
def recording(hits: list[RuleHit]):
    """Rules that fire inside append to `hits`."""
    token = _hits.set(hits)
    try:
        yield
    finally:
        _hits.reset(token)


def record_hit(rule: str, before: Any, after: Any) -> None:
    """Record a rewrite that a hand-written recursion made, as `rewrite` does for its rules."""
    if (hits := _hits.get()) is not None:
        hits.append(RuleHit(rule, getattr(before, "span", None), before, after))


@contextmanager
def _own_errors(raised: list[BaseException]):
    """Errors of callbacks come back as they were raised: TVM's walkers would turn them into errors of its
    own.
    """
    try:
        yield
    except Exception:
        if raised:
            raise raised[0] from None
        raise


def _kept(raised: list[BaseException], function: Callable[[Any], Any], node: Any) -> Any:
    try:
        return function(node)
    except Exception as error:
        raised.append(error)
        raise


def rewrite(root: Any, *rules: Rule) -> Any:
    """Apply the rules to every node, children first; a rule returns the new node, or None to keep it."""
    raised: list[BaseException] = []

    def wrapped(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def go(node: Any) -> Any:
            with at(getattr(node, "span", None) or current_span()):
                new = _kept(raised, rule, node)
            if new is None:
                return node
            record_hit(rule.__name__, node, new)
            return new

        return go

    with _own_errors(raised):
        return tvm_ffi.structural_map(root, [(kind, wrapped(rule)) for kind, rule in rules])


def walk(root: Any, *visits: Rule) -> None:
    """Call each visit's function on every node of its type, children first."""

    raised: list[BaseException] = []

    def silent(visit: Callable[[Any], Any]) -> Callable[[Any], None]:
        def go(node: Any) -> None:
            _kept(raised, visit, node)

        return go

    with _own_errors(raised):
        tvm_ffi.structural_walk(root, [(kind, silent(visit)) for kind, visit in visits])


def collect(root: Any, kind: Any) -> list[Any]:
    """Every node of the type inside `root`, children first."""
    found: list[Any] = []
    walk(root, (kind, found.append))
    return found


def substitute(root: Any, mapping: dict[Any, Any]) -> Any:
    """`root` with variables (or buffers) replaced; keys are compared by identity."""
    from tvm.ir import Var

    table = list(mapping.items())

    def replace(node: Any) -> Any:
        for key, value in table:
            if node.same_as(key):
                return value
        return node

    return tvm_ffi.structural_map(root, [(Var, replace)])
