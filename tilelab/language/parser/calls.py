"""Calls of helpers that are inlined: the spans of the calls that lead to a statement, and a limit of their
depth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tilelab.errors import TileError

__all__ = ["callers_of", "deeper"]

MOST_CALLS = 60
_depth: ContextVar[int] = ContextVar("tilelab_macro_depth", default=0)


def callers_of(span: Any) -> tuple[Any, ...]:
    """The spans of the calls that lead to a place, outermost first."""
    if span is None:
        return ()
    return tuple(span.spans) if hasattr(span, "spans") else (span,)


@contextmanager
def deeper() -> Iterator[None]:
    """One more call inside of the others; TileError when they never end."""
    depth = _depth.get() + 1
    if depth > MOST_CALLS:
        raise TileError(
            "TL101",
            f"{MOST_CALLS} calls of macros inside each other: one calls itself without an end",
            help="a macro is copied in where it is called; use a loop",
        )
    token = _depth.set(depth)
    try:
        yield
    finally:
        _depth.reset(token)
