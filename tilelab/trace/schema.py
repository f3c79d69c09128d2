"""What a Trace says to those outside the compiler: frozen dataclasses and the JSON that viewers and tools
read.

The payload carries its version; a reader that meets another major version shows the static fallback instead.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["SCHEMA", "Code", "Hit", "Line", "Note", "Source", "Step", "TracePayload", "from_json", "to_json"]

SCHEMA = "tilelab.trace.v1"

Status = Literal["changed", "unchanged", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Source:
    """The user's source: file (or the notebook cell's name), number of the first line, and the texts."""

    file: str
    first_line: int
    lines: tuple[str, ...]
    cell: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line of IR or code.

    `source` is the first and last line number in the user's file; `made_by` names the step that first printed
    this statement; `buffers` are the buffers that the line touches; `call_sites` are the lines of the macro
    calls, outermost first, when the line comes from an inlined helper.
    """

    text: str
    source: tuple[int, int] | None = None
    made_by: str | None = None
    buffers: tuple[str, ...] = ()
    call_sites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One rule that fired: its name, the source line, and the node before and after as text."""

    rule: str
    source: int | None
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something a step decided, refused or wants known: kind is decision, refusal, slow_path or info."""

    kind: Literal["decision", "refusal", "slow_path", "info"]
    text: str
    source: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of the pipeline: its IR after the step, and why it did or did not change anything.

    `reason` is one sentence: for skipped why it did not run, for unchanged what it looked for and did not
    find, for failed the error's text. `added` and `removed` count lines against the step before. `seconds`
    excludes rendering.
    """

    name: str
    doc: str
    stage: str
    seconds: float
    status: Status
    reason: str
    lines: tuple[Line, ...]
    hits: tuple[Hit, ...] = ()
    notes: tuple[Note, ...] = ()
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Code:
    """The generated code of the target: language is cuda, hip, or llvm."""

    language: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class TracePayload:
    """A whole compile: the first step is the input IR (name `parse`), the last IR is printed in `code`.

    `call` is the exact Python that repeats this compile; `versions` maps tool names to versions.
    """

    kernel: str
    target: str
    source: Source
    steps: tuple[Step, ...]
    code: Code | None
    call: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    schema: str = SCHEMA


def to_json(payload: TracePayload) -> dict[str, Any]:
    """The payload as plain dicts, lists, strings and numbers, ready for `json.dumps`."""
    return asdict(payload)


def from_json(data: dict[str, Any]) -> TracePayload:
    """The payload that `to_json` wrote; ValueError when `data` is of another schema version."""
    if data.get("schema") != SCHEMA:
        raise ValueError(f"this reads {SCHEMA}, and the trace says {data.get('schema')!r}")
    code = data["code"]
    return TracePayload(
        kernel=data["kernel"],
        target=data["target"],
        source=_source(data["source"]),
        steps=tuple(_step(step) for step in data["steps"]),
        code=None if code is None else Code(code["language"], _lines(code["lines"])),
        call=data["call"],
        versions=dict(data["versions"]),
    )


def _source(data: dict[str, Any]) -> Source:
    read: dict[str, Any] = {**data, "lines": tuple(data["lines"])}
    return Source(**read)


def _step(data: dict[str, Any]) -> Step:
    read: dict[str, Any] = {
        **data,
        "lines": _lines(data["lines"]),
        "hits": tuple(Hit(**hit) for hit in data["hits"]),
        "notes": tuple(Note(**note) for note in data["notes"]),
    }
    return Step(**read)


def _lines(data: list[dict[str, Any]]) -> tuple[Line, ...]:
    return tuple(
        Line(
            line["text"],
            None if line["source"] is None else (line["source"][0], line["source"][1]),
            line["made_by"],
            tuple(line["buffers"]),
            tuple(line["call_sites"]),
        )
        for line in data
    )
