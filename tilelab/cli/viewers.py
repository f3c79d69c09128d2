"""Viewers that are installed beside the compiler, found by the entry-point group `tilelab.view`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from tilelab.errors import TileError
from tilelab.trace.record import Trace
from tilelab.trace.schema import TracePayload

__all__ = ["html_of", "pass_table", "text_of", "viewer"]


def viewer(name: str) -> Callable[..., Any] | None:
    """The installed viewer of that name (html or text), or None."""
    for point in entry_points(group="tilelab.view", name=name):
        return point.load()
    return None


def html_of(trace: Trace) -> str:
    """The trace as one page that opens offline. Raises TL403 where no viewer is installed."""
    make = viewer("html")
    if make is None:
        raise TileError(
            "TL403",
            "no viewer that writes HTML is installed",
            help="install tilelab itself, not only its folder: pip install -e . in the checkout",
        )
    return make(trace.payload())


def text_of(trace: Trace, step: str | None, color: bool, width: int) -> str:
    """The table of passes, or one pass in full. Raises TL406 for a pass that is not there."""
    make = viewer("text")
    if make is not None:
        return make(trace.payload(), step, color, width)
    payload = trace.payload()
    if step is None:
        return pass_table(payload)
    found = [s for s in payload.steps if s.name == step]
    if not found:
        names = ", ".join(s.name for s in payload.steps)
        raise TileError("TL406", f"the trace has no pass {step!r}", help=f"passes: {names}")
    return "\n".join(line.text for line in found[-1].lines)


def pass_table(payload: TracePayload) -> str:
    """One line a pass: number, name, stage, milliseconds, what it did, lines added and removed, and the
    reason.
    """
    rows = [f"{'no':>3}  {'pass':<22} {'stage':<9} {'ms':>7}  {'status':<10} {'lines':>9}  reason"]
    for number, step in enumerate(payload.steps):
        lines = f"+{step.added} -{step.removed}" if step.status == "changed" else ""
        rows.append(
            f"{number:>3}  {step.name:<22} {step.stage:<9} {step.seconds * 1e3:>7.1f}  "
            f"{step.status:<10} {lines:>9}  {step.reason}".rstrip()
        )
    return "\n".join(rows)
