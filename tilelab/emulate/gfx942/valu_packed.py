"""Vector arithmetic on pairs: packed float16, integers and float32, mixed-precision FMA, fp8 conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, Operand, integers, unknown
from tilelab.emulate.gfx942.formats import (
    BF8,
    F16,
    F32,
    F64,
    FP8,
    I16,
    U16,
    U32,
    Array,
    encode_fnuz,
    truncate_to_float16,
)
from tilelab.emulate.gfx942.operands import Reader, Step, vector
from tilelab.emulate.gfx942.valu_table import fused_multiply_add
from tilelab.emulate.gfx942.vector_form import VectorForm
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["bind"]

_HALVES: dict[str, tuple[Any, Callable[..., Array]]] = {
    "v_pk_add_f16": (F16, lambda a, b: a + b),
    "v_pk_mul_f16": (F16, lambda a, b: a * b),
    "v_pk_fma_f16": (F16, fused_multiply_add),
    "v_pk_max_f16": (F16, np.fmax),
    "v_pk_min_f16": (F16, np.fmin),
    "v_pk_add_u16": (U16, lambda a, b: a + b),
    "v_pk_sub_u16": (U16, lambda a, b: a - b),
    "v_pk_sub_i16": (U16, lambda a, b: a - b),
    "v_pk_mul_lo_u16": (U16, lambda a, b: a * b),
    "v_pk_mad_u16": (U16, lambda a, b, c: a * b + c),
    "v_pk_max_i16": (I16, np.maximum),
    "v_pk_min_i16": (I16, np.minimum),
    "v_pk_lshlrev_b16": (U16, lambda a, b: b << (a & U16(15))),
    "v_pk_lshrrev_b16": (U16, lambda a, b: b >> (a & U16(15))),
}
_SINGLES: dict[str, Callable[..., Array]] = {
    "v_pk_add_f32": lambda a, b: a + b,
    "v_pk_mul_f32": lambda a, b: a * b,
    "v_pk_fma_f32": fused_multiply_add,
}
_LARGEST_INLINE = 64


def bind(instruction: Instruction) -> Step | None:
    """The step of a packed instruction, or None if it is not one."""
    name = instruction.name
    if name in _HALVES:
        return _bind_halves(instruction, *_HALVES[name])
    if name in _SINGLES:
        return _bind_singles(instruction, _SINGLES[name])
    other = _OTHER.get(name)
    return other(instruction) if other else None


def _choices(instruction: Instruction, name: str, default: int) -> tuple[int, ...]:
    """A list modifier with one entry per source."""
    sources = len(instruction.operands) - 1
    given = instruction.modifiers.get(name)
    return integers(given)[:sources] if given else (default,) * sources


def _negate_if(read: Reader, is_negated: int) -> Reader:
    return (lambda w: -read(w)) if is_negated else read


def _full(w: Waves, value: Array) -> Array:
    return np.ascontiguousarray(np.broadcast_to(value, (w.count, LANES)))


def _join(low: Array, high: Array) -> Array:
    """Two 16-bit arrays as the halves of uint32."""
    return low.view(U16).astype(U32) | high.view(U16).astype(U32) << U32(16)


def _bind_halves(instruction: Instruction, dtype: Any, function: Callable[..., Array]) -> Step:
    if "clamp" in instruction.modifiers:
        raise unknown(instruction, "clamp")
    low = _half_readers(instruction, dtype, "op_sel", 0, "neg_lo")
    high = _half_readers(instruction, dtype, "op_sel_hi", 1, "neg_hi")
    target = instruction.operands[0].register

    def step(w: Waves) -> None:
        first = function(*[read(w) for read in low])
        second = function(*[read(w) for read in high])
        w.write(target, _join(_full(w, first), _full(w, second)))

    return step


def _half_readers(
    instruction: Instruction, dtype: Any, choice: str, default: int, negation: str
) -> list[Reader]:
    halves = _choices(instruction, choice, default)
    negated = _choices(instruction, negation, 0)
    readers = []
    for operand, half, is_negated in zip(instruction.operands[1:], halves, negated, strict=True):
        read = vector(instruction, operand, dtype, half=half if _has_halves(operand) else 0)
        readers.append(_negate_if(read, is_negated))
    return readers


def _has_halves(operand: Operand) -> bool:
    """Inline constants have their value in the low half only; registers and literals have two halves."""
    return operand.kind in "vs" or (operand.kind == "integer" and abs(int(operand.value)) > _LARGEST_INLINE)


def _bind_singles(instruction: Instruction, function: Callable[..., Array]) -> Step:
    if "clamp" in instruction.modifiers:
        raise unknown(instruction, "clamp")
    low = _word_readers(instruction, "op_sel", 0, "neg_lo")
    high = _word_readers(instruction, "op_sel_hi", 1, "neg_hi")
    target = instruction.operands[0].register

    def step(w: Waves) -> None:
        first = function(*[read(w) for read in low])
        second = function(*[read(w) for read in high])
        w.write(target, first.view(U32))
        w.write(target + 1, second.view(U32))

    return step


def _word_readers(instruction: Instruction, choice: str, default: int, negation: str) -> list[Reader]:
    words = _choices(instruction, choice, default)
    negated = _choices(instruction, negation, 0)
    readers = []
    for operand, word, is_negated in zip(instruction.operands[1:], words, negated, strict=True):
        read = vector(instruction, operand, F32, word=word if operand.kind in "vs" else 0)
        readers.append(_negate_if(read, is_negated))
    return readers


def _bind_move_pair(instruction: Instruction) -> Step:
    """v_pk_mov_b32: a word of the first source below, one of the second above, both picked by op_sel."""
    selected = _choices(instruction, "op_sel", 0)
    first, second = instruction.operands[1:3]
    low = vector(instruction, first, U32, word=selected[0] if first.kind in "vs" else 0)
    high = vector(instruction, second, U32, word=selected[1] if second.kind in "vs" else 0)
    target = instruction.operands[0].register

    def step(w: Waves) -> None:
        low_word, high_word = low(w).copy(), high(w).copy()
        w.write(target, low_word)
        w.write(target + 1, high_word)

    return step


def _bind_mix(instruction: Instruction) -> Step:
    """v_fma_mix: sources are float32, or a half of a register as float16 where op_sel_hi says so."""
    selected, is_half = _choices(instruction, "op_sel", 0), _choices(instruction, "op_sel_hi", 0)
    if "clamp" in instruction.modifiers:
        raise unknown(instruction, "clamp")
    sources = [
        vector(instruction, operand, F16, half=half) if narrow else vector(instruction, operand, F32)
        for operand, half, narrow in zip(instruction.operands[1:], selected, is_half, strict=True)
    ]
    target, name = instruction.operands[0].register, instruction.name

    def step(w: Waves) -> None:
        a, b, c = (read(w).astype(F64) for read in sources)
        result = _full(w, (a * b + c).astype(F32))
        if name == "v_fma_mix_f32":
            w.write(target, result.view(U32))
            return
        bits = result.astype(F16).view(U16).astype(U32)
        old = w.read(target)
        if name == "v_fma_mixlo_f16":
            w.write(target, old & U32(0xFFFF0000) | bits)
        else:
            w.write(target, old & U32(0xFFFF) | bits << U32(16))

    return step


def _bind_truncate_pair(instruction: Instruction) -> Step:
    form = VectorForm(instruction)
    first, second, write = form.source(1, F32), form.source(2, F32), form.writer()
    return lambda w: write(w, truncate_to_float16(first(w)) | truncate_to_float16(second(w)) << U32(16))


def _bind_encode_pair(instruction: Instruction) -> Step:
    """Two float32 to two fp8 bytes in the half of the target that op_sel names."""
    values = FP8 if "fp8" in instruction.name else BF8
    a, b = (vector(instruction, operand, F32) for operand in instruction.operands[1:3])
    flags = integers(instruction.modifiers["op_sel"]) if "op_sel" in instruction.modifiers else (0, 0, 0)
    target, is_high = instruction.operands[0].register, bool(flags[-1])

    def step(w: Waves) -> None:
        both = encode_fnuz(a(w), values) | encode_fnuz(b(w), values) << U32(8)
        old = w.read(target)
        w.write(target, old & U32(0xFFFF) | both << U32(16) if is_high else old & U32(0xFFFF0000) | both)

    return step


def _bind_decode(instruction: Instruction) -> Step:
    """One fp8 byte to float32; SDWA picks the byte."""
    values = FP8 if "fp8" in instruction.name else BF8
    form = VectorForm(instruction)
    source, write = form.source(1, U32), form.writer()
    return lambda w: write(w, values[source(w) & U32(0xFF)])


def _bind_decode_pair(instruction: Instruction) -> Step:
    """Two fp8 bytes to two float32; op_sel or SDWA picks the half."""
    values = FP8 if "fp8" in instruction.name else BF8
    form = VectorForm(instruction)
    source, target = form.source(1, U32), instruction.operands[0].register
    shift = U32(16 if form.op_sel and form.op_sel[0] else 0)

    def step(w: Waves) -> None:
        pair = source(w) >> shift
        low, high = values[pair & U32(0xFF)], values[pair >> U32(8) & U32(0xFF)]
        w.write(target, low.view(U32))
        w.write(target + 1, high.view(U32))

    return step


def _bind_dot(instruction: Instruction) -> Step:
    """v_dot2_f32_f16 and v_dot2c_f32_f16: two products of halves added to a float32."""
    destination, a, b, *rest = instruction.operands
    parts = [[vector(instruction, operand, F16, half=half) for half in (0, 1)] for operand in (a, b)]
    addend = vector(instruction, rest[0] if rest else destination, F32)
    target = destination.register

    def step(w: Waves) -> None:
        total = addend(w).astype(F64)
        for left, right in zip(*parts, strict=True):
            total = total + left(w).astype(F64) * right(w)
        w.write(target, total.astype(F32).view(U32))

    return step


_OTHER: dict[str, Callable[[Instruction], Step]] = {
    "v_pk_mov_b32": _bind_move_pair,
    "v_fma_mix_f32": _bind_mix,
    "v_fma_mixlo_f16": _bind_mix,
    "v_fma_mixhi_f16": _bind_mix,
    "v_cvt_pkrtz_f16_f32": _bind_truncate_pair,
    "v_cvt_pk_fp8_f32": _bind_encode_pair,
    "v_cvt_pk_bf8_f32": _bind_encode_pair,
    "v_cvt_f32_fp8": _bind_decode,
    "v_cvt_f32_bf8": _bind_decode,
    "v_cvt_pk_f32_fp8": _bind_decode_pair,
    "v_cvt_pk_f32_bf8": _bind_decode_pair,
    "v_dot2_f32_f16": _bind_dot,
    "v_dot2c_f32_f16": _bind_dot,
}
