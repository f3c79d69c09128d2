"""The Trace: what a run of a pipeline leaves behind, rendered only when it is read."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilelab.trace.schema import SCHEMA, Code, Hit, Line, Note, Source, Status, Step, TracePayload, to_json

__all__ = ["RecordedStep", "Trace"]


@dataclass
class RecordedStep:
    """One step as the runner saw it; `render` gives the IR's lines when somebody looks."""

    name: str
    doc: str
    stage: str
    seconds: float
    status: Status
    reason: str
    render: Callable[[], list[Line]]
    hits: Callable[[], tuple[Hit, ...]] = tuple
    notes: tuple[Note, ...] = ()
    function: Any = None


@dataclass
class Trace:
    """Every step of one compile, in order; the first is the IR as parsed.

    In a notebook the trace shows itself as the pass viewer when `tilelab_viz` is installed, else as text.
    """

    kernel: str
    target: str
    source: Source
    steps: list[RecordedStep] = field(default_factory=list)
    code: Code | None = None
    call: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    _payload: TracePayload | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> RecordedStep:
        """The step of this name; the last one when a pass runs several times."""
        for step in reversed(self.steps):
            if step.name == name:
                return step
        raise KeyError(name)

    def payload(self) -> TracePayload:
        """The trace as plain frozen data, with each line's origin."""
        if self._payload is None:
            self._payload = self._render()
        return self._payload

    def to_json(self) -> dict[str, Any]:
        """The payload as dicts and lists; its layout is `schema` version tilelab.trace.v1."""
        return to_json(self.payload())

    def _render(self) -> TracePayload:
        steps: list[Step] = []
        makers: dict[tuple[str, tuple[int, int] | None], str] = {}
        before: list[Line] = []
        for recorded in self.steps:
            lines = before if recorded.status in ("unchanged", "skipped") else recorded.render()
            lines, makers = _with_makers(lines, makers, recorded.name)
            added, removed = _count_changes(before, lines)
            if recorded is self.steps[0]:
                added, removed = len(lines), 0
            steps.append(
                Step(recorded.name, recorded.doc, recorded.stage, recorded.seconds, recorded.status,
                     recorded.reason, tuple(lines), recorded.hits(), recorded.notes, added, removed)
            )  # fmt: skip
            before = lines
        code = self.code
        if code is not None:
            code = Code(code.language, tuple(_with_makers(list(code.lines), {}, "codegen")[0]))
        return TracePayload(
            self.kernel, self.target, self.source, tuple(steps), code, self.call, dict(self.versions), SCHEMA
        )


def _key(line: Line) -> tuple[str, tuple[int, int] | None]:
    return line.text.strip(), line.source


def _with_makers(
    lines: list[Line], makers: dict[tuple[str, tuple[int, int] | None], str], step: str
) -> tuple[list[Line], dict[tuple[str, tuple[int, int] | None], str]]:
    """The lines with the step that first printed each, and the table for the next step."""
    known: dict[tuple[str, tuple[int, int] | None], str] = {}
    out: list[Line] = []
    for line in lines:
        maker = line.made_by or makers.get(_key(line), step)
        known[_key(line)] = maker
        out.append(Line(line.text, line.source, maker, line.buffers, line.call_sites))
    return out, known


def _count_changes(before: list[Line], after: list[Line]) -> tuple[int, int]:
    if before is after:
        return 0, 0
    matcher = difflib.SequenceMatcher(None, [x.text for x in before], [x.text for x in after], autojunk=False)
    added = removed = 0
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            removed += i2 - i1
            added += j2 - j1
    return added, removed
