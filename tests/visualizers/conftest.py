"""Traces as fixtures; test files may also import `recorded_traces` from this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recorded_traces import NAMES, trace


@pytest.fixture(params=NAMES)
def payload(request):
    """Every recorded trace in turn."""
    return trace(request.param)


@pytest.fixture
def matmul():
    """The trace of the pipelined matrix product."""
    return trace("matmul")
