"""Matrix instructions of MI300X (gfx942): one wave of 64 lanes, every operand in registers.

A lane's column in D is l % n, so D's rows run over consecutive registers: four consecutive values are a
column's. Every map agrees with AMD's matrix instruction calculator (checked in the tests).
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.hardware.model import WAVE, Cost, Instruction, Register, gfx
from tilelab.layout import Layout as L

_RATES = (("gfx942", 2048),)
_SOURCE = "AMD Instinct MI300 ISA, 'Matrix Arithmetic Instructions'; AMD matrix instruction calculator"

_D32 = L(((32, 2), (4, 4)), ((32, 4), (1, 8)))
_A32 = L(((32, 2), 4), ((1, 128), 32))
_D16 = L(((16, 4), 4), ((16, 4), 1))
_A16 = L(((16, 4), 4), ((1, 64), 16))

F16_32X32X8 = Instruction(
    name="mfma.f32.32x32x8.f16",
    family="mfma",
    needs=gfx("gfx942"),
    scope=WAVE,
    d=Register("float32", (32, 32), _D32),
    a=Register("float16", (32, 8), _A32),
    b=Register("float16", (32, 8), _A32),
    means="matmul_accumulate",
    text="{d} = __builtin_amdgcn_mfma_f32_32x32x8f16({a}, {b}, {d}, 0, 0, 0);",
    dialect="hip",
    cost=Cost(flops=16384, rates=_RATES),
    source=_SOURCE,
)
BF16_32X32X8 = replace(
    F16_32X32X8,
    name="mfma.f32.32x32x8.bf16",
    a=Register("bfloat16", (32, 8), _A32),
    b=Register("bfloat16", (32, 8), _A32),
    text="{d} = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k({a}, {b}, {d}, 0, 0, 0);",
)
F16_16X16X16 = replace(
    F16_32X32X8,
    name="mfma.f32.16x16x16.f16",
    d=Register("float32", (16, 16), _D16),
    a=Register("float16", (16, 16), _A16),
    b=Register("float16", (16, 16), _A16),
    text="{d} = __builtin_amdgcn_mfma_f32_16x16x16f16({a}, {b}, {d}, 0, 0, 0);",
    cost=Cost(flops=8192, rates=_RATES),
)
BF16_16X16X16 = replace(
    F16_16X16X16,
    name="mfma.f32.16x16x16.bf16",
    a=Register("bfloat16", (16, 16), _A16),
    b=Register("bfloat16", (16, 16), _A16),
    text="{d} = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k({a}, {b}, {d}, 0, 0, 0);",
)

ROWS = (F16_32X32X8, BF16_32X32X8, F16_16X16X16, BF16_16X16X16)
