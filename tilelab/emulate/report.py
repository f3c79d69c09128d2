"""What an emulation gives back, and how its faults become `TileError`s that name the source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import Place, TileError
from tilelab.ir.spans import place_of

__all__ = ["Access", "Race", "Report", "fault", "lanes_text"]


@dataclass(frozen=True)
class Access:
    """One side of a race: read, write or an asynchronous one, by which thread, and the statement's place."""

    kind: str
    thread: str
    place: Place | None


@dataclass(frozen=True)
class Race:
    """Two accesses to the same bytes that nothing orders."""

    buffer: str
    index: tuple[int, ...]
    first: Access
    second: Access
    iteration: str


@dataclass
class Report:
    """The outcome of an emulation: steps taken, races (when collected), what was printed, and remarks.

    `issued` counts executions of hardware rows; without roles the seed, and unless `is_asynchronous` the
    mode, did not matter.
    """

    steps: int = 0
    races: tuple[Race, ...] = ()
    prints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    blocks: int = 0
    issued: dict[str, int] = field(default_factory=dict)
    has_roles: bool = False
    is_asynchronous: bool = False


def lanes_text(threads: Any) -> str:
    """Thread numbers as text: at most four, then how many more."""
    numbers = [int(t) for t in threads]
    shown = ", ".join(map(str, numbers[:4]))
    more = f" and {len(numbers) - 4} more" if len(numbers) > 4 else ""
    return f"{'thread' if len(numbers) == 1 else 'threads'} {shown}{more}"


def fault(
    code: str, message: str, span: Any = None, others: tuple[tuple[Any, str], ...] = (), help: str = ""
) -> TileError:
    """A `TileError` at a statement's span, the other spans being the further places with their labels."""
    known = [place_of(span), *(place_of(other, label) for other, label in others)]
    return TileError(code, message, places=tuple(p for p in known if p is not None), help=help)
