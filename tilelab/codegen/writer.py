"""Lines of generated code, each with the user's source line; a comment repeats that line where it changes."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from tilelab.errors import Place
from tilelab.ir.spans import call_sites, place_of, span_of
from tilelab.trace.schema import Line

__all__ = ["Writer"]


class Writer:
    """Collects lines; `at(node)` says which statement the lines written inside belong to."""

    def __init__(self, line_directives: bool = False) -> None:
        self.lines: list[Line] = []
        self.depth = 0
        self._directives = line_directives
        self._place: Place | None = None
        self._sites: tuple[int, ...] = ()
        self._buffers: tuple[str, ...] = ()
        self._shown: tuple[str, int] | None = None

    def __call__(self, text: str, is_tail: bool = False) -> None:
        """Write one line at the current depth; a tail only closes what was announced where it began."""
        if not is_tail:
            self._announce()
        source = (self._place.line, self._place.end_line or self._place.line) if self._place else None
        self.lines.append(Line("  " * self.depth + text, source, None, self._buffers, self._sites))

    def plain(self, text: str) -> None:
        """Write lines that belong to no statement."""
        self.lines += [Line("  " * self.depth + line if line else "") for line in text.split("\n")]

    @contextmanager
    def at(self, node: Any, buffers: tuple[str, ...] = ()) -> Iterator[None]:
        """Lines written inside come from the node's span; a node without one keeps no source."""
        span = span_of(node)
        before = self._place, self._sites, self._buffers
        self._place, self._sites, self._buffers = place_of(span), call_sites(span), buffers
        try:
            yield
        finally:
            self._place, self._sites, self._buffers = before

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head`, what is written inside one step deeper, and `tail`."""
        self(head)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
        self(tail, is_tail=True)

    def _announce(self) -> None:
        where = self._place
        if where is None or (where.file, where.line) == self._shown:
            return
        self._shown = where.file, where.line
        source = linecache.getline(where.file, where.line).strip()
        said = f"// {PurePath(where.file).name}:{where.line}  {source}".rstrip().rstrip("\\")
        span = (where.line, where.end_line or where.line)
        self.lines.append(Line("  " * self.depth + said, span, None, (), self._sites))
        if self._directives:
            self.lines.append(Line(f'#line {where.line} "{where.file}"', span))
