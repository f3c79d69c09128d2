"""Atomic updates of global memory, without and with return value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, unknown
from tilelab.emulate.gfx942.formats import F16, F32, F64, I32, I64, U16, U32, U64, Array, bfloat16_to_float32
from tilelab.emulate.gfx942.memory import OutOfBounds
from tilelab.emulate.gfx942.operands import Step, wide
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
_ADDITIONS_OF_PAIRS = ("pk_add_f16", "pk_add_bf16")


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
    dtype, update = _update(instruction, name, bool(is_wide), returns)
    size = np.dtype(dtype).itemsize
    values_per_lane = 2 if name == "cmpswap" else 1
    words = wide(instruction, data, values_per_lane * size // 4)

    def step(w: Waves) -> None:
        place = where(w)
        lanes = w.active & place.word_exists(0) if place.word_exists else w.active
        values = words(w)[lanes].view(dtype)
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


def _update(instruction: Instruction, name: str, is_wide: bool, returns: bool) -> tuple[Any, Any]:
    """The dtype, and the update as a function of cells, cell of each access, values [accesses, 1 or 2]."""
    if name in _ADDITIONS_OF_PAIRS and not returns:
        return U32, _add_float16_pairs if name == "pk_add_f16" else _add_bfloat16_pairs
    if name in ("swap", "cmpswap"):
        choose = _swap if name == "swap" else _compare_and_swap
        return (U64 if is_wide else U32), _one_by_one(choose)
    if name not in _PLAIN:
        raise unknown(instruction)
    dtype, function = _PLAIN[name]
    dtype = _WIDE[dtype] if is_wide else dtype
    if returns:
        return dtype, _one_by_one(lambda old, values: function(old, values[0]))
    return dtype, lambda cells, where, values: function.at(cells, where, values[:, 0])


def _swap(old: Any, values: Array) -> Any:
    return values[0]


def _compare_and_swap(old: Any, values: Array) -> Any:
    """The data registers hold the new value, then the one to compare with."""
    return values[0] if old == values[1] else old


def _return(w: Waves, register: int, lanes: Array, old: Array) -> None:
    """Put the values before the update into the target registers."""
    words = np.ascontiguousarray(old).view(U32).reshape(len(old), -1)
    for index in range(words.shape[1]):
        full = np.zeros((w.count, LANES), U32)
        full[lanes] = words[:, index]
        w.store(register + index, full)
        w.waits.expect_vm(register + index, w.selected)


def _one_by_one(function: Callable[[Any, Array], Any]) -> Callable[[Array, Array, Array], Array]:
    """Update one access after the other, in lane order, and give the values before each."""

    def update(cells: Array, where: Array, values: Array) -> Array:
        old = np.empty(len(values), values.dtype)
        for index, (cell, value) in enumerate(zip(where.tolist(), values, strict=True)):
            old[index] = cells[cell]
            cells[cell] = function(cells[cell], value)
        return old

    return update


def _add_float16_pairs(cells: Array, where: Array, values: Array) -> None:
    halves = cells.view(F16)
    for half in (0, 1):
        np.add.at(
            halves, 2 * where + half, (values[:, 0] >> U32(16 * half) & U32(0xFFFF)).astype(U16).view(F16)
        )


def _add_bfloat16_pairs(cells: Array, where: Array, values: Array) -> None:
    halves = cells.view(U16)
    for cell, value in zip(where.tolist(), values[:, 0].tolist(), strict=True):
        for half in (0, 1):
            pair = np.array([halves[2 * cell + half], value >> (16 * half) & 0xFFFF], U16)
            total = np.array(bfloat16_to_float32(pair).sum(), F32).view(U32).astype(U64)
            # round to nearest even at bit 16
            halves[2 * cell + half] = (total + U64(0x7FFF) + (total >> U64(16) & U64(1))) >> U64(16)
