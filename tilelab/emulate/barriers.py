"""What roles wait for: mbarriers with phases and bytes, channels made of two of them, and counted
barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab.emulate.report import fault

__all__ = ["BarrierArray", "Mbarrier", "Rendezvous", "Wait", "deadlock", "run_together"]


@dataclass
class Wait:
    """A suspended role: what it waits for, how to see whether that has come, and how to let it come."""

    who: str
    text: Callable[[], str]
    ready: Callable[[], bool]
    span: Any = None
    force: Callable[[], bool] = lambda: False
    inner: tuple[Wait, ...] = ()

    def leaves(self) -> list[Wait]:
        """The single waits inside."""
        return [leaf for part in self.inner for leaf in part.leaves()] if self.inner else [self]


@dataclass
class Mbarrier:
    """An mbarrier: arrivals and bytes that its present phase still waits for, and transfers under way."""

    count: int | None = None
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    transfers: list[Any] = field(default_factory=list)
    clock: Any = None
    completed: Any = None

    def start(self, count: int) -> None:
        """Set the number of arrivals a phase takes; any state before is gone."""
        self.count = self.pending = count
        self.bytes, self.phase, self.clock, self.completed = 0, 0, None, None

    def add_clock(self, clock: Any) -> None:
        """What those who wait for this phase will know."""
        if clock is not None:
            old = self.clock
            self.clock = (
                clock if old is None else (np.maximum(old[0], clock[0]), np.maximum(old[1], clock[1]))
            )

    def settle(self) -> None:
        """Complete the phase if nothing is outstanding."""
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count or 0
            self.completed, self.clock = self.clock, None

    def passes(self, parity: int) -> bool:
        """Whether the phase with this parity has completed."""
        return self.phase % 2 != parity % 2


class BarrierArray:
    """A buffer of scope `shared.barrier`: mbarriers, and for channels a second one a slot for its release."""

    def __init__(
        self, name: str, slots: int, producers: int, consumers: int, is_channel: bool, span: Any
    ) -> None:
        self.name, self.shape, self.span, self.is_channel = name, (slots,), span, is_channel
        self.full = [Mbarrier() for _ in range(slots)]
        self.empty = [Mbarrier() for _ in range(slots)]
        if is_channel:
            for full, empty in zip(self.full, self.empty, strict=True):
                full.start(producers)
                empty.start(consumers)

    def slot(self, context, region, released: bool = False) -> tuple[int, Mbarrier]:
        """The slot that an operand (buffer, first indices, extents) names; TL601 outside the array."""
        index = region[1][0]
        if isinstance(index, np.ndarray):
            index = int(index.flat[0])
        if not 0 <= index < len(self.full):
            raise fault(
                "TL601",
                f"{self.name}[{index}] is outside {self.name}'s {len(self.full)} slots",
                context.span(),
            )
        barrier = (self.empty if released else self.full)[index]
        if barrier.count is None:
            raise fault("TL602", f"{self.name}[{index}] is used before mbarrier_init", context.span())
        return index, barrier


@dataclass
class Rendezvous:
    """A barrier that a number of threads must reach."""

    arrived: list[Any] = field(default_factory=list)
    generation: int = 0


def deadlock(waits: Sequence[Wait]) -> Exception:
    """The TL604 that names every role, what it waits for, and where."""
    leaves = [leaf for wait in waits for leaf in wait.leaves()]
    text = "; ".join(f"{leaf.who} waits for {leaf.text()}" for leaf in leaves)
    others = tuple((leaf.span, f"{leaf.who} waits here") for leaf in leaves[1:])
    return fault("TL604", f"nothing can go on: {text}", leaves[0].span if leaves else None, others)


def run_together(machine, roles: list[Any]):
    """Run roles (generators of `Wait`s) until all have ended, in an order that the machine's random
    numbers choose.

    Only when none can go on does an asynchronous transfer land: as late as its completion allows.
    """
    waiting: list[tuple[Any, Wait | None]] = [(role, None) for role in roles]
    while waiting:
        able = [i for i, (_, wait) in enumerate(waiting) if wait is None or wait.ready()]
        if not able:
            blocked = tuple(wait for _, wait in waiting if wait is not None)
            yield Wait(
                "a block", lambda: "its roles", lambda b=blocked: any(w.ready() for w in b), blocked[0].span,
                lambda b=blocked: force_one(machine, b), blocked,
            )  # fmt: skip
            continue
        position = able[int(machine.random.integers(len(able)))]
        role, _ = waiting[position]
        try:
            waiting[position] = (role, next(role))
        except StopIteration:
            del waiting[position]


def force_one(machine, waits: Sequence[Wait]) -> bool:
    """Let something that one of the waits hopes for come; false if there is nothing."""
    order = machine.random.permutation(len(waits))
    return any(waits[int(i)].force() for i in order)
