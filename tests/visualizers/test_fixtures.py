"""The recorded traces and the sample are those that `make_fixtures.py` writes."""

from __future__ import annotations

import json

import make_fixtures
import pytest
from recorded_traces import trace

from tilelab.trace.schema import to_json
from tilelab_viz.compact import decode, encode
from tilelab_viz.views.passes import main, sample


@pytest.mark.parametrize("name", ["matmul", "failed", "chinese"])
def test_fixtures_are_as_made(name):
    whole = make_fixtures.matmul()
    made = whole if name == "matmul" else getattr(make_fixtures, name)(whole)
    assert json.loads(json.dumps(to_json(made))) == to_json_lists(name)


def to_json_lists(name):
    return json.loads(json.dumps(to_json(trace(name))))


def test_the_sample_is_the_matrix_product():
    assert sample() == trace("matmul")


def test_the_demo_writes_a_page(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")


def test_the_typescript_tests_read_what_is_packed_today():
    path = make_fixtures.ROOT / "visualizers" / "core" / "test" / "data" / "matmul.json"
    packed = json.loads(path.read_text(encoding="utf-8"))
    # The compressed bytes depend on the version of zlib, so what they say is compared.
    assert decode(packed) == decode(encode(trace("matmul")))
