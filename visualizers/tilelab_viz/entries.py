"""A Trace as the list that every form of the view shows: the user's source, each step, the target's code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilelab.trace.schema import Hit, Line, Note, Step, TracePayload
from tilelab_viz.diff import Hunk, changed_hunks, plain_hunk

__all__ = ["SIGNS", "Entry", "entries_of", "summary"]

Kind = Literal["source", "step", "code"]

# A sign beside each status, so that colour is never the only way to tell them apart.
SIGNS = {"source": "»", "changed": "●", "unchanged": "○", "skipped": "–", "failed": "✕", "code": "»"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the list: what ran, its lines afterwards, and how they differ from entry number `base`.

    `status` is one of the schema's four, or `source` or `code` for the two ends. `milliseconds` is None
    there.
    """

    kind: Kind
    name: str
    doc: str
    stage: str
    milliseconds: float | None
    status: str
    reason: str
    lines: tuple[Line, ...]
    notes: tuple[Note, ...] = ()
    hits: tuple[Hit, ...] = ()
    added: int = 0
    removed: int = 0
    base: int | None = None
    hunks: tuple[Hunk, ...] = ()


def entries_of(payload: TracePayload) -> tuple[Entry, ...]:
    """The entries in execution order; number 0 is the source, the last the target's code if any."""
    entries = [_source_entry(payload)]
    for step in payload.steps:
        entries.append(_step_entry(step, entries))
    if payload.code is not None:
        before = entries[-1]
        entries.append(
            Entry(
                "code",
                f"{payload.code.language} code",
                f"The program as printed for {payload.target}.",
                "code",
                None,
                "code",
                "",
                payload.code.lines,
                added=len(payload.code.lines),
                base=len(entries) - 1,
                hunks=(plain_hunk(len(before.lines), len(payload.code.lines)),),
            )
        )
    return tuple(entries)


def summary(payload: TracePayload) -> str:
    """One line: how many of the steps changed the program or failed, and their time together."""
    changed = sum(step.status == "changed" for step in payload.steps)
    failed = sum(step.status == "failed" for step in payload.steps)
    total = sum(step.seconds for step in payload.steps) * 1e3
    text = f"{changed} of {len(payload.steps)} passes changed the program"
    return f"{text}{f', {failed} failed' if failed else ''} · {total:.1f} ms"


def _source_entry(payload: TracePayload) -> Entry:
    first = payload.source.first_line
    lines = tuple(Line(text, (first + i, first + i)) for i, text in enumerate(payload.source.lines))
    where = payload.source.cell or payload.source.file
    return Entry(
        "source", "source", f"The kernel as it was written, in {where}.", "source", None, "source", "", lines
    )


def _step_entry(step: Step, before: list[Entry]) -> Entry:
    last = before[-1]
    lines = step.lines or (last.lines if last.kind == "step" else ())
    if last.kind == "source":
        hunks: tuple[Hunk, ...] = (plain_hunk(len(last.lines), len(lines)),)
        added, removed = len(lines), 0
    else:
        hunks = changed_hunks([line.text for line in last.lines], [line.text for line in lines])
        added, removed = step.added, step.removed
    return Entry(
        "step",
        step.name,
        step.doc,
        step.stage,
        step.seconds * 1e3,
        step.status,
        step.reason,
        lines,
        step.notes,
        step.hits,
        added,
        removed,
        base=len(before) - 1,
        hunks=hunks,
    )
