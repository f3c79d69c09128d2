"""What makes a function a name of the language: its arguments are checked against its signature."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tilelab.errors import TileError
from tilelab.language.builder import building

__all__ = ["public"]

F = TypeVar("F", bound=Callable[..., Any])


def public(*, ignored: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Make a function a name of the language.

    A wrong argument is a TileError that lists the accepted ones; the keywords in `ignored` are recorded when
    given.
    """

    def decorate(function: F) -> F:
        name = f"T.{function.__name__.rstrip('_')}"

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            signature = _signature(function)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise _misuse(name, signature, kwargs, error) from None
            for key in ignored:
                given = bound.arguments.get(key)
                if given is not None and given != signature.parameters[key].default:
                    note(f"{name}({key}=…)")
            return function(*args, **kwargs)

        call.__tilelab_name__ = name  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def note(what: str) -> None:
    """Record that `what` has no effect in this version."""
    builder = building()
    if builder is not None:
        builder.ignore(what)


def _misuse(name: str, signature: inspect.Signature, kwargs: dict[str, Any], error: TypeError) -> TileError:
    accepted = list(signature.parameters)
    strange = [key for key in kwargs if key not in accepted]
    listed = f"{name} takes " + (", ".join(str(p) for p in _plain(signature)) or "nothing")
    if strange:
        near = difflib.get_close_matches(strange[0], accepted, 1)
        help = f"did you mean {near[0]}? {listed}" if near else listed
        return TileError("TL103", f"{name} has no keyword {strange[0]!r}", help=help)
    return TileError("TL103", f"{name}: {error}", help=listed)


def _plain(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
