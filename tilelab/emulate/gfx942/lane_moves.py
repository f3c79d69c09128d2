"""Moving values between lanes: `ds_bpermute`, `ds_permute`, `ds_swizzle`, and the patterns of DPP."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, integers, unknown
from tilelab.emulate.gfx942.formats import I64, U32, Array
from tilelab.emulate.gfx942.operands import Step, vector
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["bind", "dpp_sources"]

_LANE = np.arange(LANES)
_ROW = _LANE & ~15


def bind(instruction: Instruction) -> Step | None:
    """The step of a lane exchange through the LDS crossbar, or None if it is not one."""
    if instruction.name in ("ds_bpermute_b32", "ds_permute_b32"):
        return _bind_permute(instruction)
    if instruction.name == "ds_swizzle_b32":
        return _bind_swizzle(instruction)
    return None


def _bind_permute(instruction: Instruction) -> Step:
    target = instruction.operands[0].register
    address = vector(instruction, instruction.operands[1], U32)
    value = vector(instruction, instruction.operands[2], U32)
    offset = instruction.offset()
    move = _pull if instruction.name == "ds_bpermute_b32" else _push

    def step(w: Waves) -> None:
        lane = (np.broadcast_to(address(w), (w.count, LANES)).astype(I64) + offset) // 4 % LANES
        result = move(lane, np.broadcast_to(value(w), (w.count, LANES)), w.active)
        w.waits.issue_lgkm(w.selected)
        w.store(target, result)
        w.waits.expect_lds(target, w.selected)

    return step


def _pull(lane: Array, value: Array, active: Array) -> Array:
    """Each lane takes the value of the lane it names; inactive lanes give zero."""
    found = np.take_along_axis(value, lane, axis=1)
    return np.where(np.take_along_axis(active, lane, axis=1), found, U32(0))


def _push(lane: Array, value: Array, active: Array) -> Array:
    """Each active lane sends its value to the lane it names; the highest sender wins."""
    out = np.zeros_like(value)
    for sender in range(LANES):
        to = lane[:, sender : sender + 1]
        before = np.take_along_axis(out, to, axis=1)
        sent = np.where(active[:, sender : sender + 1], value[:, sender : sender + 1], before)
        np.put_along_axis(out, to, sent, axis=1)
    return out


def _bind_swizzle(instruction: Instruction) -> Step:
    target = instruction.operands[0].register
    value = vector(instruction, instruction.operands[1], U32)
    sources = _swizzle_sources(instruction)

    def step(w: Waves) -> None:
        result = _pull(
            np.broadcast_to(sources, (w.count, LANES)), np.broadcast_to(value(w), (w.count, LANES)), w.active
        )
        w.waits.issue_lgkm(w.selected)
        w.store(target, result)
        w.waits.expect_lds(target, w.selected)

    return step


def _swizzle_sources(instruction: Instruction) -> Array:
    """For each lane the lane it reads, from `offset:swizzle(MODE,…)` or the encoded number."""
    text = instruction.modifiers.get("offset", "0")
    named = re.match(r"swizzle\((\w+),?(.*)\)", text)
    if not named:
        bits = int(text, 0)
        if bits & 0x8000:
            return _quad(tuple(bits >> (2 * i) & 3 for i in range(4)))
        keep, set_, flip = bits & 31, bits >> 5 & 31, bits >> 10 & 31
        return (_LANE & 32) | (((_LANE & 31 & keep) | set_) ^ flip)
    kind, raw = named.groups()
    if kind == "BITMASK_PERM":
        pattern = raw.strip('" ')
        keep = int("".join("1" if c in "pi" else "0" for c in pattern), 2)
        set_ = int("".join("1" if c == "1" else "0" for c in pattern), 2)
        flip = int("".join("1" if c == "i" else "0" for c in pattern), 2)
        return (_LANE & 32) | (((_LANE & 31 & keep) | set_) ^ flip)
    numbers = integers(raw)
    size = numbers[0]
    match kind:
        case "SWAP":
            return _LANE ^ size
        case "REVERSE":
            return _LANE // size * size + (size - 1 - _LANE % size)
        case "BROADCAST":
            return _LANE // size * size + numbers[1]
        case "QUAD_PERM":
            return _quad(numbers)
    raise unknown(instruction, "swizzle")


def _quad(order: tuple[int, ...]) -> Array:
    return (_LANE & ~3) + np.array(order)[_LANE & 3]


def _inside_row(source: Array) -> tuple[Array, Array]:
    valid = (source & ~15) == _ROW
    return np.where(valid, source, _LANE), valid


_DPP: dict[str, Callable[[str], tuple[Array, Array]]] = {
    "quad_perm": lambda v: (_quad(integers(v)), np.ones(LANES, bool)),
    "row_shl": lambda v: _inside_row(_LANE + int(v)),
    "row_shr": lambda v: _inside_row(_LANE - int(v)),
    "row_ror": lambda v: (_ROW + (_LANE - int(v) & 15), np.ones(LANES, bool)),
    "row_newbcast": lambda v: (_ROW + int(v), np.ones(LANES, bool)),
    "row_mirror": lambda v: (_ROW + 15 - (_LANE & 15), np.ones(LANES, bool)),
    "row_half_mirror": lambda v: ((_LANE & ~7) + 7 - (_LANE & 7), np.ones(LANES, bool)),
    "row_bcast": lambda v: (
        (np.where(_ROW >= 16, _ROW - 1, _LANE), _ROW >= 16)
        if int(v) == 15
        else (np.full(LANES, 31), _LANE >= 32)
    ),
    "wave_shl": lambda v: (np.minimum(_LANE + 1, LANES - 1), _LANE < LANES - 1),
    "wave_shr": lambda v: (np.maximum(_LANE - 1, 0), _LANE > 0),
    "wave_rol": lambda v: ((_LANE + 1) % LANES, np.ones(LANES, bool)),
    "wave_ror": lambda v: ((_LANE - 1) % LANES, np.ones(LANES, bool)),
}


def dpp_sources(instruction: Instruction) -> tuple[Array, Array] | None:
    """For a DPP instruction the source lane of each lane and whether it exists; None for any other."""
    for name, sources in _DPP.items():
        if name in instruction.modifiers:
            return sources(instruction.modifiers[name])
    return None
