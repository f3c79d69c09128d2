"""Who touched which bytes of shared memory last, and whether what came before is known to whoever touches
them now.

Happens-before is kept as vector clocks: `known[i, j]` is the latest time up to which thread i knows what
thread j did. Barriers and mbarriers join rows. `fenced` is the same for accesses that a proxy fence has
made visible to the asynchronous proxy. Agents (the TMA engine, a warpgroup's wgmma unit) are further
columns after the threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Agent", "Conflict", "Tracker"]

Array = np.ndarray


@dataclass(frozen=True)
class Agent:
    """An asynchronous accessor: its column, and what its issuer knew (and had fenced) when it was started."""

    column: int
    known: Array
    fenced: Array


@dataclass(frozen=True)
class Conflict:
    """An unordered pair: where in the access, the other accessor's column and statement, and its kind."""

    position: int
    other: int
    statement: int
    kind: str
    missing_fence: bool = False


class Tracker:
    """Clocks of threads and agents, and the last accesses of every cell of the pool."""

    def __init__(self, threads: int, agents: int, cells: int) -> None:
        columns = threads + agents
        self.threads = threads
        self.known = np.full((threads, columns), -1, np.int32)
        self.fenced = np.full((threads, columns), -1, np.int32)
        self.now = 0
        self.writer = np.full(cells, -1, np.int32)
        self.write_time = np.full(cells, -1, np.int32)
        self.write_at = np.zeros(cells, np.int32)
        # Readers are kept a warpgroup (and one row for agents): the latest time, and the lowest and
        # highest reader.
        rows = -(-threads // 128) + 1
        self.read_time = np.full((rows, cells), -1, np.int32)
        self.first_reader = np.full((rows, cells), -1, np.int32)
        self.last_reader = np.full((rows, cells), -1, np.int32)
        self.read_at = np.zeros((rows, cells), np.int32)

    # ---- order

    def release(self, threads: Array) -> tuple[Array, Array]:
        """What the threads know so far, their own accesses included: the clock that an arrival carries."""
        self.known[threads, threads] = self.now
        self.now += 1
        return self.known[threads].max(axis=0), self.fenced[threads].max(axis=0)

    def acquire(self, threads: Array, clock: tuple[Array, Array]) -> None:
        """The threads learn a clock."""
        self.known[threads] = np.maximum(self.known[threads], clock[0])
        self.fenced[threads] = np.maximum(self.fenced[threads], clock[1])

    def join(self, threads: Array) -> None:
        """A barrier among the threads."""
        self.acquire(threads, self.release(threads))

    def fence(self, threads: Array) -> None:
        """Each thread's own accesses so far become visible to the asynchronous proxy."""
        self.fenced[threads, threads] = self.now
        self.now += 1

    def agent(self, column: int, threads: Array) -> Agent:
        """An accessor that the threads start now."""
        known = self.known[threads].max(axis=0)
        known[threads] = self.now
        return Agent(self.threads + column, known, self.fenced[threads].max(axis=0))

    def completed(self, agent: Agent) -> tuple[Array, Array]:
        """The clock that the end of an agent's work carries: what its issuer knew, and the work itself."""
        known = agent.known.copy()
        known[agent.column] = self.now
        self.now += 1
        return known, agent.fenced

    # ---- accesses

    def read(self, cells: Array, who: Array | Agent, statement: int) -> Conflict | None:
        """Record a read of cells (flat) by threads (one a cell) or by an agent; give the first conflict."""
        writer, time = self.writer[cells], self.write_time[cells]
        conflict = self._unordered(writer, time, who, "write", self.write_at[cells])
        if conflict is None:
            self._note_read(cells, who, statement)
        return conflict

    def write(self, cells: Array, who: Array | Agent, statement: int) -> Conflict | None:
        """Record a write; give the first conflict with an earlier write or read."""
        conflict = self._unordered(
            self.writer[cells], self.write_time[cells], who, "write", self.write_at[cells]
        )
        for row in range(self.read_time.shape[0]):
            if conflict is not None:
                break
            time = self.read_time[row, cells]
            if time.max(initial=-1) < 0:
                continue
            for reader in (self.first_reader, self.last_reader):
                conflict = conflict or self._unordered(
                    reader[row, cells], time, who, "read", self.read_at[row, cells]
                )
        self.writer[cells] = who.column if isinstance(who, Agent) else who
        self.write_time[cells] = self.now
        self.write_at[cells] = statement
        return conflict

    def _unordered(
        self, other: Array, time: Array, who: Array | Agent, kind: str, at: Array
    ) -> Conflict | None:
        touched = time >= 0
        if not touched.any():
            return None
        safe = np.maximum(other, 0)
        if isinstance(who, Agent):
            bad = touched & (who.known[safe] < time)
            unfenced = touched & ~bad & (other < self.threads) & (who.fenced[safe] < time)
        else:
            bad = touched & (other != who) & (self.known[who, safe] < time)
            unfenced = None
        if bad.any():
            position = int(np.argmax(bad))
            return Conflict(position, int(other[position]), int(at[position]), kind)
        if unfenced is not None and unfenced.any():
            position = int(np.argmax(unfenced))
            return Conflict(position, int(other[position]), int(at[position]), kind, True)
        return None

    def _note_read(self, cells: Array, who: Array | Agent, statement: int) -> None:
        if isinstance(who, Agent):
            self._add_readers(
                self.read_time.shape[0] - 1, cells, np.full(cells.shape, who.column), None, statement
            )
            return
        rows = who // 128
        for row in np.unique(rows):
            part = slice(None) if rows.size == 0 or (rows == row).all() else rows == row
            self._add_readers(int(row), cells[part], who[part], who[part], statement)

    def _add_readers(self, row: int, cells: Array, who: Array, threads: Array | None, statement: int) -> None:
        # A reader that knows the earlier ones stands for them; others are kept beside them.
        earlier, time = self.last_reader[row, cells], self.read_time[row, cells]
        if threads is None:
            replaces = np.ones(cells.shape, bool)
        else:
            replaces = (earlier < 0) | (
                (time < self.now) & (self.known[threads, np.maximum(earlier, 0)] >= time)
            )
        fresh = cells[replaces]
        self.first_reader[row, fresh] = 1 << 30
        self.last_reader[row, fresh] = -1
        np.minimum.at(self.first_reader[row], cells, who.astype(np.int32))
        np.maximum.at(self.last_reader[row], cells, who.astype(np.int32))
        self.read_time[row, fresh] = self.now
        self.read_at[row, cells] = statement
