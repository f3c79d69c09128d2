"""Readers of instruction operands: functions from the waves to an array, made once per instruction.

Vector sources have shape [n, 64], or [n, 1] or [1, 1] where all lanes get one value; scalar sources [n] or
[1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, Operand, unknown
from tilelab.emulate.gfx942.formats import F16, F32, F64, I16, I64, U16, U32, U64, Array
from tilelab.emulate.gfx942.waves import LANES, Waves, unpack

__all__ = ["Reader", "Step", "lane_mask", "scalar32", "scalar64", "vector", "vector_pair", "wide"]

Reader = Callable[[Waves], Array]
Step = Callable[[Waves], None]
"""What one instruction does to the selected waves."""

_NARROW = (F16, U16, I16)
_INLINE_LIMIT = 64
"""Integers within -16 … 64 are encoded in the instruction; others are 32-bit literals."""


def scalar32(instruction: Instruction, operand: Operand) -> Reader:
    """A 32-bit scalar source as uint32."""
    if operand.kind == "s":
        register = operand.register
        return lambda w: w.read_scalar(register)
    if operand.kind == "scc":
        return lambda w: w.scc[w.selected].astype(U32)
    bits = _constant_bits(instruction, operand, U32)
    constant = np.array([bits], U32)
    return lambda w: constant


def scalar64(instruction: Instruction, operand: Operand) -> Reader:
    """A 64-bit scalar source as uint64."""
    if operand.kind == "s":
        register = operand.register
        return lambda w: w.read_scalar_pair(register)
    bits = _constant_bits(instruction, operand, F64 if operand.kind == "float" else U64)
    constant = np.array([bits], U64)
    return lambda w: constant


def lane_mask(operand: Operand) -> Reader:
    """A scalar pair as one bool per lane."""
    register = operand.register
    return lambda w: unpack(w.read_scalar_pair(register))


def vector(
    instruction: Instruction, operand: Operand, dtype: type, *, word: int = 0, half: int = 0
) -> Reader:
    """A vector source of a 16-bit or 32-bit dtype.

    `word` picks a register of a wide operand, `half` the upper 16 bits of a register for 16-bit dtypes.
    """
    raw = _raw32(instruction, operand, dtype, word)
    if dtype in _NARROW:
        shift = U32(16 * half)

        def typed(w: Waves) -> Array:
            bits = (raw(w) >> shift if half else raw(w)) & U32(0xFFFF)
            return bits.astype(U16).view(dtype)
    else:

        def typed(w: Waves) -> Array:
            return raw(w).view(dtype)

    return _with_sign(operand, raw if dtype is U32 else typed, dtype)


def vector_pair(instruction: Instruction, operand: Operand, dtype: type) -> Reader:
    """A vector source of a 64-bit dtype."""
    register = operand.register if operand.kind in "vs" else 0
    if operand.kind == "v":
        return _with_sign(operand, lambda w: w.read_pair(register).view(dtype), dtype)
    if operand.kind == "s":
        return _with_sign(operand, lambda w: w.read_scalar_pair(register)[:, None].view(dtype), dtype)
    bits = _constant_bits(instruction, operand, dtype)
    constant = np.array([[bits]], U64).view(dtype)
    return _with_sign(operand, lambda w: constant, dtype)


def wide(instruction: Instruction, operand: Operand, registers: int) -> Reader:
    """Consecutive registers of a data operand as uint32 [n, 64, registers]."""
    readers = [vector(instruction, operand, U32, word=i) for i in range(registers)]

    def read(w: Waves) -> Array:
        out = np.empty((w.count, LANES, registers), U32)
        for index, reader in enumerate(readers):
            out[..., index] = reader(w)
        return out

    return read


def _raw32(instruction: Instruction, operand: Operand, dtype: type, word: int) -> Reader:
    if operand.kind == "v":
        register = operand.register + word
        return lambda w: w.read(register)
    if operand.kind == "s":
        scalar = operand.register + word
        return lambda w: w.read_scalar(scalar)[:, None]
    constant = np.array([[_constant_bits(instruction, operand, dtype)]], U32)
    return lambda w: constant


def _constant_bits(instruction: Instruction, operand: Operand, dtype: type) -> int:
    """The bits of an inline constant or literal for a source of this dtype."""
    if operand.kind == "float":
        if dtype in (F16, U16, I16):
            return int(np.array(operand.value, F16).view(U16))
        if dtype in (F64, U64, I64):
            return int(np.array(operand.value, F64).view(U64))
        return int(np.array(operand.value, F32).view(U32))
    if operand.kind != "integer":
        raise unknown(instruction, f"operand ({operand.kind})")
    value = int(operand.value)
    if dtype is F64 and not -16 <= value <= _INLINE_LIMIT:
        return value << 32 & 0xFFFFFFFFFFFFFFFF  # a literal of a float64 source is its upper half
    return value & (0xFFFFFFFFFFFFFFFF if dtype in (F64, U64, I64) else 0xFFFFFFFF)


def _with_sign(operand: Operand, read: Reader, dtype: Any) -> Reader:
    """Apply the |x| and -x source modifiers."""
    if operand.is_absolute and operand.is_negated:
        return lambda w: -np.abs(read(w).view(_signed(dtype)))
    if operand.is_absolute:
        return lambda w: np.abs(read(w).view(_signed(dtype)))
    if operand.is_negated:
        return lambda w: np.negative(read(w).view(_signed(dtype)))
    return read


def _signed(dtype: type) -> type:
    """Sign modifiers work on floats; a source read as bits (v_cndmask_b32) is then a float32."""
    return {U32: F32, U64: F64, U16: F16}.get(dtype, dtype)
