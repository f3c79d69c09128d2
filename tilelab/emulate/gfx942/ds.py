"""LDS instructions that read, write and update LDS (`ds_read…`, `ds_write…`, `ds_add…`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, unknown
from tilelab.emulate.gfx942.formats import F32, F64, I32, I64, U8, U16, U32, U64, Array
from tilelab.emulate.gfx942.lds import LdsAccess, LdsConflict
from tilelab.emulate.gfx942.narrow import extend, merge_half
from tilelab.emulate.gfx942.operands import Reader, Step, vector, vector_pair, wide
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["bind"]

_MOVE = re.compile(r"ds_(read|write)(2?)(st64)?_(b|u|i)(8|16|32|64|96|128)(_d16)?(_hi)?$")
_ATOMIC = re.compile(r"ds_(add|sub|max|min|or|and|xor)_(rtn_)?(u32|i32|f32|b32|u64|f64|b64)$")
_ATOMIC_TYPES = {"u32": U32, "i32": I32, "f32": F32, "b32": U32, "u64": U64, "f64": F64, "b64": U64}
_ATOMIC_FUNCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "max": np.maximum,
    "min": np.minimum,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
}


def bind(instruction: Instruction) -> Step | None:
    """The step of an LDS memory instruction, or None if it is not one."""
    if found := _MOVE.match(instruction.name):
        return (_bind_read if found[1] == "read" else _bind_write)(instruction, found)
    if found := _ATOMIC.match(instruction.name):
        return _bind_atomic(instruction, found)
    return None


def _offsets(instruction: Instruction, found: re.Match[str], size: int) -> tuple[int, ...]:
    """Byte offsets of the one or two accesses of the instruction."""
    if not found[2]:
        return (instruction.offset(),)
    scale = size * (64 if found[3] else 1)
    return (instruction.offset("offset0") * scale, instruction.offset("offset1") * scale)


def _bind_read(instruction: Instruction, found: re.Match[str]) -> Step:
    size = int(found[5]) // 8
    offsets = _offsets(instruction, found, size)
    address = vector(instruction, instruction.operands[1], U32)
    first = instruction.operands[0].register
    is_signed, is_d16, is_high = found[4] == "i", bool(found[6]), bool(found[7])

    def step(w: Waves) -> None:
        base = np.broadcast_to(address(w), (w.count, LANES)).astype(I64)
        w.waits.issue_lgkm(w.selected)
        values: list[Array] = []
        for offset in offsets:
            data = _read(w, instruction, base + offset, size)
            if size < 4:
                value = extend(data, is_signed)
                values.append(merge_half(w, first, value, is_high) if is_d16 else value)
            else:
                values += [data[..., word] for word in range(size // 4)]
        for index, value in enumerate(values):
            w.store(first + index, value)
            w.waits.expect_lds(first + index, w.selected)

    return step


def _bind_write(instruction: Instruction, found: re.Match[str]) -> Step:
    size = int(found[5]) // 8
    offsets = _offsets(instruction, found, size)
    address = vector(instruction, instruction.operands[0], U32)
    data = [
        wide(instruction, operand, max(1, size // 4))
        for operand in instruction.operands[1 : 1 + len(offsets)]
    ]
    shift = U32(16 if found[6] and found[7] else 0)

    def step(w: Waves) -> None:
        base = np.broadcast_to(address(w), (w.count, LANES)).astype(I64)
        w.waits.issue_lgkm(w.selected)
        for offset, read in zip(offsets, data, strict=True):
            words = read(w)
            if size < 4:
                words = (words[..., 0] >> shift).astype(U8 if size == 1 else U16)
            _write(w, instruction, base + offset, words, size)

    return step


def _read(w: Waves, instruction: Instruction, offsets: Array, size: int) -> Array:
    """Data of one access per lane, 0 in inactive lanes: [n, 64] for narrow sizes, else [n, 64, size / 4]."""
    access = _prepare(w, instruction, offsets, size, is_write=False)
    shape = (w.count, LANES) if size < 4 else (w.count, LANES, size // 4)
    if not len(access.offset):
        return np.zeros(shape, U8 if size == 1 else U16 if size == 2 else U32)
    try:
        data, never_written = w.lds.read(access)
    except LdsConflict as conflict:
        raise _race(w, conflict) from conflict
    if never_written:
        w.diagnostics[f"LDS bytes read but never written at pc {instruction.pc:#x} ({instruction.text})"] += (
            never_written
        )
    if w.is_full:
        return data.reshape(shape)
    out = np.zeros(shape, data.dtype)
    out[w.active] = data
    return out


def _write(w: Waves, instruction: Instruction, offsets: Array, data: Array, size: int) -> None:
    access = _prepare(w, instruction, offsets, size, is_write=True)
    if not len(access.offset):
        return
    try:
        w.lds.write(access, data[w.active])
    except LdsConflict as conflict:
        raise _race(w, conflict) from conflict


def _prepare(w: Waves, instruction: Instruction, offsets: Array, size: int, *, is_write: bool) -> LdsAccess:
    """The accesses of the active lanes, counted and checked against the size and alignment of LDS."""
    lanes = w.active
    outside = lanes & (offsets + size > w.lds.size)
    if outside.any():
        row, lane = np.argwhere(outside)[0]
        message = f"{size} bytes at byte {offsets[row, lane]} of LDS, which has {w.lds.size} bytes"
        raise w.fault("TL601", message, lanes=outside)
    misaligned = lanes & (offsets % min(size, 4) != 0)
    if misaligned.any():
        w.diagnostics[f"misaligned LDS access at pc {instruction.pc:#x} ({instruction.text})"] += int(
            misaligned.sum()
        )
    w.profile.lds(instruction, offsets, lanes, size, is_write)
    per_wave = lanes.sum(axis=1)

    def spread(values: Array) -> Array:
        return np.repeat(values[w.selected], per_wave)

    issue = spread(w.waits.lgkm_issued)
    return LdsAccess(spread(w.group), offsets[lanes], spread(w.wave), issue, size)


def _race(w: Waves, conflict: LdsConflict) -> Exception:
    bad = np.zeros((w.count, LANES), bool)
    bad[w.active] = conflict.bad
    return w.fault("TL603", conflict.sentence, lanes=bad)


def _bind_atomic(instruction: Instruction, found: re.Match[str]) -> Step:
    dtype: Any = _ATOMIC_TYPES[found[3]]
    function = _ATOMIC_FUNCTIONS[found[1]]
    size = np.dtype(dtype).itemsize
    returns = bool(found[2])
    operands = instruction.operands[1:] if returns else instruction.operands
    if len(operands) < 2 or (returns and size != 4):
        raise unknown(instruction)
    address = vector(instruction, operands[0], U32)
    value: Reader = (vector if size == 4 else vector_pair)(instruction, operands[1], dtype)
    offset = instruction.offset()
    apply: Callable[..., Array | None] = _update_in_lane_order if returns else _update

    def step(w: Waves) -> None:
        base = np.broadcast_to(address(w), (w.count, LANES)).astype(I64) + offset
        operand = np.broadcast_to(value(w), (w.count, LANES))
        w.waits.issue_lgkm(w.selected)
        access = _prepare(w, instruction, base, size, is_write=True)
        old = None
        if len(access.offset):
            try:
                w.lds.touch_atomically(access)
            except LdsConflict as conflict:
                raise _race(w, conflict) from conflict
            old = apply(w.lds.bytes.view(dtype), w.lds.flat(access) // size, operand[w.active], function)
        if returns:
            before = np.zeros((w.count, LANES), U32)
            if old is not None:
                before[w.active] = old.view(U32)
            w.store(instruction.operands[0].register, before)
            w.waits.expect_lds(instruction.operands[0].register, w.selected)

    return step


def _update(cells: Array, where: Array, values: Array, function: np.ufunc) -> None:
    function.at(cells, where, values)


def _update_in_lane_order(cells: Array, where: Array, values: Array, function: np.ufunc) -> Array:
    """Update one access after the other, in lane order, and give the values before each."""
    old = np.empty_like(values)
    for index, (cell, value) in enumerate(zip(where.tolist(), values, strict=True)):
        old[index] = cells[cell]
        cells[cell] = function(cells[cell], value)
    return old
