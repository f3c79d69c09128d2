"""The form of a Trace that travels in a notebook: every line stored once, steps as runs of line numbers,
gzipped.

Layout of the decoded object (all numbers are indices that count from 0, unless they are source line numbers):

- `strings`: names of steps and buffers that `records` refer to.
- `records`: `[text, first source line or 0, last source line, maker or -1, [buffers], [call sites]]`, one for
  each distinct line of the whole trace.
- `entries`: one for each entry of the list; `rows` are pairs (first record, count); `hunks` are
  `[old start, old end, new start, new end, plain, [[old or -1, new or -1, [old marks], [new marks], noise],
  ...]]`.
- `notices`: sentences about what was left out to stay within the size.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

from tilelab.trace.schema import Line, TracePayload
from tilelab_viz.diff import Hunk, Row
from tilelab_viz.entries import Entry, entries_of, summary

__all__ = ["LIMIT", "decode", "encode"]

# The most that one trace may add to a notebook in this form, in characters (a course kernel takes a tenth of
# it).
LIMIT = 150_000


def encode(payload: TracePayload, limit: int = LIMIT) -> dict[str, Any]:
    """The object stored under the viewer's MIME type: schema, kernel and target in clear, the rest packed.

    When the packed text exceeds `limit` characters, the texts of the largest steps are left out one after
    another; each keeps its row in the list, and a notice says so.
    """
    entries = list(entries_of(payload))
    notices: list[str] = []
    packed = _pack(_compact(payload, entries, notices))
    while len(packed) > limit:
        largest = max(range(len(entries)), key=lambda i: _weight(entries, i))
        if _weight(entries, largest) == 0:
            break
        _drop_texts(entries, largest)
        dropped = sum(1 for entry in entries if _is_dropped(entry))
        notices[:] = [f"The texts of {dropped} entries are left out here to keep the notebook small."]
        packed = _pack(_compact(payload, entries, notices))
    return {
        "schema": payload.schema,
        "kernel": payload.kernel,
        "target": payload.target,
        "encoding": "gzip+base64",
        "data": packed,
    }


def decode(data: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `encode` down to the compact object, for tools and tests."""
    return json.loads(gzip.decompress(base64.b64decode(data["data"])))


def _pack(compact: dict[str, Any]) -> str:
    text = json.dumps(compact, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _is_dropped(entry: Entry) -> bool:
    return entry.kind == "step" and not entry.lines and entry.base is None


def _weight(entries: list[Entry], index: int) -> int:
    """How many characters dropping this entry may save: its own hunks' new lines; ends are never dropped."""
    entry = entries[index]
    if entry.kind != "step" or index <= 1 or index == len(entries) - 2 or _is_dropped(entry):
        return 0
    texts = (entry.lines[i].text for hunk in entry.hunks for i in range(*hunk.new))
    return 1 + sum(len(text) for text in texts)


def _drop_texts(entries: list[Entry], index: int) -> None:
    """Empties one step and shows the step after it without a comparison."""
    entries[index] = replace(entries[index], lines=(), hunks=(), base=None)
    after = entries[index + 1]
    if not _is_dropped(after):
        entries[index + 1] = replace(after, hunks=(), base=None)


class _Table:
    """Gives each distinct key a number, in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def __getitem__(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


def _compact(payload: TracePayload, entries: list[Entry], notices: list[str]) -> dict[str, Any]:
    records, strings = _Table(), _Table()
    rows = [_runs([records[line] for line in entry.lines]) for entry in entries]
    return {
        "schema": payload.schema,
        "kernel": payload.kernel,
        "target": payload.target,
        "call": payload.call,
        "versions": dict(payload.versions),
        "summary": summary(payload),
        "source": {
            "file": payload.source.file,
            "cell": payload.source.cell,
            "first_line": payload.source.first_line,
        },
        "language": payload.code.language if payload.code else None,
        "entries": [_entry(entry, runs) for entry, runs in zip(entries, rows, strict=True)],
        "records": [_record(line, strings) for line in records.numbers],
        "strings": list(strings.numbers),
        "notices": list(notices),
    }


def _record(line: Line, strings: _Table) -> list[Any]:
    first, last = line.source or (0, 0)
    maker = -1 if line.made_by is None else strings[line.made_by]
    return [line.text, first, last, maker, [strings[name] for name in line.buffers], list(line.call_sites)]


def _runs(numbers: list[int]) -> list[int]:
    """Consecutive numbers as pairs (first, count), flattened."""
    runs: list[int] = []
    for number in numbers:
        if runs and number == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs


def _entry(entry: Entry, rows: list[int]) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "name": entry.name,
        "doc": entry.doc,
        "stage": entry.stage,
        "ms": None if entry.milliseconds is None else round(entry.milliseconds, 3),
        "status": entry.status,
        "reason": entry.reason,
        "added": entry.added,
        "removed": entry.removed,
        "rows": rows,
        "base": entry.base,
        "hunks": [_hunk(hunk) for hunk in entry.hunks],
        "notes": [{"kind": n.kind, "text": n.text, "source": n.source} for n in entry.notes],
        "hits": [[h.rule, h.source, h.before, h.after] for h in entry.hits],
    }


def _hunk(hunk: Hunk) -> list[Any]:
    rows = [] if hunk.plain else [_row(row) for row in hunk.rows]
    return [*hunk.old, *hunk.new, int(hunk.plain), rows]


def _row(row: Row) -> list[Any]:
    old, new = (-1 if n is None else n for n in (row.old, row.new))
    return [old, new, [list(m) for m in row.old_marks], [list(m) for m in row.new_marks], int(row.noise)]
