"""Loads that go from global memory straight into LDS: they land only when `s_waitcnt vmcnt` says so.

The LDS address of lane l is M0[15:0] + instruction offset + 4·l; narrower elements take a whole word each.
Until the wait, LDS keeps its old content ("as late as allowed"), so a forgotten wait shows as stale or
never-written bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelab.emulate.gfx942.decode import M0, Instruction
from tilelab.emulate.gfx942.formats import I64, U32, Array
from tilelab.emulate.gfx942.lds import LdsAccess, LdsConflict
from tilelab.emulate.gfx942.memory import OutOfBounds
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["InFlight", "land_arrived", "launch_to_lds"]


@dataclass(frozen=True)
class InFlight:
    """A load of one wave on its way: vmcnt number, LDS offsets and words of its lanes, instruction."""

    issue: int
    offsets: Array
    words: Array
    instruction: Instruction


def launch_to_lds(w: Waves, instruction: Instruction, places: Array, exists: Array, size: int) -> None:
    """Issue the load of global memory at `places` [n, 64]; lanes where `exists` is false bring zero."""
    lanes = w.active & exists
    data = np.zeros((w.count, LANES), U32)
    try:
        data[lanes] = w.memory.gather(places[lanes], size).reshape(-1)
    except OutOfBounds as error:
        raise w.fault_out_of_bounds(error, lanes) from error
    w.profile.global_(instruction, places, lanes, size, is_write=False)
    start = (w.read_scalar(M0) & U32(0xFFFF)).astype(I64) + instruction.offset()
    w.waits.issue_vm(w.selected)
    w.has_lds_loads = True
    for row, index in enumerate(w.selected_indices()):
        on = np.flatnonzero(w.active[row])
        item = InFlight(int(w.waits.vm_issued[index]), start[row] + 4 * on, data[row, on], instruction)
        w.on_the_way_to_lds[index].append(item)


def land_arrived(w: Waves) -> None:
    """Write to LDS what the selected waves have waited for."""
    if not w.has_lds_loads:
        return
    for index in w.selected_indices():
        queue = w.on_the_way_to_lds[index]
        while queue and queue[0].issue <= w.waits.vm_done[index]:
            _land(w, int(index), queue.pop(0))


def _land(w: Waves, index: int, item: InFlight) -> None:
    count = len(item.offsets)
    if count == 0:
        return
    if int(item.offsets.max()) + 4 > w.lds.size:
        raise w.fault("TL601", f"a direct-to-LDS load ends past the {w.lds.size} bytes of LDS")
    ones = np.ones(count, I64)
    access = LdsAccess(w.group[index] * ones, item.offsets, w.wave[index] * ones, 0 * ones, 4)
    try:
        w.lds.write(access, item.words)
    except LdsConflict as conflict:
        raise w.fault("TL603", f"{conflict.sentence} ({item.instruction.text})") from conflict
