"""What a run counted, and the report made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tilelab.emulate.gfx942.banks import ideal_cycles, lds_cycles, lines_touched
from tilelab.emulate.gfx942.decode import Instruction
from tilelab.emulate.gfx942.formats import Array

__all__ = ["Access", "Diagnostic", "Profile", "Report"]


@dataclass(frozen=True)
class Access:
    """Totals of one memory instruction: executions per wave, bytes moved, and how well it did.

    For `space` "lds", `cost` and `ideal` are LDS cycles under the bank model; for "global", 128-byte
    lines touched and the fewest lines that could hold the bytes.
    """

    pc: int
    text: str
    space: str
    is_write: bool
    executions: int
    bytes: int
    cost: int
    ideal: int


@dataclass(frozen=True)
class Diagnostic:
    """Something doubtful that did not stop the run, and how often it happened."""

    message: str
    times: int


@dataclass(frozen=True)
class Report:
    """Outcome of one launch, summed over all its waves.

    An instruction counts once per wave. Matrix cycles are those of one SIMD; there is no model of time.
    """

    kernel: str
    workgroups: int
    waves_per_group: int
    instructions: int
    by_mnemonic: dict[str, int]
    matrix_cycles: int
    matrix_flops: int
    accesses: tuple[Access, ...]
    suppressed_lanes: int
    diagnostics: tuple[Diagnostic, ...]
    seconds: float

    @property
    def lds_cycles(self) -> int:
        """LDS cycles under the bank model."""
        return sum(a.cost for a in self.accesses if a.space == "lds")

    @property
    def bank_conflict_cycles(self) -> int:
        """LDS cycles beyond those of accesses without a bank conflict."""
        return sum(a.cost - a.ideal for a in self.accesses if a.space == "lds")

    @property
    def bytes_loaded(self) -> int:
        """Bytes that vector instructions read from global memory."""
        return sum(a.bytes for a in self.accesses if a.space == "global" and not a.is_write)

    @property
    def bytes_stored(self) -> int:
        """Bytes that vector instructions wrote to global memory."""
        return sum(a.bytes for a in self.accesses if a.space == "global" and a.is_write)


@dataclass
class _Totals:
    instruction: Instruction
    space: str
    is_write: bool
    executions: int = 0
    bytes: int = 0
    cost: int = 0
    ideal: int = 0

    def finish(self) -> Access:
        at, is_write = self.instruction, self.is_write
        return Access(
            at.pc, at.text, self.space, is_write, self.executions, self.bytes, self.cost, self.ideal
        )


@dataclass
class Profile:
    """Counts of a run; `add` merges those of another batch."""

    by_mnemonic: Counter[str] = field(default_factory=Counter)
    matrix_cycles: int = 0
    matrix_flops: int = 0
    suppressed_lanes: int = 0
    totals: dict[tuple[int, bool], _Totals] = field(default_factory=dict)
    _pattern_cost: dict[bytes, int] = field(default_factory=dict)

    def lds(self, instruction: Instruction, offsets: Array, mask: Array, size: int, is_write: bool) -> None:
        """Count an LDS access; offsets and mask are [n, 64]."""
        row = self._row(instruction, "lds", is_write)
        row.executions += len(offsets)
        row.bytes += int(mask.sum()) * size

        def cycles(addresses: Array, lanes: Array) -> int:
            return lds_cycles(addresses, lanes, size, is_write)

        # Moving all addresses by a multiple of four bytes only rotates the banks.
        row.cost += self._cost(offsets, mask, 4, size * 2 + is_write, cycles)
        if mask.all():
            row.ideal += len(mask) * ideal_cycles(mask[0], size, is_write)
        else:
            row.ideal += sum(ideal_cycles(lanes, size, is_write) for lanes in mask)

    def global_(
        self,
        instruction: Instruction,
        offsets: Array,
        mask: Array,
        size: int,
        is_write: bool,
        missing: int = 0,
    ) -> None:
        """Count a global access; offsets and mask are [n, 64], `missing` bytes lie past a buffer's end."""
        row = self._row(instruction, "global", is_write)
        row.executions += len(offsets)
        lanes_on = mask.sum(axis=1)
        row.bytes += int(lanes_on.sum()) * size - missing

        def lines(addresses: Array, lanes: Array) -> int:
            return lines_touched(addresses[lanes], size)

        row.cost += self._cost(offsets, mask, 128, size * 2, lines)
        row.ideal += int((-(-lanes_on * size // 128)).sum())

    def _row(self, instruction: Instruction, space: str, is_write: bool) -> _Totals:
        key = (instruction.pc, is_write)
        if key not in self.totals:
            self.totals[key] = _Totals(instruction, space, is_write)
        return self.totals[key]

    def _cost(
        self, offsets: Array, mask: Array, period: int, tag: int, price: Callable[[Array, Array], int]
    ) -> int:
        """Sum of `price` over the waves; equal patterns modulo `period` bytes are priced once."""
        base = np.where(mask, offsets, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        shape = np.where(mask, offsets - base + base % period, -1).astype(np.int32)
        total = 0
        for pattern, lanes in zip(shape, mask, strict=True):
            key = tag.to_bytes(2, "little") + period.to_bytes(1, "little") + pattern.tobytes()
            if key not in self._pattern_cost:
                self._pattern_cost[key] = price(pattern.astype(np.int64), lanes)
            total += self._pattern_cost[key]
        return total

    def add(self, other: Profile) -> None:
        """Merge the counts of another batch of the same launch."""
        self.by_mnemonic.update(other.by_mnemonic)
        self.matrix_cycles += other.matrix_cycles
        self.matrix_flops += other.matrix_flops
        self.suppressed_lanes += other.suppressed_lanes
        for key, theirs in other.totals.items():
            row = self._row(theirs.instruction, theirs.space, key[1])
            row.executions += theirs.executions
            row.bytes += theirs.bytes
            row.cost += theirs.cost
            row.ideal += theirs.ideal

    def accesses(self) -> tuple[Access, ...]:
        """The memory instructions in address order."""
        rows = sorted(self.totals.values(), key=lambda r: (r.instruction.pc, r.is_write))
        return tuple(
            Access(
                r.instruction.pc,
                r.instruction.text,
                r.space,
                r.is_write,
                r.executions,
                r.bytes,
                r.cost,
                r.ideal,
            )
            for r in rows
        )
