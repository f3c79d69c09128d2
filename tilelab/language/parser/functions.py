"""What is known of a kernel's function before it is read: its names, arguments and annotations."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from types import CellType
from typing import Any

from tilelab.errors import TileError
from tilelab.ir.spans import at, make_span
from tilelab.language.dtypes import dtype
from tilelab.language.parser.source import FunctionSource, read

__all__ = ["annotation_of", "bound", "captured", "check_asked", "check_named", "header_span", "surroundings"]


def surroundings(function: Callable[..., Any]) -> dict[str, Any]:
    """Globals of a function and the values that its closure holds."""
    # A cell is empty while the enclosing function has not yet given the name a value; empty cells are equal.
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return dict(function.__globals__) | {n: c.cell_contents for n, c in cells if c != CellType()}


def captured(source: FunctionSource, outer: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The globals and closure values that a function's source names, modules apart."""
    used = {n.id for n in ast.walk(source.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return tuple(
        (name, outer[name]) for name in sorted(used & set(outer)) if not inspect.ismodule(outer[name])
    )


def header_span(source: FunctionSource) -> Any:
    """The span of the `def` line, where errors of the signature point."""
    file, line, _, column, _ = source.span(source.node)
    return make_span(file, line, line, column, len(source.lines[line - 1].rstrip()) + 1)


def check_named(function: Callable[..., Any]) -> None:
    """Raise TL105 at the `def` for a parameter that takes any number of arguments."""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            with at(header_span(read(inspect.unwrap(function)))):
                raise TileError(
                    "TL105",
                    f"the parameter {name} of {function.__name__} takes any number of arguments",
                    help="name each argument",
                )


def bound(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in the order of the signature, with defaults filled in."""
    parameters = inspect.signature(function).parameters
    strange = [name for name in arguments if name not in parameters]
    if strange:
        raise TileError(
            "TL501",
            f"{function.__name__} has no parameter {strange[0]!r}",
            help="parameters: " + ", ".join(parameters),
        )
    check_named(function)
    out: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name in arguments:
            out[name] = arguments[name]
        elif parameter.default is not parameter.empty:
            out[name] = parameter.default
        else:
            raise TileError("TL501", f"{function.__name__} lacks the argument {name}")
    return out


def check_asked(function: Callable[..., Any], sizes: Mapping[str, Any], asked: list[str]) -> None:
    """Raise TL501 for a size that the kernel's T.const does not ask for."""
    for name in sizes:
        if name not in asked:
            known = ", ".join(inspect.signature(function).parameters)
            raise TileError(
                "TL501",
                f"{function.__name__} has no argument {name!r}, and no T.const of this name",
                help=f"arguments: {known}" + (f"; T.const: {', '.join(asked)}" if asked else ""),
            )


def annotation_of(function: Callable[..., Any], name: str, outer: Mapping[str, Any]) -> Any:
    """The annotation of a parameter as a value; text is evaluated among the names that the function sees."""
    mark = function.__annotations__.get(name)
    if not isinstance(mark, str) or isinstance(mark, dtype):
        return mark
    try:
        return eval(mark, dict(outer))
    except NameError as error:
        raise TileError(
            "TL105", f"the annotation {mark!r} of {name} names {error.name}, which has no value"
        ) from None
