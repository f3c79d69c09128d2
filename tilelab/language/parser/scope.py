"""Names of one function while it is interpreted: their values, and in which loop or branch each got its
value.

A name may get a new value only in the loop or branch of the IR where it got its first one: a second value
inside a loop would have to live from one iteration to the next, which only T.alloc_var can do.
"""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Mapping
from typing import Any

from tilelab.errors import TileError
from tilelab.language.builder import Frame

__all__ = ["Scope"]


class Scope:
    """The environment of one function: `env` is a plain dict, so that lambdas and comprehensions see every
    name."""

    def __init__(self, outer: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        self.env: dict[str, Any] = {"__builtins__": builtins, **outer, **arguments}
        self.control: list[Frame] = []
        self.owners: dict[str, Frame | None] = dict.fromkeys(arguments)
        self.gone: dict[str, str] = {}

    def local(self, name: str) -> Any:
        """The value that this function gave the name, or None."""
        return self.env.get(name) if name in self.owners else None

    def bind(self, name: str, value: Any) -> None:
        """Give the name a value; TileError when it got its first one outside of the loop or branch in
        force."""
        here = self.control[-1] if self.control else None
        if name in self.owners and self.owners[name] is not here and name != "_":
            raise TileError(
                "TL101",
                f"{name} has a value from outside this {here.kind if here else 'part'}, and a new one here "
                "would not last",
                help=f'set it first by {name} = T.alloc_var("int32", init=…), or take another name',
            )
        self.owners[name] = here
        self.gone.pop(name, None)
        self.env[name] = value

    def bind_index(self, name: str, value: Any) -> None:
        """Give the name to the index of the loop that begins; a value that it had before is hidden, and gone
        after the loop."""
        self.owners.pop(name, None)
        self.bind(name, value)

    def delete(self, name: str) -> None:
        """Forget the name."""
        if name not in self.owners:
            raise self.unknown(name)
        del self.owners[name], self.env[name]

    def enter(self, frame: Frame) -> None:
        """A loop or branch of the IR begins."""
        self.control.append(frame)

    def leave(self) -> None:
        """The innermost loop or branch ends, and with it the names that it gave values to."""
        frame = self.control.pop()
        for name in [n for n, owner in self.owners.items() if owner is frame]:
            del self.owners[name]
            self.env.pop(name, None)
            self.gone[name] = frame.kind

    def unknown(self, name: str) -> TileError:
        """The error for a name without a value."""
        if name in self.gone:
            return TileError(
                "TL108",
                f"{name} got its value inside a {self.gone[name]} and is gone after it",
                help=f'make it a variable before: {name} = T.alloc_var("float32", init=0)',
            )
        near = difflib.get_close_matches(name, [n for n in self.env if not n.startswith("__")], 2)
        help = f"did you mean {' or '.join(near)}?" if near else f"give it a value before: {name} = …"
        return TileError("TL108", f"{name} has no value", help=help)
