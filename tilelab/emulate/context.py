"""Who executes: the threads of a block or of a role (`Context`), or the iterations of a parallel nest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.emulate.asynchronous import Queue
from tilelab.emulate.barriers import run_together
from tilelab.emulate.report import Access, Race, fault, lanes_text
from tilelab.errors import TileError
from tilelab.ir.spans import place_of

if TYPE_CHECKING:
    from tilelab.emulate.machine import Machine

__all__ = ["Context", "Iterations"]


class Lanes:
    """What threads and iterations have in common: the statement being executed, and words for messages."""

    is_iterations = False
    lane_word = "threads"
    unfenced: dict[int, int]
    machine: Machine
    count: int
    at: int
    loops: dict[str, Any]
    threads: np.ndarray

    def span(self) -> Any:
        """The span of the statement being executed."""
        return self.machine.span(self.at)

    def iteration_text(self) -> str:
        """The values of the loops around, and the block, as text for a message."""
        block = self.machine.block_text()
        loops = [f"{name} = {np.ravel(value)[0]}" for name, value in self.loops.items()]
        return (f", {', '.join(loops)}" if loops else "") + (f", block {block}" if block else "")

    def first_bad(self, indices, bad) -> tuple[tuple[int, ...], np.ndarray]:
        """The index of the first bad lane, and the threads of all of them."""
        if bad is None or not np.ndim(bad):
            return tuple(int(np.ravel(i)[0]) for i in indices), self.threads
        shape = np.broadcast_shapes(np.shape(bad), *(np.shape(i) for i in indices))
        wide = np.broadcast_to(bad, shape)
        position = tuple(int(p[0]) for p in np.nonzero(wide))
        index = tuple(int(np.broadcast_to(i, shape)[position]) for i in indices)
        lanes = np.nonzero(wide.reshape(shape[0], -1).any(axis=1))[0]
        return index, self.threads[lanes] if shape[0] == self.threads.size else self.threads[:0]

    def may_fault(self, mask) -> bool:
        """Whether any lane is active."""
        return mask is None or bool(mask.any())

    def unwritten(self, buffer, index, threads) -> TileError:
        """TL602 for an element without a value; an operation under way that will write it is named."""
        who = f" by {lanes_text(threads)}" if np.size(threads) and not self.is_iterations else ""
        flight = self.machine.in_flight(buffer)
        message = f"{buffer.name}{list(index)} is read{who} before it was written"
        others: tuple[tuple[Any, str], ...] = ()
        if flight is not None:
            message = f"{buffer.name}{list(index)} is read{who} while {flight.name} is still under way"
            others = ((flight.span, "issued here, not waited for"),)
        return fault("TL602", message + self.iteration_text(), self.span(), others)

    def note_read(self, buffer, indices, inside, mask) -> None:
        """Lanes that are threads run in lockstep: nothing to remember."""

    def note_write(self, buffer, indices, values, active) -> None:
        """See `note_read`."""

    def tick(self) -> None:
        """Count a turn of a loop."""
        self.machine.tick(self)


class Context(Lanes):
    """A block's threads, or the `count` threads of a role from `first` on."""

    def __init__(self, machine: Machine, name: str, first: int, count: int, outer_first: int = 0) -> None:
        self.machine, self.name, self.first, self.count = machine, name, first, count
        self.outer_first = outer_first
        self.threads = np.arange(first, first + count)
        self.at, self.loops = 0, {}
        # Registers written since the last wgmma fence, and the statement that wrote them.
        self.unfenced: dict[int, int] = {}
        self.queues = {kind: Queue() for kind in ("cp.async", "wgmma", "bulk")}

    def groups(self, roles: list[Any]):
        """Run the roles that stand side by side."""
        generators = []
        self.machine.has_roles = True
        for name, first, count, function in roles:
            role = Context(self.machine, name, first, count, self.first)
            role.loops = dict(self.loops)
            self.machine.contexts.append(role)
            generators.append(function(role))
        yield from run_together(self.machine, generators)

    def iterations(self, extents: Sequence[int], mask, checked: bool = True) -> Iterations:
        """The iterations of a nest as lanes; `checked` ones must not touch one another's elements."""
        if mask is not None and not mask.all():
            raise fault(
                "TL201", "a T.parallel nest is executed by the whole block, not by some threads", self.span()
            )
        return Iterations(self, tuple(int(e) for e in extents), checked)

    def allocate(self, number: int, shape: tuple[int, ...]):
        """A new buffer for an allocation."""
        return self.machine.allocate(self, number, tuple(int(s) for s in shape))

    def tile(self, op: str, operands: list[Any], config: dict[str, Any], mask):
        """Execute a tile operation; for those that may suspend, the generator that does."""
        return self.machine.tile(self, op, operands, config, mask)

    def here(self) -> tuple[int, dict[str, Any]]:
        """The statement being executed and the loops around it."""
        return self.at, dict(self.loops)

    def go_back(self, then: tuple[int, dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        """Let messages speak of an earlier statement, whose effect comes only now; gives the present one."""
        now = self.at, self.loops
        self.at, self.loops = then
        return now

    def active(self, mask) -> np.ndarray:
        """The numbers of the active threads."""
        return self.threads if mask is None else self.threads[mask]

    def race(self, buffer, index, conflict, me: int, is_write: bool) -> None:
        """Report an unordered pair of accesses to shared memory: TL603, or TL605 for a missing proxy
        fence.
        """
        machine = self.machine
        names = machine.column_name(me), machine.column_name(conflict.other)
        mine = "write" if is_write else "read"
        other_span = machine.span(conflict.statement)
        verb = "writes" if is_write else "reads"
        was = "wrote" if conflict.kind == "write" else "read"
        what = f"{buffer.name}{list(index)}"
        if conflict.missing_fence:
            raise fault(
                "TL605",
                f"{names[0]} {verb} {what}, which {names[1]} {was} through the generic proxy"
                f" with no proxy fence since{self.iteration_text()}",
                self.span(),
                ((other_span, f"{was} here"),),
                help='put T.fence(kind="proxy.async") after that access, before the threads synchronise',
            )
        first = Access(conflict.kind, names[1], place_of(other_span))
        race = Race(
            buffer.name,
            index,
            first,
            Access(mine, names[0], place_of(self.span())),
            self.iteration_text()[2:],
        )
        if machine.collect_races:
            machine.note_race(race)
            return
        raise fault(
            "TL603",
            f"{names[0]} {verb} {what}, which {names[1]} {was} with nothing to order the two"
            + self.iteration_text(),
            self.span(),
            ((other_span, f"{was} here by {names[1]}"),),
        )


@lru_cache(maxsize=256)
def lane_indices(extents: tuple[int, ...], axis: int) -> np.ndarray:
    """One coordinate of every point of a box, in row-major order."""
    inner = math.prod(extents[axis + 1 :])
    numbers = np.arange(math.prod(extents)) // max(inner, 1) % max(extents[axis], 1)
    numbers.setflags(write=False)
    return numbers


class Iterations(Lanes):
    """The iterations of a parallel nest; remembers who read and wrote which element to find those that
    clash.
    """

    is_iterations = True
    lane_word = "iterations"

    def __init__(self, outer: Context, extents: tuple[int, ...], checked: bool) -> None:
        self.machine, self.outer, self.extents = outer.machine, outer, extents
        self.count = math.prod(extents)
        self.is_checked = checked and self.count > 1
        self.at, self.loops, self.unfenced = outer.at, outer.loops, outer.unfenced
        self.threads = outer.threads
        self.readers: dict[int, np.ndarray] = {}
        self.writers: dict[int, np.ndarray] = {}

    def index(self, axis: int) -> np.ndarray:
        """The value of one loop's index on every lane."""
        return lane_indices(self.extents, axis)

    def tile(self, op: str, operands: list[Any], config: dict[str, Any], mask):
        """Execute an operation that each iteration performs by itself."""
        return self.machine.tile(self, op, operands, config, mask)

    def active(self, mask) -> np.ndarray:
        """The lanes that are active."""
        return np.arange(self.count) if mask is None else np.nonzero(mask)[0]

    def _shadow(self, table: dict[int, np.ndarray], buffer) -> np.ndarray:
        if id(buffer) not in table:
            table[id(buffer)] = np.full(buffer.shape, -1, np.int64)
        return table[id(buffer)]

    def _lane_numbers(self, shape, active):
        numbers = np.arange(self.count)
        numbers = np.broadcast_to(numbers[:, None] if len(shape) == 2 else numbers, shape)
        return numbers if active is None else numbers[active]

    def note_read(self, buffer, indices, inside, mask) -> None:
        """Remember reads; an element that another iteration wrote is a race."""
        if not self.is_checked:
            return
        reader, writer = self._shadow(self.readers, buffer), self._shadow(self.writers, buffer)
        shape = np.broadcast_shapes(*(np.shape(i) for i in indices))
        if shape == () or shape[0] != self.count:
            # All iterations read the same elements.
            if (writer[indices] >= 0).any():
                self._race(buffer, indices, None)
            reader[indices] = -2
            return
        active = None
        if mask is not None or inside is not None:
            active = np.broadcast_to(
                True if mask is None else (mask[:, None] if len(shape) == 2 else mask), shape
            )
            active = active if inside is None else active & inside
        me = self._lane_numbers(shape, active)
        where = tuple(
            np.broadcast_to(i, shape) if active is None else np.broadcast_to(i, shape)[active]
            for i in indices
        )
        before = writer[where]
        bad = (before >= 0) & (before != me)
        if bad.any():
            self._race(buffer, where, bad)
        old = reader[where]
        reader[where] = np.where((old == -1) | (old == me), me, -2)
        shared = reader[where] != me
        if shared.any():
            reader[tuple(w[shared] for w in where)] = -2

    def note_write(self, buffer, indices, values, active) -> None:
        """Remember writes; an element that another iteration read or wrote otherwise is a race."""
        if not self.is_checked:
            return
        reader, writer = self._shadow(self.readers, buffer), self._shadow(self.writers, buffer)
        if not any(isinstance(i, np.ndarray) for i in indices):
            if reader[indices] != -1:
                self._race(buffer, indices, None)
            writer[indices] = -2
            return
        shape = np.shape(indices[0]) if active is None else np.shape(active)
        me = self._lane_numbers(shape, active)
        old = buffer.data[indices]
        seen, wrote = reader[indices], writer[indices]
        bad = (seen == -2) | ((seen >= 0) & (seen != me)) | ((wrote >= 0) & (wrote != me) & (old != values))
        if bad.any():
            self._race(buffer, indices, bad)
        writer[indices] = np.where((wrote == -1) | (wrote == me), me, -2)
        several = writer[indices] != me
        if several.any():
            writer[tuple(np.broadcast_to(w, several.shape)[several] for w in indices)] = -2

    def _race(self, buffer, indices, bad) -> None:
        at = tuple(int(np.ravel(i)[0]) for i in indices)
        if bad is not None:
            at = tuple(int(np.broadcast_to(i, bad.shape)[bad][0]) for i in indices)
        raise fault(
            "TL603",
            f"two iterations of a T.parallel nest touch {buffer.name}{list(at)}, and one of them writes it"
            f"{self.iteration_text()}",
            self.span(),
            help="iterations run in any order: make them independent, or use T.serial or an atomic operation",
        )
