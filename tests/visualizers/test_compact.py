"""The data in the notebook: nothing is lost on the way, and it stays small."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from recorded_traces import trace

from tilelab.trace.schema import SCHEMA, Line, from_json, to_json
from tilelab_viz.compact import decode, encode
from tilelab_viz.entries import entries_of


def lines_of(compact, entry):
    """The records of an entry, run by run."""
    runs = entry["rows"]
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [compact["records"][i] for start, count in pairs for i in range(start, start + count)]


def as_line(record, strings):
    """A record as the schema's Line."""
    text, first, last, maker, buffers, calls = record
    source = (first, last) if first else None
    made_by = None if maker < 0 else strings[maker]
    return Line(text, source, made_by, tuple(strings[b] for b in buffers), tuple(calls))


def test_json_round_trip_gives_the_same_payload(payload):
    assert from_json(json.loads(json.dumps(to_json(payload)))) == payload


def test_another_schema_version_is_refused(matmul):
    with pytest.raises(ValueError, match=r"tilelab\.trace\.v1.*v9"):
        from_json({**to_json(matmul), "schema": "tilelab.trace.v9"})


def test_every_line_and_number_survives_packing(payload):
    compact = decode(json.loads(json.dumps(encode(payload))))
    entries = entries_of(payload)
    assert compact["schema"] == SCHEMA
    assert compact["notices"] == []
    assert len(compact["entries"]) == len(entries)
    for packed, entry in zip(compact["entries"], entries, strict=True):
        assert [as_line(r, compact["strings"]) for r in lines_of(compact, packed)] == list(entry.lines)
        assert packed["ms"] == (
            None if entry.milliseconds is None else pytest.approx(entry.milliseconds, abs=1e-3)
        )
        for name in ("kind", "name", "doc", "stage", "status", "reason", "added", "removed", "base"):
            assert packed[name] == getattr(entry, name)
        assert [n["text"] for n in packed["notes"]] == [n.text for n in entry.notes]


def test_packed_hunks_rebuild_each_step_from_its_base(payload):
    compact = decode(encode(payload))
    for packed in compact["entries"]:
        if packed["base"] is None or any(hunk[4] for hunk in packed["hunks"]):
            continue
        old = [r[0] for r in lines_of(compact, compact["entries"][packed["base"]])]
        new = [r[0] for r in lines_of(compact, packed)]
        out, at = [], 0
        for a0, a1, _b0, _b1, _, rows in packed["hunks"]:
            out += old[at:a0] + [new[row[1]] for row in rows if row[1] >= 0]
            at = a1
        assert out + old[at:] == new


def test_packing_is_the_same_every_time(matmul):
    assert encode(matmul) == encode(matmul)


def test_sixty_passes_of_four_hundred_lines_take_little_room():
    assert len(encode(trace("large"))["data"]) < 40_000


def test_a_trace_over_the_limit_says_what_was_left_out():
    small = encode(trace("large"), limit=9_000)
    compact = decode(small)
    assert len(small["data"]) <= 9_000
    assert compact["notices"]
    assert len(compact["entries"]) == len(entries_of(trace("large")))
    assert compact["entries"][1]["rows"], "the first program is kept"
    assert compact["entries"][-1]["rows"], "the code is kept"


def test_a_skipped_step_without_lines_shows_those_before_it(matmul):
    steps = tuple(replace(s, lines=()) if s.status == "skipped" else s for s in matmul.steps)
    with_lines, without = entries_of(matmul), entries_of(replace(matmul, steps=steps))
    assert [e.lines for e in with_lines] == [e.lines for e in without]
