"""Kernels from notebook cells: named by the cell, with the cell's lines in errors."""

from __future__ import annotations

import linecache

import pytest

from tilelab.errors import TileError
from tilelab.ir.nodes import SeqStmt
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement
from tilelab.language.parser import TensorSpec, parse_eager

CELL = """import tilelab.language as T

def kernel(X, wrong=False):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((32,), "float32")
        T.copy(X, S)
        if wrong:
            T.copy(S, T.Y)
"""


def cell(filename: str, text: str = CELL) -> dict[str, object]:
    """Run a cell as IPython does: its lines in linecache under the name of the code."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names: dict[str, object] = {}
    exec(compile(text, filename, "exec"), names)
    return names


def test_a_cell_is_named_by_its_number():
    parsed = parse_eager(cell("<ipython-input-7-0a1b2c>")["kernel"], {"X": TensorSpec((32,), "float32")})
    assert (parsed.source.file, parsed.source.cell, parsed.source.first_line) == ("In[7]", "In[7]", 3)
    places = [place_of(s.span) for s in each_statement(parsed.func.body) if not isinstance(s, SeqStmt)]
    assert {p.file for p in places} == {"In[7]"}
    assert [p.line for p in places] == [4, 4, 5, 6]


def test_an_error_in_a_cell_shows_the_line_of_the_cell():
    kernel = cell("<ipython-input-9-0a1b2c>")["kernel"]
    with pytest.raises(TileError) as caught:
        parse_eager(kernel, {"X": TensorSpec((32,), "float32"), "wrong": True})
    text = str(caught.value)
    assert "--> In[9]:8:23" in text
    assert "8 |             T.copy(S, T.Y)" in text


def test_the_same_text_in_two_cells_keeps_its_own_cell():
    for number in (11, 12):
        kernel = cell(f"<ipython-input-{number}-0a1b2c>")["kernel"]
        assert parse_eager(kernel, {"X": TensorSpec((32,), "float32")}).source.cell == f"In[{number}]"


def test_a_cell_of_a_running_ipython_is_named_by_its_execution_count():
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell.instance()
    try:
        before = shell.execution_count
        shell.run_cell(CELL, store_history=True)
        parsed = parse_eager(shell.user_ns["kernel"], {"X": TensorSpec((32,), "float32")})
        assert parsed.source.cell == f"In[{before}]"
        assert parsed.source.lines[0].startswith("def kernel")
    finally:
        interactive.InteractiveShell.clear_instance()


def test_the_temporary_file_of_a_notebook_kernel_is_a_cell():
    kernel = cell("/tmp/ipykernel_4242/1234567.py")["kernel"]
    assert parse_eager(kernel, {"X": TensorSpec((32,), "float32")}).source.cell == "In[?]"
