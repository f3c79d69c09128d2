"""The traces that the tests show, by name; they are written by hand, so that each case is in one of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import make_fixtures

from tilelab.trace.schema import TracePayload, from_json

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = ("matmul", "failed", "large", "chinese")


@cache
def trace(name: str) -> TracePayload:
    """The trace of that name, written or made by `make_fixtures.py`."""
    if name == "large":  # three megabytes as JSON, so it is made when it is needed
        return make_fixtures.large(trace("matmul"))
    return from_json(json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8")))
