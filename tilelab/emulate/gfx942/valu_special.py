"""Vector instructions with a shape of their own: lane reads, selects, carries, accumulations, division."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, Operand, unknown
from tilelab.emulate.gfx942.formats import F16, F32, F64, I32, I64, U32, U64, Array
from tilelab.emulate.gfx942.operands import Reader, Step, lane_mask, scalar32, vector, vector_pair
from tilelab.emulate.gfx942.valu_table import fused_multiply_add
from tilelab.emulate.gfx942.vector_form import VectorForm
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["bind"]

_LANE = np.arange(LANES)
_VCC = Operand("s", 106, 2)
_MODELLED_EXPONENT = 60
"""v_div_scale only passes values through; that is right while no operand comes near the ends of the range."""


def bind(instruction: Instruction) -> Step | None:
    """The step of such an instruction, or None if it is not one."""
    maker = _MAKERS.get(instruction.name)
    return maker(instruction) if maker else None


def _full(w: Waves, value: Array) -> Array:
    return np.broadcast_to(value, (w.count, LANES))


def _sources(instruction: Instruction, dtype: type) -> list[Reader]:
    """All operands after the two results of an instruction that also writes a mask."""
    return [
        vector(instruction, operand, dtype) for operand in instruction.operands[2:5] if operand.kind != "text"
    ]


def _bind_select(instruction: Instruction) -> Step:
    """v_cndmask_b32: the second source where the mask is set."""
    form = VectorForm(instruction)
    operands = instruction.operands
    has_sign = any(o.is_negated or o.is_absolute for o in operands[1:3])
    otherwise, chosen = (form.source(index, F32 if has_sign else U32) for index in (1, 2))
    mask, write = lane_mask(operands[3] if len(operands) > 3 else _VCC), form.writer()
    return lambda w: write(w, np.where(mask(w), chosen(w), otherwise(w)))


def _bind_first_lane(instruction: Instruction) -> Step:
    source, target = vector(instruction, instruction.operands[1], U32), instruction.operands[0].register

    def step(w: Waves) -> None:
        # argmax gives lane 0 for a wave without active lanes, as the hardware does
        lane = w.active.argmax(axis=1)
        w.write_scalar(target, _full(w, source(w))[np.arange(w.count), lane])

    return step


def _bind_read_lane(instruction: Instruction) -> Step:
    source, target = vector(instruction, instruction.operands[1], U32), instruction.operands[0].register
    lane = scalar32(instruction, instruction.operands[2])
    return lambda w: w.write_scalar(target, _full(w, source(w))[np.arange(w.count), lane(w) & U32(63)])


def _bind_write_lane(instruction: Instruction) -> Step:
    target = instruction.operands[0].register
    value, lane = (scalar32(instruction, operand) for operand in instruction.operands[1:3])

    def step(w: Waves) -> None:
        mask = np.broadcast_to((lane(w) & U32(63))[:, None], (w.count, 1)) == _LANE
        w.write(target, value(w)[:, None], mask)

    return step


def _bind_count_below(instruction: Instruction) -> Step:
    """v_mbcnt: how many bits of the mask belong to lower lanes, added to the second source."""
    form = VectorForm(instruction)
    mask, start, write = form.source(1, U32), form.source(2, U32), form.writer()
    places = _LANE if "_lo_" in instruction.name else _LANE - 32
    below = ((1 << np.clip(places, 0, 32)) - 1).astype(U32)

    def step(w: Waves) -> None:
        bits = np.ascontiguousarray(_full(w, mask(w)) & below).view(np.uint8).reshape(w.count, LANES, 4)
        write(w, np.unpackbits(bits, axis=2).sum(axis=2, dtype=U32) + start(w))

    return step


def _bind_accumulate(instruction: Instruction, dtype: type, fused: bool) -> Step:
    """v_fmac: the destination is the addend."""
    form = VectorForm(instruction)
    a, b, c, write = form.source(1, dtype), form.source(2, dtype), form.source(0, dtype), form.writer()
    if fused:
        return lambda w: write(w, fused_multiply_add(a(w), b(w), c(w)))
    return lambda w: write(w, a(w) * b(w) + c(w))


def _bind_swap(instruction: Instruction) -> Step:
    first, second = (operand.register for operand in instruction.operands)

    def step(w: Waves) -> None:
        a, b = w.read(first).copy(), w.read(second).copy()
        w.write(first, b)
        w.write(second, a)

    return step


def _bind_carry(
    instruction: Instruction, combine: Callable[[Array, Array, Array | int], Array], has_carry_in: bool
) -> Step:
    target, mask = instruction.operands[0].register, instruction.operands[1].register
    a, b = _sources(instruction, U32)[:2]
    carry_in = lane_mask(instruction.operands[4]) if has_carry_in else None
    if instruction.modifiers:
        raise unknown(instruction, "modifier")

    def step(w: Waves) -> None:
        carry = carry_in(w).astype(I64) if carry_in else 0
        result = _full(w, combine(a(w).astype(I64), b(w).astype(I64), carry))
        w.write(target, (result & 0xFFFFFFFF).astype(U32))
        w.write_mask(mask, (result > 0xFFFFFFFF) | (result < 0))

    return step


def _bind_wide_multiply(instruction: Instruction, narrow: type, wide: type) -> Step:
    """v_mad_u64_u32 and v_mad_i64_i32; the carry out is the wrap of the 64-bit sum."""
    target, mask = instruction.operands[0].register, instruction.operands[1].register
    a, b = (vector(instruction, operand, narrow) for operand in instruction.operands[2:4])
    c = vector_pair(instruction, instruction.operands[4], wide)

    def step(w: Waves) -> None:
        product = a(w).astype(wide) * b(w).astype(wide)
        addend = c(w)
        total = _full(w, product + addend)
        w.write_pair(target, total.view(U64))
        if narrow is U32:
            w.write_mask(mask, _full(w, total < addend))

    return step


def _bind_division_scale(instruction: Instruction, dtype: type) -> Step:
    mask = instruction.operands[1].register
    read = vector_pair if dtype is F64 else vector
    value, denominator, numerator = (
        read(instruction, operand, dtype) for operand in instruction.operands[2:5]
    )
    write = VectorForm(instruction).writer()

    def step(w: Waves) -> None:
        below, above = denominator(w), numerator(w)
        sensible = np.isfinite(below) & np.isfinite(above) & (below != 0)
        exponent = np.abs(np.frexp(below)[1])
        extreme = (exponent > _MODELLED_EXPONENT) | (np.frexp(above)[1] > _MODELLED_EXPONENT)
        count = int((sensible & extreme & w.active).sum())
        if count:
            w.diagnostics["division of extreme values: v_div_scale is not modelled there"] += count
        write(w, _full(w, value(w)))
        w.write_mask(mask, np.zeros((w.count, LANES), bool))

    return step


def _bind_division_fixup(instruction: Instruction, dtype: Any) -> Step:
    """v_div_fixup: the quotient's special cases (zeros, infinities, NaN, sign)."""
    form = VectorForm(instruction)
    quotient, denominator, numerator = (form.source(index, dtype) for index in (1, 2, 3))
    write = form.writer()

    def step(w: Waves) -> None:
        q, below, above = quotient(w), denominator(w), numerator(w)
        sign = np.where(np.signbit(below) ^ np.signbit(above), dtype(-1), dtype(1))
        is_nan = np.isnan(below) | np.isnan(above) | ((below == 0) & (above == 0))
        is_nan |= np.isinf(below) & np.isinf(above)
        result = np.where(np.isinf(below) | (above == 0), dtype(0), np.abs(q))
        result = np.where((below == 0) | np.isinf(above), dtype(np.inf), result)
        write(w, np.where(is_nan, dtype(np.nan), sign * result))

    return step


_MAKERS: dict[str, Callable[[Instruction], Step]] = {
    "v_nop": lambda instruction: lambda w: None,
    "v_cndmask_b32": _bind_select,
    "v_readfirstlane_b32": _bind_first_lane,
    "v_readlane_b32": _bind_read_lane,
    "v_writelane_b32": _bind_write_lane,
    "v_mbcnt_lo_u32_b32": _bind_count_below,
    "v_mbcnt_hi_u32_b32": _bind_count_below,
    "v_fmac_f32": partial(_bind_accumulate, dtype=F32, fused=True),
    "v_fmac_f16": partial(_bind_accumulate, dtype=F16, fused=True),
    "v_fmac_f64": partial(_bind_accumulate, dtype=F64, fused=False),
    "v_swap_b32": _bind_swap,
    "v_add_co_u32": partial(_bind_carry, combine=lambda a, b, c: a + b, has_carry_in=False),
    "v_sub_co_u32": partial(_bind_carry, combine=lambda a, b, c: a - b, has_carry_in=False),
    "v_subrev_co_u32": partial(_bind_carry, combine=lambda a, b, c: b - a, has_carry_in=False),
    "v_addc_co_u32": partial(_bind_carry, combine=lambda a, b, c: a + b + c, has_carry_in=True),
    "v_subb_co_u32": partial(_bind_carry, combine=lambda a, b, c: a - b - c, has_carry_in=True),
    "v_subbrev_co_u32": partial(_bind_carry, combine=lambda a, b, c: b - a - c, has_carry_in=True),
    "v_mad_u64_u32": partial(_bind_wide_multiply, narrow=U32, wide=U64),
    "v_mad_i64_i32": partial(_bind_wide_multiply, narrow=I32, wide=I64),
    "v_div_scale_f32": partial(_bind_division_scale, dtype=F32),
    "v_div_scale_f64": partial(_bind_division_scale, dtype=F64),
    "v_div_fixup_f16": partial(_bind_division_fixup, dtype=F16),
    "v_div_fixup_f32": partial(_bind_division_fixup, dtype=F32),
    "v_div_fixup_f64": partial(_bind_division_fixup, dtype=F64),
}
