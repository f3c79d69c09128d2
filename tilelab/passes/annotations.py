"""Read the layouts that planning wrote on allocations and nests, and the room that they take."""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, For
from tilelab.layout import Composed, Fragment, Layout, parse

__all__ = ["elements_in_memory", "fragment_of", "layout_text", "memory_layout_of"]


def layout_text(node: AllocBuffer | For) -> str | None:
    """The layout annotation of an allocation or a nest, or None."""
    return b.plain(node.annotations).get("tl.layout")


def fragment_of(node: AllocBuffer | For) -> Fragment:
    """The fragment that an allocation or a nest is annotated with."""
    found = parse(layout_text(node) or "")
    assert isinstance(found, Fragment), f"{node} has no fragment"
    return found


def memory_layout_of(node: AllocBuffer) -> Layout | Composed:
    """The layout of a tile in memory that an allocation is annotated with."""
    found = parse(layout_text(node) or "")
    assert not isinstance(found, Fragment), f"{node} is a fragment"
    return found


def elements_in_memory(layout: Layout | Composed) -> int:
    """The elements that a tile takes: whole periods of its swizzle, since that permutes within its period."""
    period = layout.swizzle.period if isinstance(layout, Composed) else 1
    return -(-layout.cosize // period) * period
