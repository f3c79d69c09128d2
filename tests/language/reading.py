"""Reading kernels that tests write as text: the file, line and column of each statement are known."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilelab.errors import TileError
from tilelab.ir.nodes import For, IfThenElse, SeqStmt, Stmt, TileCall, While
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement
from tilelab.ir.text import last_line
from tilelab.language.parser import ParsedKernel, TensorSpec, parse_eager

MARK = "§"
PRELUDE = """
import tilelab.language as T
from tests.language import reading

def kernel(A, B, C):
    with T.Kernel(2, threads=128) as bx:
        S = T.alloc_shared((32, 32), "float16")
        F = T.alloc_fragment((32, 32), "float32")
        V = T.alloc_fragment((32,), "float32")
"""
SPECS = {
    "A": TensorSpec((64, 64), "float16"),
    "B": TensorSpec((64, 64), "float32"),
    "C": TensorSpec((64,), "int32"),
}
_numbers = itertools.count()


@dataclass(frozen=True)
class Written:
    """A module written by a test: its names, its file, and where the mark stood (line and column from 1)."""

    module: Any
    file: str
    line: int
    column: int


def write(folder: Path, text: str) -> Written:
    """Import a module of this text, less its mark."""
    text = textwrap.dedent(text)
    before = text.split(MARK)[0]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    path = folder / f"written_{next(_numbers)}.py"
    path.write_text(text.replace(MARK, ""), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return Written(module, str(path), line, column)


def body(folder: Path, text: str, prelude: str = PRELUDE) -> Written:
    """A module whose `kernel` has these statements inside of T.Kernel."""
    return write(folder, prelude + textwrap.indent(textwrap.dedent(text), " " * 8))


def read(folder: Path, text: str) -> ParsedKernel:
    """The kernel with these statements inside of T.Kernel, for the arguments of SPECS."""
    return parse_eager(body(folder, text).module.kernel, SPECS)


def statements(parsed: ParsedKernel) -> list[Stmt]:
    """The statements of the kernel but sequences, launches, and the allocations of PRELUDE."""
    found = [s for s in each_statement(parsed.func.body) if not isinstance(s, SeqStmt)]
    return [s for s in found if type(s).__name__ not in ("AttrStmt",)][3:]


def lines(parsed: ParsedKernel) -> list[str]:
    """The statements inside T.Kernel as text, less the allocations of PRELUDE."""
    text = parsed.script().splitlines()
    first = next(i for i, line in enumerate(text) if line.lstrip().startswith("V = T.alloc_buffer"))
    return [line[4:] for line in text[first + 1 :]]


def failure(written: Written, specs: dict[str, Any] | None = None) -> TileError:
    """The error of reading the module's kernel; it must point at the mark."""
    with pytest.raises(TileError) as caught:
        parse_eager(written.module.kernel, SPECS if specs is None else specs)
    error = caught.value
    where = error.places[0]
    assert (where.file, where.line, where.column) == (written.file, written.line, written.column), str(error)
    return error


def column_of(statement: Stmt) -> int:
    """The column of a statement's source."""
    where = place_of(statement.span)
    assert where is not None
    return where.column


__all__ = [
    "For", "IfThenElse", "TileCall", "While", "body", "column_of", "failure", "last_line", "lines", "read",
    "statements", "write",
]  # fmt: skip
