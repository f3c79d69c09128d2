"""The state of a batch of waves that run in lockstep: registers, EXEC, program counters, and their faults.

Vector registers are arrays [register, wave, 64 lanes] of uint32, scalar registers [register, wave]. An
instruction runs on the selected waves: all of the batch (a slice, no copies) or some (an index array).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import EXEC, Instruction, register_name
from tilelab.emulate.gfx942.formats import I64, U8, U32, U64, Array
from tilelab.emulate.gfx942.lds import LdsMemory
from tilelab.emulate.gfx942.memory import GlobalMemory, OutOfBounds
from tilelab.emulate.gfx942.profile import Profile
from tilelab.emulate.gfx942.waits import Selection, Waits
from tilelab.errors import TileError

__all__ = ["AT_BARRIER", "DONE", "LANES", "RUNNING", "Waves", "lane_list", "pack", "unpack"]

LANES = 64
RUNNING, AT_BARRIER, DONE = 0, 1, 2
_ALL = slice(None)
_LOW = U64(0xFFFFFFFF)
_HIGH_SHIFT = U64(32)


def pack(mask: Array) -> Array:
    """A bool array [n, 64] as uint64 [n], lane 0 in bit 0."""
    return np.packbits(mask, axis=1, bitorder="little").view(U64)[:, 0]


def unpack(bits: Array) -> Array:
    """A uint64 array [n] as bool [n, 64]."""
    raw = np.ascontiguousarray(bits, U64).view(U8).reshape(-1, 8)
    return np.unpackbits(raw, axis=1, bitorder="little").view(bool)


def lane_list(mask: Array) -> str:
    """Lanes of a bool array [64] as text: `0-3, 17`."""
    lanes = np.flatnonzero(mask).tolist()
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and lane == runs[-1][1] + 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


class Waves:
    """A batch of whole workgroups, every wave of them with its registers."""

    def __init__(
        self,
        kernel: str,
        groups: list[tuple[int, int, int]],
        waves_per_group: int,
        memory: GlobalMemory,
        lds: LdsMemory,
    ) -> None:
        total = len(groups) * waves_per_group
        self.kernel, self.groups, self.total = kernel, groups, total
        self.memory, self.lds = memory, lds
        self.code_address = 0
        self.group = np.repeat(np.arange(len(groups)), waves_per_group)
        self.wave = np.tile(np.arange(waves_per_group), len(groups))
        self.vector = np.zeros((512, total, LANES), U32)
        self.scalar = np.zeros((128, total), U32)
        self.scc = np.zeros(total, bool)
        self.exec = np.zeros((total, LANES), bool)
        self.pc = np.zeros(total, I64)
        self.status = np.zeros(total, U8)
        self.waits = Waits(total)
        self.on_the_way_to_lds: list[list[Any]] = [[] for _ in range(total)]
        self.has_lds_loads = False
        self.profile = Profile()
        self.diagnostics: Counter[str] = Counter()
        self.instruction: Instruction | None = None
        self.selected: Selection = _ALL
        self.count = total
        self.active = self.exec
        self.is_full = False
        self._everyone = np.arange(total)

    # --------------------------------------------------------------------------------------------- selection
    def select(self, indices: Array) -> None:
        """Run the next instructions on these waves."""
        self.count = len(indices)
        self.selected = _ALL if self.count == self.total else indices
        self._refresh_active()

    def selected_indices(self) -> Array:
        """The selected waves as an index array."""
        return self._everyone[self.selected]

    def _refresh_active(self) -> None:
        self.active = self.exec[self.selected]
        self.is_full = bool(self.active.all())

    # --------------------------------------------------------------------------------------------- vectors
    def read(self, register: int) -> Array:
        """A vector register, uint32 [n, 64]; often a view, so never to be written to."""
        if register in self.waits.pending_vectors:
            self._check_arrived(register, "read")
        return self.vector[register, self.selected]

    def read_pair(self, register: int) -> Array:
        """Two vector registers as uint64 [n, 64]."""
        low, high = self.read(register).astype(U64), self.read(register + 1).astype(U64)
        return low | high << _HIGH_SHIFT

    def write(self, register: int, value: Array, mask: Array | None = None) -> None:
        """Write a vector register in the active lanes, or those of `mask`; the value may broadcast."""
        if register in self.waits.pending_vectors:
            self._check_arrived(register, "overwritten")
        self.store(register, value, mask)

    def write_pair(self, register: int, value: Array, mask: Array | None = None) -> None:
        """Write two vector registers from uint64."""
        self.write(register, (value & _LOW).astype(U32), mask)
        self.write(register + 1, (value >> _HIGH_SHIFT).astype(U32), mask)

    def write_all_lanes(self, register: int, value: Array) -> None:
        """Write a vector register whatever EXEC says."""
        if register in self.waits.pending_vectors:
            self._check_arrived(register, "overwritten")
        self.vector[register, self.selected] = value

    def store(self, register: int, value: Array, mask: Array | None = None) -> None:
        """`write` without the check for outstanding loads, for the loads themselves."""
        if mask is None:
            if self.is_full:
                self.vector[register, self.selected] = value
                return
            mask = self.active
        if isinstance(self.selected, slice):
            np.copyto(self.vector[register], value, where=mask)
            return
        merged = self.vector[register, self.selected]
        np.copyto(merged, value, where=mask)
        self.vector[register, self.selected] = merged

    def _check_arrived(self, register: int, how: str) -> None:
        missing = self.waits.missing_for_vector(register, self.selected)
        if missing is not None:
            counter, late = missing
            name = register_name(register)
            raise self.fault(
                "TL602", f"{name} is {how} before its load has arrived: s_waitcnt {counter} is missing", late
            )

    # --------------------------------------------------------------------------------------------- scalars
    def read_scalar(self, register: int) -> Array:
        """A scalar register, uint32 [n]."""
        if register in self.waits.pending_scalars:
            missing = self.waits.missing_for_scalar(register, self.selected)
            if missing is not None:
                raise self.fault(
                    "TL602",
                    f"s{register} is read before its load has arrived: s_waitcnt {missing[0]} is missing",
                    missing[1],
                )
        return self.scalar[register, self.selected]

    def read_scalar_pair(self, register: int) -> Array:
        """Two scalar registers as uint64 [n]."""
        low, high = self.read_scalar(register).astype(U64), self.read_scalar(register + 1).astype(U64)
        return low | high << _HIGH_SHIFT

    def write_scalar(self, register: int, value: Array) -> None:
        """Write a scalar register; EXEC takes effect at once."""
        self.scalar[register, self.selected] = value
        if register in (EXEC, EXEC + 1):
            self.set_exec(self.read_scalar_pair(EXEC))

    def write_scalar_pair(self, register: int, value: Array) -> None:
        """Write two scalar registers from uint64; EXEC takes effect at once."""
        self.scalar[register, self.selected] = (value & _LOW).astype(U32)
        self.scalar[register + 1, self.selected] = (value >> _HIGH_SHIFT).astype(U32)
        if register == EXEC:
            self.set_exec(value)

    def set_exec(self, bits: Array) -> None:
        """Unpack a new EXEC mask (uint64 [n]) of the selected waves."""
        self.exec[self.selected] = unpack(np.broadcast_to(bits, (self.count,)))
        self._refresh_active()

    def write_mask(self, register: int, mask: Array) -> None:
        """Write a scalar pair from bool [n, 64], with zeros in the inactive lanes."""
        self.write_scalar_pair(register, pack(mask & self.active))

    # --------------------------------------------------------------------------------------------- faults
    def fault(
        self, code: str, message: str, waves: Array | None = None, lanes: Array | None = None
    ) -> TileError:
        """A `TileError` that says where: kernel, pc, instruction, workgroup, wave and lanes.

        `waves` marks the selected waves concerned (bool [n]); `lanes` their lanes (bool [n, 64]).
        """
        if lanes is not None:
            waves = np.asarray(lanes.any(axis=1))
        first = int(np.argmax(waves)) if waves is not None else 0
        index = int(self.selected_indices()[first])
        where = f"workgroup {self.groups[self.group[index]]} wave {self.wave[index]}"
        if lanes is not None:
            where += f" lanes {lane_list(lanes[first])}"
        more = f" and {int(waves.sum()) - 1} more waves" if waves is not None and waves.sum() > 1 else ""
        at = self.instruction
        place = f"pc {at.pc:#x} ({at.text})" if at else "launch"
        return TileError(code, f"{message}; kernel {self.kernel}, {place}, {where}{more}")

    def fault_out_of_bounds(self, error: OutOfBounds, lanes: Array) -> TileError:
        """The fault for an access outside global memory; `lanes` [n, 64] selected the accesses in order."""
        bad = np.zeros(lanes.shape, bool)
        bad[lanes] = error.bad
        return self.fault("TL601", error.sentence, lanes=bad)
