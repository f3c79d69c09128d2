"""Where a node comes from: TVM spans, the current span of the builders, and their translation to
`errors.Place`.

A span is fixed when its node is built, so builders read a current span: `at(span)` sets it, and `rewrite`
does so for each rule. A container without a span takes the union of its children's when it is read
(`span_of`), not when built.
"""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tvm import ir

from tilelab.errors import Place, place

__all__ = ["at", "call_of", "call_sites", "current_span", "join", "make_span", "place_of", "span_of"]

_current: ContextVar[ir.Span | None] = ContextVar("tilelab_span", default=None)


def make_span(file: str, line: int, end_line: int, column: int, end_column: int) -> ir.Span:
    """A span in `file`; lines and columns count from 1, the end column is exclusive."""
    return ir.Span(ir.SourceName(file), line, end_line, column, end_column)


@contextmanager
def at(span: Any) -> Iterator[None]:
    """Nodes built inside carry `span`, and errors raised inside point at it; None keeps the span in force."""
    if span is None:
        yield
        return
    token = _current.set(span)
    try:
        with place(place_of(span)):
            yield
    finally:
        _current.reset(token)


def current_span() -> ir.Span | None:
    """The span that new nodes get."""
    return _current.get()


def _innermost(span: Any) -> Any:
    while isinstance(span, ir.SequentialSpan):
        span = span.spans[-1]
    return span


def _outermost(span: Any) -> Any:
    while isinstance(span, ir.SequentialSpan):
        span = span.spans[0]
    return span


def call_of(span: Any) -> ir.Span | None:
    """The span as a single one, for nodes that take no chain: of an inlined macro, its call in the kernel."""
    return None if span is None else _outermost(span)


def place_of(span: Any, label: str = "") -> Place | None:
    """The place that a reader should look at: for an inlined macro, the call in the kernel itself."""
    if span is None:
        return None
    first = _outermost(span)
    return Place(
        str(first.source_name.name),
        int(first.line),
        int(first.column),
        int(first.end_line),
        int(first.end_column),
        label,
    )


def call_sites(span: Any) -> tuple[int, ...]:
    """Lines of the macro calls that led here, outermost first; empty for code that stands in the kernel
    itself.
    """
    if not isinstance(span, ir.SequentialSpan):
        return ()
    return tuple(int(_innermost(part).line) for part in span.spans)


def join(*spans: Any) -> ir.Span | None:
    """The smallest span that covers all given ones of the first one's file; None when there is none."""
    known = [_outermost(s) for s in spans if s is not None]
    if not known:
        return None
    known = [s for s in known if s.source_name.name == known[0].source_name.name]
    first = min(known, key=lambda s: (int(s.line), int(s.column)))
    last = max(known, key=lambda s: (int(s.end_line), int(s.end_column)))
    return make_span(
        str(first.source_name.name),
        int(first.line),
        int(last.end_line),
        int(first.column),
        int(last.end_column),
    )


def span_of(node: Any) -> ir.Span | None:
    """The node's own span, or for a container the union of the spans of what it holds."""
    if node.span is not None:
        return node.span
    from tilelab.ir.statements import children

    return join(*(span_of(child) for child in children(node)))
