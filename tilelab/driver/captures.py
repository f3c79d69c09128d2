"""The globals and closure values that a kernel reads: which of its specialisations the present values mean.

A kernel's source is read when it is compiled, so a later call must notice that such a value has changed.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from tilelab.driver.contents import MISSING, Found, Same, contents, is_frozen, is_library
from tilelab.errors import TileError
from tilelab.language.parser.source import read

__all__ = ["Captures"]


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


class _Place:
    """Where a name has its value, a namespace or a closure cell, and the value seen there last."""

    __slots__ = ("holder", "key", "last", "name", "seen", "value")

    def __init__(self, name: str, holder: Any, key: str) -> None:
        self.name, self.holder, self.key = name, holder, key
        self.value: Callable[[], Any] = self._cell if isinstance(holder, CellType) else self._entry
        self.last = self.value()
        # Contents are compared at each call only where they can change under the same name.
        self.seen = None if is_frozen(self.last) else contents(self.last, Found())

    def _cell(self) -> Any:
        try:
            return self.holder.cell_contents
        except ValueError:  # the enclosing function has not given the name a value yet
            return MISSING

    def _entry(self) -> Any:
        return self.holder.get(self.key, MISSING)


class Captures:
    """What a function and the functions that it names read, at any depth. Functions of libraries count by
    identity.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._states: dict[Any, int] = {}
        self._places: list[_Place] | None = None
        self._present = -1
        self._read: dict[Same, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def present(self) -> int:
        """The number of the state that the values are in now: equal numbers mean equal values."""
        places = self._places
        if places is not None:
            for place in places:
                now = place.value()
                if now is not place.last or (place.seen is not None and contents(now, Found()) != place.seen):
                    break
            else:
                return self._present
        return self._look()

    def _look(self) -> int:
        """Find every place anew: another helper reads other names."""
        found = Found(self.function)
        places: list[_Place] = []
        state: list[Any] = []
        for function in found:
            for place in self._places_of(function):
                places.append(place)
                state.append((place.name, contents(place.last, found)))
        self._present = self._states.setdefault(tuple(state), len(self._states))
        self._places = places
        return self._present

    def _places_of(self, function: FunctionType) -> Iterator[_Place]:
        """The places of what one function reads."""
        code = function.__code__
        known = self._read.get(Same(code))
        names, attributes = known or self._read.setdefault(Same(code), _names(function))
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in cells.items():
            yield from _with_attributes(_Place(name, cell, name), attributes)
        for name in names:
            if name not in cells:
                yield from _with_attributes(_Place(name, function.__globals__, name), attributes)


def _with_attributes(place: _Place, attributes: tuple[str, ...], depth: int = 0) -> Iterator[_Place]:
    """The place, and where it holds a module of the user, what the code may read of that module."""
    yield place
    module = place.last
    if isinstance(module, ModuleType) and not is_library(module) and depth < 4:
        for name in attributes:
            if name in vars(module):
                inner = _Place(f"{place.name}.{name}", vars(module), name)
                yield from _with_attributes(inner, attributes, depth + 1)


def _names(function: FunctionType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The global names that a function reads, and every name that may be an attribute in it."""
    wanted: set[str] = set()
    attributes: set[str] = set()
    local: set[str] = set()
    todo = [function.__code__]
    while todo:
        part = todo.pop()
        todo += [c for c in part.co_consts if isinstance(c, CodeType)]
        local |= {*part.co_varnames, *part.co_cellvars}
        attributes |= set(part.co_names)
        wanted |= {i.argval for i in dis.get_instructions(part) if i.opname in _LOADS}
    # Python compiles no annotation of a local variable; the kernel's reader evaluates them.
    marks = _annotation_nodes(function)
    wanted |= {n.id for n in marks if isinstance(n, ast.Name)} - local
    attributes |= {n.attr for n in marks if isinstance(n, ast.Attribute)}
    return tuple(sorted(wanted)), tuple(sorted(attributes))


def _annotation_nodes(function: FunctionType) -> list[ast.AST]:
    try:
        tree = read(function).node
    except (TileError, OSError, TypeError, SyntaxError):
        return []  # a factory made by exec: Python runs it, and what it compiled says what it reads
    marks = [n.annotation for n in ast.walk(tree) if isinstance(n, ast.arg | ast.AnnAssign) and n.annotation]
    marks += [_parsed(m.value) for m in marks if isinstance(m, ast.Constant) and isinstance(m.value, str)]
    return [n for mark in marks for n in ast.walk(mark)]


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError:
        return ast.Constant(text)
