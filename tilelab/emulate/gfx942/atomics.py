"""Atomic updates of global memory, without and with return value."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, unknown
from tilelab.emulate.gfx942.formats import F16, F32, F64, I32, I64, U16, U32, U64, Array, bfloat16_to_float32
from tilelab.emulate.gfx942.memory import OutOfBounds
from tilelab.emulate.gfx942.operands import Step, vector, vector_pair
from tilelab.emulate.gfx942.vmem import where_addressed, where_in_buffer
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["bind"]

_NAME = re.compile(r"(global|flat|buffer)_atomic_(\w+?)(_x2)?$")
_PLAIN: dict[str, tuple[Any, np.ufunc]] = {
    "add": (U32, np.add),
    "sub": (U32, np.subtract),
    "umax": (U32, np.maximum),
    "umin": (U32, np.minimum),
    "smax": (I32, np.maximum),
    "smin": (I32, np.minimum),
    "or": (U32, np.bitwise_or),
    "and": (U32, np.bitwise_and),
    "xor": (U32, np.bitwise_xor),
    "add_f32": (F32, np.add),
    "add_f64": (F64, np.add),
    "max_f64": (F64, np.maximum),
    "min_f64": (F64, np.minimum),
}
_WIDE = {U32: U64, I32: I64}


def bind(instruction: Instruction) -> Step | None:
    """The step of a global atomic, or None if it is not one."""
    found = _NAME.match(instruction.name)
    if not found:
        return None
    family, name, is_wide = found.groups()
    # sc0 on an atomic asks for the value before the update
    returns = "sc0" in instruction.modifiers or "glc" in instruction.modifiers
    operands = instruction.operands
    if family == "buffer":
        data, where = operands[0], where_in_buffer(instruction, operands[1:])
        target = data
    else:
        target, rest = (operands[0], operands[1:]) if returns else (operands[1], operands)
        data, where = rest[1], where_addressed(instruction, (rest[0], *rest[2:]))
    if name in ("pk_add_f16", "pk_add_bf16"):
        if returns:
            raise unknown(instruction)
        dtype, update = U32, _add_float16_pairs if name == "pk_add_f16" else _add_bfloat16_pairs
    elif name in _PLAIN:
        dtype, function = _PLAIN[name]
        dtype = _WIDE[dtype] if is_wide else dtype
        update = _returning(function) if returns else function.at
    else:
        raise unknown(instruction)
    size = np.dtype(dtype).itemsize
    read = (vector if size == 4 else vector_pair)(instruction, data, dtype)

    def step(w: Waves) -> None:
        place = where(w)
        lanes = w.active & place.word_exists(0) if place.word_exists else w.active
        values = np.broadcast_to(read(w), (w.count, LANES))[lanes]
        try:
            w.memory.check(place.offsets[lanes], size)
        except OutOfBounds as error:
            raise w.fault_out_of_bounds(error, lanes) from error
        w.profile.global_(instruction, place.offsets, lanes, size, is_write=True)
        old = update(w.memory.bytes.view(dtype), place.offsets[lanes] // size, values)
        w.waits.issue_vm(w.selected)
        if returns:
            _return(w, target.register, lanes, old)

    return step


def _return(w: Waves, register: int, lanes: Array, old: Array) -> None:
    """Put the values before the update into the target registers."""
    words = np.ascontiguousarray(old).view(U32).reshape(len(old), -1)
    for index in range(words.shape[1]):
        full = np.zeros((w.count, LANES), U32)
        full[lanes] = words[:, index]
        w.store(register + index, full)
        w.waits.expect_vm(register + index, w.selected)


def _returning(function: np.ufunc) -> Any:
    """Update one access after the other, in lane order, and give the values before each."""

    def update(cells: Array, where: Array, values: Array) -> Array:
        old = np.empty_like(values)
        for index, (cell, value) in enumerate(zip(where.tolist(), values, strict=True)):
            old[index] = cells[cell]
            cells[cell] = function(cells[cell], value)
        return old

    return update


def _add_float16_pairs(cells: Array, where: Array, values: Array) -> None:
    halves = cells.view(F16)
    for half in (0, 1):
        np.add.at(halves, 2 * where + half, (values >> U32(16 * half) & U32(0xFFFF)).astype(U16).view(F16))


def _add_bfloat16_pairs(cells: Array, where: Array, values: Array) -> None:
    halves = cells.view(U16)
    for cell, value in zip(where.tolist(), values.tolist(), strict=True):
        for half in (0, 1):
            pair = np.array([halves[2 * cell + half], value >> (16 * half) & 0xFFFF], U16)
            total = np.array(bfloat16_to_float32(pair).sum(), F32).view(U32).astype(U64)
            # round to nearest even at bit 16
            halves[2 * cell + half] = (total + U64(0x7FFF) + (total >> U64(16) & U64(1))) >> U64(16)
