"""The wait counters of a batch of waves: which registers still wait for a load, and which wait is missing.

`vmcnt` counts vector memory operations, retired in order. `lgkmcnt` counts LDS operations, retired in
order, and scalar loads, which may return in any order: while a scalar load is outstanding only `lgkmcnt(0)`
proves anything. A count is kept as two running totals per wave: operations issued, and operations known to
have finished.
"""

from __future__ import annotations

import re

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction
from tilelab.emulate.gfx942.formats import I64, Array

__all__ = ["Selection", "Waits", "parse_waitcnt"]

Selection = slice | np.ndarray
"""The waves that an instruction runs on: all of the batch, or their indices."""

_VECTOR_REGISTERS, _SCALAR_REGISTERS = 512, 128
_VMCNT_MAX, _LGKMCNT_MAX = 63, 15


class Waits:
    """Issued and finished memory operations per wave, and the operation that each register waits for."""

    def __init__(self, waves: int) -> None:
        self.vm_issued, self.vm_done = np.zeros(waves, I64), np.zeros(waves, I64)
        self.lgkm_issued, self.lgkm_done = np.zeros(waves, I64), np.zeros(waves, I64)
        self._last_scalar_load = np.zeros(waves, I64)
        self._vm_due = np.zeros((_VECTOR_REGISTERS, waves), I64)
        self._lds_due = np.zeros((_VECTOR_REGISTERS, waves), I64)
        self._scalar_due = np.zeros((_SCALAR_REGISTERS, waves), I64)
        self.pending_vectors: set[int] = set()
        self.pending_scalars: set[int] = set()

    def issue_vm(self, selected: Selection) -> None:
        """Count a vector memory operation."""
        self.vm_issued[selected] += 1

    def issue_lgkm(self, selected: Selection) -> None:
        """Count an LDS operation."""
        self.lgkm_issued[selected] += 1

    def issue_scalar_load(self, selected: Selection) -> None:
        """Count a scalar load."""
        self.lgkm_issued[selected] += 1
        self._last_scalar_load[selected] = self.lgkm_issued[selected]

    def expect_vm(self, register: int, selected: Selection) -> None:
        """The latest vector memory operation will write this vector register."""
        self._vm_due[register, selected] = self.vm_issued[selected]
        self.pending_vectors.add(register)

    def expect_lds(self, register: int, selected: Selection) -> None:
        """The latest LDS operation will write this vector register."""
        self._lds_due[register, selected] = self.lgkm_issued[selected]
        self.pending_vectors.add(register)

    def expect_scalar(self, register: int, selected: Selection) -> None:
        """The latest scalar load will write this scalar register."""
        self._scalar_due[register, selected] = self.lgkm_issued[selected]
        self.pending_scalars.add(register)

    def missing_for_vector(self, register: int, selected: Selection) -> tuple[str, Array] | None:
        """The counter whose wait is missing before this vector register may be used, and for which waves."""
        late_vm = self._vm_due[register] > self.vm_done
        late_lds = self._lds_due[register] > self.lgkm_done
        if not (late_vm.any() or late_lds.any()):
            self.pending_vectors.discard(register)
            return None
        if late_vm[selected].any():
            return "vmcnt", late_vm[selected]
        return ("lgkmcnt", late_lds[selected]) if late_lds[selected].any() else None

    def missing_for_scalar(self, register: int, selected: Selection) -> tuple[str, Array] | None:
        """The same for a scalar register."""
        late = self._scalar_due[register] > self.lgkm_done
        if not late.any():
            self.pending_scalars.discard(register)
            return None
        return ("lgkmcnt", late[selected]) if late[selected].any() else None

    def wait(self, vm: int | None, lgkm: int | None, selected: Selection) -> None:
        """Run `s_waitcnt`: at most `vm` and `lgkm` operations may be outstanding afterwards."""
        if vm is not None:
            self.vm_done[selected] = np.maximum(self.vm_done[selected], self.vm_issued[selected] - vm)
        if lgkm is None:
            return
        done, issued = self.lgkm_done[selected], self.lgkm_issued[selected]
        if lgkm > 0:
            has_scalar_load = self._last_scalar_load[selected] > done
            issued = np.where(has_scalar_load, done + lgkm, issued)
        self.lgkm_done[selected] = np.maximum(done, issued - lgkm)


def parse_waitcnt(instruction: Instruction) -> tuple[int | None, int | None]:
    """The vmcnt and lgkmcnt of an `s_waitcnt`; None where it does not wait for that counter."""
    text = instruction.raw_operands[0]
    if re.fullmatch(r"(0x)?[0-9a-f]+", text):
        bits = int(text, 0)
        vm, lgkm = (bits & 15) | (bits >> 14 & 3) << 4, bits >> 8 & 15
    else:
        named = dict(re.findall(r"(\w+)\((\d+)\)", text))
        vm, lgkm = int(named.get("vmcnt", _VMCNT_MAX)), int(named.get("lgkmcnt", _LGKMCNT_MAX))
    return (vm if vm < _VMCNT_MAX else None), (lgkm if lgkm < _LGKMCNT_MAX else None)
