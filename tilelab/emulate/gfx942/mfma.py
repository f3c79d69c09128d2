"""Dense matrix instructions (`v_mfma_…`): D = A·B + C over one wave, with the register maps of CDNA3.

Element q of lane l of A is row i = l mod M of block (l / M) mod blocks, column k = q + per_lane · (l / (M ·
blocks)); B mirrors A with j for i. Products are exact and summed in float64 with one rounding at the end,
so results may differ from silicon by a few units in the last place. Source: AMD's matrix instruction
calculator; the tests hold its facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, Operand, unknown
from tilelab.emulate.gfx942.formats import (
    BF8,
    F16,
    F32,
    F64,
    FP8,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Array,
    bfloat16_to_float32,
    round_to_xf32,
)
from tilelab.emulate.gfx942.operands import Step
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["MatrixShape", "a_map", "bind", "d_map", "matrix_shape"]

_NAME = re.compile(r"v_mfma_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(\w+)$")
_ELEMENT_BITS = {"f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "xf32": 32, "f32": 32, "f64": 64}
_FLOPS_PER_CYCLE = {16: 512, 8: 1024, 32: 64, 64: 64}
"""Of one SIMD, by element width; xf32 runs four times as fast as f32."""
_XF32_FLOPS_PER_CYCLE = 256
_MULTI_BLOCK_CYCLES = {32: 64, 16: 32, 4: 8}
"""Shapes of several blocks run at half rate or less; by M."""
_DECODERS: dict[str, Callable[[Array], Array]] = {
    "f16": lambda words: words.view(F16).astype(F64),
    "bf16": lambda words: bfloat16_to_float32(words.view(U16)).astype(F64),
    "i8": lambda words: words.view(np.int8).astype(I64),
    "fp8": lambda words: FP8[words.view(U8)].astype(F64),
    "bf8": lambda words: BF8[words.view(U8)].astype(F64),
    "xf32": lambda words: round_to_xf32(words).astype(F64),
    "f32": lambda words: words.view(F32).astype(F64),
    "f64": lambda words: words.view(F64),
}


@dataclass(frozen=True)
class MatrixShape:
    """A matrix instruction: result type, M × N × K of a block, number of blocks, types of A and B."""

    result: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str

    @property
    def per_lane(self) -> int:
        """Elements of A, and of B, that each lane holds."""
        return self.m * self.k * self.blocks // LANES

    @property
    def registers(self) -> tuple[int, int, int]:
        """32-bit registers of A, B and C/D."""
        ab = max(1, self.per_lane * _ELEMENT_BITS[self.a] // 32)
        return ab, ab, self.m * self.n * self.blocks // LANES * (2 if self.result == "f64" else 1)

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k * self.blocks

    @property
    def cycles(self) -> int:
        """Cycles that one SIMD's matrix core is busy."""
        if self.blocks > 1:
            return _MULTI_BLOCK_CYCLES[self.m] * (2 if self.result == "f64" else 1)
        rate = _XF32_FLOPS_PER_CYCLE if self.a == "xf32" else _FLOPS_PER_CYCLE[_ELEMENT_BITS[self.a]]
        return max(8, self.flops // rate)


@lru_cache(maxsize=128)
def matrix_shape(name: str) -> MatrixShape | None:
    """The shape that a mnemonic names, or None if it is no dense matrix instruction."""
    found = _NAME.match(name)
    if not found:
        return None
    result, m, n, k, blocks, types = found.groups()
    parts = types.split("_")
    a, b = (parts[0], parts[-1])
    if a not in _ELEMENT_BITS or b not in _ELEMENT_BITS:
        return None
    return MatrixShape(result, int(m), int(n), int(k), int(blocks or 1), a, b)


def a_map(shape: MatrixShape) -> tuple[Array, Array, Array]:
    """Block, row i and column k of element q of lane l of A, each of shape [per_lane, 64]."""
    q, lane = np.arange(shape.per_lane)[:, None], np.arange(LANES)[None]
    everywhere = np.zeros((shape.per_lane, LANES), np.int64)
    k = q + shape.per_lane * (lane // (shape.m * shape.blocks))
    return everywhere + lane // shape.m % shape.blocks, everywhere + lane % shape.m, everywhere + k


def d_map(shape: MatrixShape) -> tuple[Array, Array, Array]:
    """Block, row i and column j of element r of lane l of C and D, each of shape [elements, 64]."""
    elements = shape.m * shape.n * shape.blocks // LANES
    r, lane = np.arange(elements)[:, None], np.arange(LANES)[None]
    everywhere = np.zeros((elements, LANES), np.int64)
    if shape.result == "f64" and shape.m == 4:
        return everywhere + lane // 4 % 4, everywhere + lane // 16, everywhere + lane % 4
    if shape.result == "f64":
        return everywhere, 4 * r + lane // 16, everywhere + lane % 16
    if shape.m == 32:
        return everywhere + r // 16, 8 * (r % 16 // 4) + 4 * (lane // 32) + r % 4, everywhere + lane % 32
    if shape.m == 16:
        return everywhere + r // 4, 4 * (lane // 16) + r % 4, everywhere + lane % 16
    return everywhere + lane // 4, everywhere + r, everywhere + lane % 4


def bind(instruction: Instruction) -> Step | None:
    """The step of a dense matrix instruction, or None if it is not one."""
    shape = matrix_shape(instruction.name)
    if shape is None:
        return None
    if any(value != "0" for value in instruction.modifiers.values()):
        raise unknown(instruction, "matrix modifier")
    target, a, b, c = instruction.operands
    read_c = _accumulator(instruction, c, shape)
    registers, _, results = shape.registers
    block, i, j = d_map(shape)
    places = ((block * shape.m + i) * shape.n + j).reshape(-1)
    elements = len(block)

    def step(w: Waves) -> None:
        # a matrix instruction ignores EXEC
        left = _tile(w, a, registers, shape, shape.a, shape.m)
        right = _tile(w, b, registers, shape, shape.b, shape.n)
        product = np.matmul(left, right.swapaxes(2, 3)).reshape(w.count, -1)
        total = np.take(product, places, axis=1).reshape(w.count, elements, LANES) + read_c(w)
        w.profile.matrix_cycles += shape.cycles * w.count
        w.profile.matrix_flops += shape.flops * w.count
        bits = _to_registers(total, shape.result)
        for register in range(results):
            w.write_all_lanes(target.register + register, bits(register))

    return step


def _to_registers(total: Array, result: str) -> Callable[[int], Array]:
    """Result register r of every lane, uint32 [n, 64]."""
    if result == "f64":
        words = np.ascontiguousarray(total).view(U64)
        return lambda r: (words[:, r // 2] >> U64(32 * (r % 2)) & U64(0xFFFFFFFF)).astype(U32)
    narrow = total.astype(F32) if result == "f32" else total.astype(I32)
    bits = narrow.view(U32)
    return lambda r: bits[:, r]


def _tile(w: Waves, operand: Operand, registers: int, shape: MatrixShape, element: str, rows: int) -> Array:
    """A (or B) as [n, blocks, rows, K]."""
    words = np.empty((w.count, LANES, registers), U32)
    for index in range(registers):
        words[..., index] = w.read(operand.register + index)
    values = _DECODERS[element](words)[..., : shape.per_lane]
    apart = values.reshape(w.count, -1, shape.blocks, rows, shape.per_lane)
    return apart.transpose(0, 2, 3, 1, 4).reshape(w.count, shape.blocks, rows, shape.k)


def _accumulator(instruction: Instruction, operand: Operand, shape: MatrixShape) -> Callable[[Waves], Array]:
    """C as [n, elements, 64] in float64 or int64, or a constant."""
    elements = shape.m * shape.n * shape.blocks // LANES
    dtype = I64 if shape.result == "i32" else F64
    if operand.kind in ("integer", "float"):
        constant = np.array(operand.value, dtype)
        return lambda w: constant
    if operand.kind != "v":
        raise unknown(instruction, "accumulator")
    first = operand.register

    def read(w: Waves) -> Array:
        out = np.empty((w.count, elements, LANES), dtype)
        for index in range(elements):
            if shape.result == "f64":
                out[:, index] = w.read_pair(first + 2 * index).view(F64)
            else:
                out[:, index] = w.read(first + index).view(F32 if shape.result == "f32" else I32)
        return out

    return read
