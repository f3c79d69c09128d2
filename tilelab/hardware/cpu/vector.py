"""CPU vectors through LLVM: fused multiply-add, loads and stores, of 128, 256 and 512 bits."""

from __future__ import annotations

from tilelab.hardware.model import ANY, THREAD, Cost, Global, Instruction, Register, cpu
from tilelab.layout import Layout as L

_C = {"float32": "float", "float64": "double"}
_SOURCE = "LLVM language reference, 'llvm.fma.*' intrinsics and vector types"


def _fma(dtype: str, vector_bits: int) -> Instruction:
    """One row of A times a vector of B: D (1, n) += A (1, 1) · B (n, 1)ᵀ, A broadcast to every element."""
    width = int(dtype[5:])
    lanes = vector_bits // width
    vector = f"<{lanes} x {_C[dtype]}>"
    return Instruction(
        name=f"vector.fma.f{width}x{lanes}",
        family="vector",
        needs=cpu(vector_bits),
        scope=THREAD,
        d=Register(dtype, (1, lanes), L((1, lanes), (0, 1))),
        a=Register(dtype, (1, 1), L((1, 1), (0, 0))),
        b=Register(dtype, (lanes, 1), L((1, lanes), (0, 1))),
        means="matmul_accumulate",
        text=f"{{d}} = call {vector} @llvm.fma.v{lanes}f{width}"
        f"({vector} {{a}}, {vector} {{b}}, {vector} {{d}})",
        dialect="llvm",
        # Two vector units a core, as most x86-64 and arm64 cores of the last years have.
        cost=Cost(flops=2 * lanes, rates=tuple((arch, 4.0 * lanes) for arch in _ARCHES[vector_bits])),
        source=_SOURCE,
    )


def _move(kind: str, width: int) -> Instruction:
    register = Register("uint8", (width,), L((1, width), (0, 1)))
    memory = Global("uint8", (width,), align=1)
    vector = f"<{width} x i8>"
    load = kind == "load"
    return Instruction(
        name=f"vector.{kind}.{width}",
        family=kind,
        needs=cpu(8 * width) if width > 8 else cpu(),
        scope=THREAD,
        d=register if load else memory,
        a=memory if load else register,
        b=None,
        means="copy",
        text=f"{{d}} = load {vector}, ptr {{a}}" if load else f"store {vector} {{a}}, ptr {{d}}",
        dialect="llvm",
        cost=Cost(bytes=width, rates=tuple((arch, float(width)) for arch in _ARCHES[max(128, 8 * width)])),
        source=_SOURCE,
    )


_ARCHES = {
    128: ("cpu", "cpu-avx2", "cpu-avx512"),
    256: ("cpu-avx2", "cpu-avx512"),
    512: ("cpu-avx512",),
}

FMA = tuple(_fma(dtype, size) for dtype in ("float32", "float64") for size in (512, 256, 128))
MOVES = tuple(_move(kind, width) for kind in ("load", "store") for width in (1, 2, 4, 8, 16, 32, 64))

# Every chip has this: any dtypes, one element at a time, so that every product of tiles has some row.
SCALAR_FMA = Instruction(
    name="fma.scalar",
    family="fma",
    needs="",
    scope=THREAD,
    d=Register(ANY, (1, 1), L((1, 1), (0, 0))),
    a=Register(ANY, (1, 1), L((1, 1), (0, 0))),
    b=Register(ANY, (1, 1), L((1, 1), (0, 0))),
    means="matmul_accumulate",
    text="{d} += {a} * {b};",
    dialect="c",
    cost=Cost(
        flops=2,
        rates=(
            ("cpu", 4.0),
            ("cpu-avx2", 4.0),
            ("cpu-avx512", 4.0),
            ("sm_80", 128.0),
            ("sm_89", 256.0),
            ("sm_90", 256.0),
            ("sm_90a", 256.0),
            ("gfx942", 256.0),
        ),
    ),
    source="C++ standard, arithmetic; rates are the chips' float32 lanes times two",
)

ROWS = (*FMA, *MOVES, SCALAR_FMA)
