"""Scalar loads: whole registers per wave, from global memory, plain or through a buffer descriptor."""

from __future__ import annotations

import re

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction
from tilelab.emulate.gfx942.formats import I64, U32
from tilelab.emulate.gfx942.memory import BASE, OutOfBounds
from tilelab.emulate.gfx942.operands import Step, scalar32, scalar64
from tilelab.emulate.gfx942.waves import Waves

__all__ = ["bind"]

_NAME = re.compile(r"s_(buffer_)?load_dword(?:x(\d+))?$")
_ADDRESS_MASK = (1 << 48) - 1


def bind(instruction: Instruction) -> Step | None:
    """The step of a scalar load, or None if it is not one."""
    found = _NAME.match(instruction.name)
    if not found:
        return None
    is_buffer, count = bool(found[1]), int(found[2] or 1)
    target_operand, base_operand, offset_operand = instruction.operands
    target, descriptor = target_operand.register, base_operand.register
    base, offset = scalar64(instruction, base_operand), scalar32(instruction, offset_operand)
    more = instruction.offset()
    words = 4 * np.arange(count)

    def step(w: Waves) -> None:
        within = np.broadcast_to(offset(w).view(np.int32).astype(I64) + more, (w.count,))
        start = base(w).astype(I64)
        if is_buffer:
            start = start & _ADDRESS_MASK
        places = ((start + within & ~3) - BASE)[:, None] + words
        if is_buffer:
            exists = within[:, None] + words < w.read_scalar(descriptor + 2).astype(I64)[:, None]
        else:
            exists = np.ones(places.shape, bool)
        data = np.zeros(places.shape, U32)
        try:
            data[exists] = w.memory.gather(places[exists], 4)[:, 0]
        except OutOfBounds as error:
            bad = np.zeros(places.shape, bool)
            bad[exists] = error.bad
            raise w.fault("TL601", error.sentence, np.asarray(bad.any(axis=1))) from error
        w.waits.issue_scalar_load(w.selected)
        for index in range(count):
            w.scalar[target + index, w.selected] = data[:, index]
            w.waits.expect_scalar(target + index, w.selected)

    return step
