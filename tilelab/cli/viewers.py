"""Viewers that are installed beside the compiler, found by the entry-point group `tilelab.view`."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tilelab.errors import TileError
from tilelab.trace.record import Trace
from tilelab.trace.schema import TracePayload

__all__ = ["html_of", "pass_table", "text_of", "viewer", "write_page"]


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
    _check_step(trace.payload(), step)
    make = viewer("text")
    if make is not None:
        return make(trace.payload(), step, color, width)
    payload = trace.payload()
    if step is None:
        return pass_table(payload)
    if step in ("0", "source"):
        return "\n".join(payload.source.lines)
    found = [s for i, s in enumerate(payload.steps, 1) if step in (s.name, str(i))]
    lines = found[-1].lines if found else payload.code.lines if payload.code is not None else ()
    return "\n".join(line.text for line in lines)


def _check_step(payload: TracePayload, step: str | None) -> None:
    """Raise TL406 for a pass that is not in the trace, with all that are, the nearest name first."""
    names = list(dict.fromkeys(["source", *(s.name for s in payload.steps)]))
    if payload.code is not None:
        names += ["code"]
    numbers = len(payload.steps) + 1 + (payload.code is not None)
    code_name = "" if payload.code is None else f"{payload.code.language} code"
    if step is None or step in (*names, code_name) or (step.isdecimal() and int(step) < numbers):
        return
    near = get_close_matches(step, names, 3, 0.5)
    listed = ", ".join([*near, *(n for n in names if n not in near)])
    raise TileError("TL406", f"the trace has no pass {step!r}", help=f"passes: {listed}")


def write_page(place: Path, text: str) -> None:
    """Write a page. Raises TL406 where the folder is missing or cannot be written."""
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        why = f"the folder {place.parent} is missing" if not place.parent.is_dir() else error.strerror
        raise TileError("TL406", f"{place} cannot be written: {why}") from None


def pass_table(payload: TracePayload) -> str:
    """One line a pass: number (0 is the source), name, stage, milliseconds, what it did, lines added and
    removed, and the reason.
    """
    rows = [f"{'no':>3}  {'pass':<22} {'stage':<9} {'ms':>7}  {'status':<10} {'lines':>9}  reason"]
    for number, step in enumerate(payload.steps, 1):
        lines = f"+{step.added} -{step.removed}" if step.status == "changed" else ""
        rows.append(
            f"{number:>3}  {step.name:<22} {step.stage:<9} {step.seconds * 1e3:>7.1f}  "
            f"{step.status:<10} {lines:>9}  {step.reason}".rstrip()
        )
    return "\n".join(rows)
