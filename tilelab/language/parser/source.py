"""The source of a function: its syntax tree with the columns and lines of its file or notebook cell."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tilelab.errors import TileError
from tilelab.trace.schema import Source

__all__ = ["FunctionSource", "mentions_kernel", "read", "style_of"]

_CELL = re.compile(r"<ipython-input-(\d+)-\w+>|.*[/\\]ipykernel_\d+[/\\]\d+\.py")


@dataclass(frozen=True)
class FunctionSource:
    """A function's syntax tree, the name that its file goes by, and all lines of that file."""

    node: ast.FunctionDef
    file: str
    lines: tuple[str, ...]
    cell: str | None = None

    def span(self, node: ast.AST) -> tuple[str, int, int, int, int]:
        """(file, first line, last line, first column, column after the last) of a node, counted in
        characters."""
        first, last = int(node.lineno), int(node.end_lineno or node.lineno)  # type: ignore[attr-defined]
        start, stop = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        return (self.file, first, last, self._column(first, start), self._column(last, stop or 0))

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return offset + 1 if text.isascii() else len(text.encode()[:offset].decode(errors="ignore")) + 1

    @property
    def source(self) -> Source:
        """The function's own lines, decorators included."""
        first = min([self.node.lineno, *(d.lineno for d in self.node.decorator_list)])
        last = self.node.end_lineno or first
        return Source(
            self.file, first, tuple(x.rstrip("\n") for x in self.lines[first - 1 : last]), self.cell
        )


@functools.lru_cache(maxsize=256)
def _tree(file: str, text: str) -> ast.Module:
    # The file belongs to the key: code compiled from a tree names its file.
    return ast.parse(text, file)


def _execution_count(filename: str) -> str | None:
    """The number of the notebook cell whose code has this file name."""
    if found := re.match(r"<ipython-input-(\d+)-", filename):
        return found[1]
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    known = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return str(known[filename]) if filename in known else None


def _cell_name(filename: str, lines: list[str]) -> str | None:
    """A name for a notebook cell, under which error messages find its lines; None for files."""
    if not _CELL.fullmatch(filename):
        return None
    count = _execution_count(filename)
    name = f"In[{count}]" if count else "In[?]"
    linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    return name


def read(function: Callable[..., Any]) -> FunctionSource:
    """The source of a Python function; TileError when it cannot be found."""
    plain = inspect.unwrap(function)
    code = plain.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, plain.__globals__)
    if not lines:
        raise TileError(
            "TL105",
            f"the source of {plain.__name__} cannot be read: it comes from {code.co_filename}",
            help="define the kernel in a file or in a notebook cell",
        )
    cell = _cell_name(code.co_filename, lines)
    for node in ast.walk(_tree(cell or code.co_filename, "".join(lines))):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == code.co_name
            and code.co_firstlineno in (node.lineno, *(d.lineno for d in node.decorator_list))
        ):
            return FunctionSource(node, cell or code.co_filename, tuple(lines), cell)
    kind = "a lambda" if code.co_name == "<lambda>" else plain.__name__
    raise TileError(
        "TL105",
        f"{kind} at {code.co_filename}:{code.co_firstlineno} is not a def in its source",
        help="write the kernel as a def; if its file was edited, load it again",
    )


def mentions_kernel(function: Callable[..., Any]) -> bool:
    """Whether T.Kernel or T.prim_func is named anywhere in the function."""
    words = (getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(read(function).node))
    return any(word in ("Kernel", "prim_func") for word in words)


def style_of(function: Callable[..., Any]) -> Literal["eager", "lazy"]:
    """How the function that `jit` decorates is written: itself the kernel, or a factory of a T.prim_func."""
    for node in ast.walk(read(function).node):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                target = mark.func if isinstance(mark, ast.Call) else mark
                if getattr(target, "attr", getattr(target, "id", "")) == "prim_func":
                    return "lazy"
        if isinstance(node, ast.With) and any(
            isinstance(i.context_expr, ast.Call) and getattr(i.context_expr.func, "attr", "") == "Kernel"
            for i in node.items
        ):
            return "eager"
    return "lazy" if any(isinstance(n, ast.Return) for n in ast.walk(read(function).node)) else "eager"
