"""Warp-level matrix instructions of sm_80 and later: mma.sync m16n8k16."""

from __future__ import annotations

from dataclasses import replace

from tilelab.hardware.model import WARP, Cost, Instruction, Register, sm
from tilelab.layout import Layout as L

# Lane l = (l % 4, l // 4): the row is l // 4, columns come in pairs from 2 · (l % 4).
_C = L(((4, 8), (2, 2)), ((32, 1), (16, 8)))
_A = L(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))
_B = L(((4, 8), (2, 2)), ((16, 1), (8, 64)))

# Dense flops a cycle and SM. sm_80, sm_89: vendor peak ÷ (SMs · clock). sm_90: mma.sync reaches about five
# eighths of what wgmma does in published microbenchmarks (an estimate, used for ranking only).
_RATES = (("sm_80", 2048), ("sm_89", 1024), ("sm_90", 2560), ("sm_90a", 2560))

F16_F32 = Instruction(
    name="mma.m16n8k16.f32.f16",
    family="mma",
    needs=sm(80),
    scope=WARP,
    d=Register("float32", (16, 8), _C),
    a=Register("float16", (16, 16), _A),
    b=Register("float16", (8, 16), _B),
    means="matmul_accumulate",
    text="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {d};",
    cost=Cost(flops=4096, rates=_RATES),
    source="PTX ISA, 'Matrix Fragments for mma.m16n8k16 with floating point type'",
)
BF16_F32 = replace(
    F16_F32,
    name="mma.m16n8k16.f32.bf16",
    a=Register("bfloat16", (16, 16), _A),
    b=Register("bfloat16", (8, 16), _B),
    text="mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {d}, {a}, {b}, {d};",
)
F16_F16 = replace(
    F16_F32,
    name="mma.m16n8k16.f16.f16",
    d=Register("float16", (16, 8), _C),
    text="mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {d}, {a}, {b}, {d};",
)

ROWS = (F16_F32, BF16_F32, F16_F16)
