"""What a pass is: a value with a name, a function from PrimFunc to PrimFunc, and the stages before and after.

The first word of the name is a contract: `check_` gives back the very same function, `plan_` changes
annotations, keywords and attributes only, `lower_X` leaves no X, `insert_` only adds statements. Decisions
are recorded by `decide`, refusals by `refuse`, slower paths by `slow`, and why a pass found nothing to do by
`because`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tilelab.hardware import chip
from tilelab.hardware.model import Chip
from tilelab.ir.build import plain
from tilelab.ir.nodes import PrimFunc
from tilelab.ir.spans import current_span, place_of
from tilelab.targets import Target, parse_target

__all__ = [
    "Pass",
    "PassNote",
    "because",
    "chip_of",
    "decide",
    "listening",
    "refuse",
    "slow",
    "target_of",
    "threads_of",
]


@dataclass(frozen=True)
class PassNote:
    """Something that a pass decided or refused: kind, one sentence, the source line, and figures as plain
    data.
    """

    kind: Literal["decision", "refusal", "slow_path", "info", "unchanged"]
    text: str
    line: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pass:
    """A step of a pipeline.

    `run` takes and gives a function at the stages `needs` and `gives`. `skip` says from the target alone why
    the pass does not apply (or None when it does); `off` names the setting that switches it off.
    """

    name: str
    run: Callable[[PrimFunc], PrimFunc]
    needs: str
    gives: str
    skip: Callable[[Target], str | None] | None = None
    off: str | None = None

    @property
    def doc(self) -> str:
        """The first sentence of the pass's module."""
        text = sys.modules[self.run.__module__].__doc__ or ""
        return " ".join(text.split("\n\n")[0].split())

    def when(self, skip: Callable[[Target], str | None] | None = None, *, off: str | None = None) -> Pass:
        """The same pass, skipped where `skip` gives a reason or the setting `off` is on; the trace shows
        which.
        """
        return replace(self, skip=skip or self.skip, off=off or self.off)


_notes: ContextVar[list[PassNote] | None] = ContextVar("tilelab_pass_notes", default=None)


@contextmanager
def listening(notes: list[PassNote]) -> Iterator[None]:
    """Notes made inside go to `notes`."""
    token = _notes.set(notes)
    try:
        yield
    finally:
        _notes.reset(token)


def _note(kind: Any, text: str, span: Any, data: dict[str, Any]) -> None:
    where = place_of(span if span is not None else current_span())
    if (notes := _notes.get()) is not None:
        notes.append(PassNote(kind, text, where.line if where else None, data))


def decide(text: str, span: Any = None, **data: Any) -> None:
    """Record a choice and its reason."""
    _note("decision", text, span, data)


def refuse(text: str, span: Any = None, **data: Any) -> None:
    """Record something that was considered and not done, with the reason."""
    _note("refusal", text, span, data)


def slow(text: str, span: Any = None, **data: Any) -> None:
    """Record that a slower path was taken, with the reason."""
    _note("slow_path", text, span, data)


def because(text: str, span: Any = None) -> None:
    """Say why the pass leaves the function as it is."""
    _note("unchanged", text, span, {})


def target_of(f: PrimFunc) -> Target:
    """The target that the function is compiled for."""
    return parse_target(str(f.attrs["tl.target"]))


def chip_of(f: PrimFunc) -> Chip:
    """The chip of the function's target."""
    return chip(target_of(f).arch)


def threads_of(f: PrimFunc) -> int:
    """Threads of a block."""
    return int(plain(f.attrs["tl.threads"]))
