"""Vector loads and stores of 1 to 16 bytes a lane, through addresses or buffer descriptors.

A `Place` says where each lane's access lies and which of its 32-bit words exist: addresses always exist
(and are checked against the allocations), words outside a buffer's records read as zero and are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, Operand, unknown
from tilelab.emulate.gfx942.formats import I64, U8, U16, U32, U64, Array
from tilelab.emulate.gfx942.memory import BASE, OutOfBounds
from tilelab.emulate.gfx942.narrow import extend, merge_half
from tilelab.emulate.gfx942.operands import Step, scalar32, scalar64, vector, vector_pair, wide
from tilelab.emulate.gfx942.vmem_to_lds import launch_to_lds
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["Place", "Where", "bind", "where_addressed", "where_in_buffer"]

_NAME = re.compile(
    r"(global|flat|buffer)_(load|store)_(lds_)?"
    r"(ubyte|sbyte|ushort|sshort|short|byte|dwordx2|dwordx3|dwordx4|dword)(_d16)?(_hi)?$"
)
_SIZES = {
    "ubyte": 1,
    "sbyte": 1,
    "byte": 1,
    "ushort": 2,
    "sshort": 2,
    "short": 2,
    "dword": 4,
    "dwordx2": 8,
    "dwordx3": 12,
    "dwordx4": 16,
}
_CACHE_CONTROL = (
    "global_wb",
    "global_inv",
    "buffer_wbl2",
    "buffer_inv",
    "buffer_wbinvl1",
    "buffer_wbinvl1_vol",
)
_COUNTED_CACHE_CONTROL = ("buffer_wbl2",)
_ADDRESS_MASK = (1 << 48) - 1


@dataclass(frozen=True)
class Place:
    """Offsets in global memory [n, 64], and whether word k of each access exists (None: all do)."""

    offsets: Array
    word_exists: Callable[[int], Array] | None


Where = Callable[[Waves], Place]


def bind(instruction: Instruction) -> Step | None:
    """The step of a load, a store or a cache operation, or None if it is not one."""
    if instruction.name in _CACHE_CONTROL:
        if instruction.name in _COUNTED_CACHE_CONTROL:
            return lambda w: w.waits.issue_vm(w.selected)
        return lambda w: None
    found = _NAME.match(instruction.name)
    if not found:
        return None
    family, kind, lds, element, d16, high = found.groups()
    size = _SIZES[element]
    is_to_lds = bool(lds) or "lds" in instruction.modifiers
    operands = instruction.operands
    if is_to_lds:
        where = _where(instruction, family, operands)
        return _bind_to_lds(instruction, where, size)
    if kind == "load":
        where = _where(instruction, family, operands[1:])
        return _bind_load(
            instruction, where, size, element.startswith("s"), bool(d16), bool(high), family == "flat"
        )
    if family == "buffer":
        data, place = operands[0], operands[1:]
    else:
        data, place = operands[1], (operands[0], *operands[2:])
    shift = 16 if d16 and high else 0
    return _bind_store(instruction, _where(instruction, family, place), data, size, shift)


def _where(instruction: Instruction, family: str, operands: tuple[Operand, ...]) -> Where:
    return (
        where_in_buffer(instruction, operands)
        if family == "buffer"
        else where_addressed(instruction, operands)
    )


def where_addressed(instruction: Instruction, operands: tuple[Operand, ...]) -> Where:
    """Places of a global or flat access: a 64-bit vector address, or a scalar base plus a vector offset."""
    address, base = operands[0], operands[1] if len(operands) > 1 else None
    more = instruction.offset() - BASE
    if base is None or base.kind != "s":
        full = vector_pair(instruction, address, U64)
        return lambda w: Place(full(w).view(I64) + more, None)
    start = scalar64(instruction, base)
    if address.kind == "off":
        return lambda w: Place(np.broadcast_to((start(w).view(I64) + more)[:, None], (w.count, LANES)), None)
    within = vector(instruction, address, U32)
    return lambda w: Place(
        np.broadcast_to((start(w).view(I64) + more)[:, None] + within(w).astype(I64), (w.count, LANES)), None
    )


def where_in_buffer(instruction: Instruction, operands: tuple[Operand, ...]) -> Where:
    """Places of a buffer access: descriptor, optional index and offset per lane, scalar offset."""
    address, descriptor, scalar_offset = operands[0], operands[1].register, operands[2]
    has_index, has_offset = "idxen" in instruction.modifiers, "offen" in instruction.modifiers
    index = vector(instruction, address, U32) if has_index else None
    within = vector(instruction, address, U32, word=int(has_index)) if has_offset else None
    soffset = scalar32(instruction, scalar_offset)
    immediate = instruction.offset()
    access = min(_access_size(instruction), 4)

    def where(w: Waves) -> Place:
        start = w.read_scalar_pair(descriptor).astype(I64)
        records = w.read_scalar(descriptor + 2).astype(I64)
        word1 = w.read_scalar(descriptor + 1)
        w.read_scalar(descriptor + 3)
        if (word1 >> U32(31)).any():
            raise unknown(instruction, "swizzled buffer")
        stride = (word1 >> U32(16) & U32(0x3FFF)).astype(I64)
        base = (start & _ADDRESS_MASK) - BASE
        scalar = soffset(w).astype(I64)
        offset = np.full((w.count, LANES), immediate, I64)
        if within is not None:
            offset += within(w)
        places = (base + scalar)[:, None] + offset
        if not stride.any():
            # a raw buffer: in range while vector offset + size <= records - scalar offset
            left = (records - scalar)[:, None]
            return Place(places, lambda word: offset + (4 * word + access) <= left)
        rows = index(w).astype(I64) if index is not None else np.zeros((w.count, LANES), I64)
        in_range = np.broadcast_to(rows < records[:, None], places.shape)
        return Place(places + rows * stride[:, None], lambda word: in_range)

    return where


def _access_size(instruction: Instruction) -> int:
    found = _NAME.match(instruction.name)
    return _SIZES[found[4]] if found else 4


def _bind_to_lds(instruction: Instruction, where: Where, size: int) -> Step:
    def step(w: Waves) -> None:
        place = where(w)
        exists = place.word_exists(0) if place.word_exists else np.ones((w.count, LANES), bool)
        w.profile.suppressed_lanes += int((w.active & ~exists).sum())
        # for an address the instruction's offset moves both ends of the copy
        launch_to_lds(w, instruction, place.offsets, exists, size)

    return step


def _bind_load(
    instruction: Instruction,
    where: Where,
    size: int,
    is_signed: bool,
    is_d16: bool,
    is_high: bool,
    is_flat: bool,
) -> Step:
    first = instruction.operands[0].register

    def step(w: Waves) -> None:
        place = where(w)
        data = _load(w, instruction, place, size)
        w.waits.issue_vm(w.selected)
        if is_flat:
            w.waits.issue_lgkm(w.selected)
        if size < 4:
            value = extend(data, is_signed)
            values = [merge_half(w, first, value, is_high) if is_d16 else value]
        else:
            values = [data[..., word] for word in range(size // 4)]
        for index, value in enumerate(values):
            w.store(first + index, value)
            w.waits.expect_vm(first + index, w.selected)

    return step


def _load(w: Waves, instruction: Instruction, place: Place, size: int) -> Array:
    """One access per lane, zero where nothing exists: [n, 64], or words [n, 64, size / 4]."""
    shape = (w.count, LANES) if size < 4 else (w.count, LANES, size // 4)
    dtype = {1: U8, 2: U16}.get(size, U32)
    whole, parts = _whole_lanes(w, place, size)
    _count(w, instruction, place, size, whole, parts, is_write=False)
    if whole.all():
        return _guarded(w, whole, lambda: w.memory.gather(place.offsets.reshape(-1), size)).reshape(shape)
    out = np.zeros(shape, dtype)
    if whole.any():
        out[whole] = _guarded(w, whole, lambda: w.memory.gather(place.offsets[whole], size))
    for word, lanes in parts:
        at = place.offsets[lanes] + 4 * word
        out[lanes, word] = _guarded(w, lanes, lambda at=at: w.memory.gather(at, 4))[:, 0]
    return out


def _bind_store(instruction: Instruction, where: Where, operand: Operand, size: int, shift: int) -> Step:
    read = wide(instruction, operand, max(1, size // 4))

    def step(w: Waves) -> None:
        place = where(w)
        words = read(w)
        data = (words[..., 0] >> U32(shift)).astype(U8 if size == 1 else U16) if size < 4 else words
        whole, parts = _whole_lanes(w, place, size)
        _count(w, instruction, place, size, whole, parts, is_write=True)
        _guarded(w, whole, lambda: w.memory.scatter(place.offsets[whole], data[whole], size))
        for word, lanes in parts:
            at, part = place.offsets[lanes] + 4 * word, words[lanes, word]
            _guarded(w, lanes, lambda at=at, part=part: w.memory.scatter(at, part, 4))
        w.waits.issue_vm(w.selected)

    return step


def _whole_lanes(w: Waves, place: Place, size: int) -> tuple[Array, list[tuple[int, Array]]]:
    """Active lanes whose access exists whole, and for lanes at a buffer's end the words that do."""
    if place.word_exists is None:
        return w.active, []
    exists = [w.active & place.word_exists(word) for word in range(max(1, size // 4))]
    whole = np.logical_and.reduce(exists)
    w.profile.suppressed_lanes += int((w.active & ~whole).sum())
    parts = [(word, lanes & ~whole) for word, lanes in enumerate(exists)]
    return whole, [(word, lanes) for word, lanes in parts if lanes.any()]


def _count(
    w: Waves,
    instruction: Instruction,
    place: Place,
    size: int,
    whole: Array,
    parts: list[tuple[int, Array]],
    *,
    is_write: bool,
) -> None:
    cut = np.logical_or.reduce([lanes for _, lanes in parts]) if parts else np.zeros(whole.shape, bool)
    missing = int(cut.sum()) * size - sum(4 * int(lanes.sum()) for _, lanes in parts)
    w.profile.global_(instruction, place.offsets, whole | cut, size, is_write, missing)


def _guarded(w: Waves, lanes: Array, access: Callable[[], Array | None]) -> Array:
    try:
        return access()  # type: ignore[return-value]
    except OutOfBounds as error:
        raise w.fault_out_of_bounds(error, lanes) from error
