"""Choose the vector instruction of each gemm on a CPU and the block of C that stays in registers.

Annotates `row` and `repeats` (a block is repeats[0] rows of repeats[1] vectors), and `tl.held` on operands
narrower than the sums. Each step along k loads the vectors of B once and broadcasts one element of A a row,
so the block wants to be tall; it must leave registers for B and for the broadcast.

Before (llvm, cpu=cpu-avx512):

    As = T.alloc_buffer((128, 32), scope="shared.dyn")
    Bs = T.alloc_buffer((32, 128), scope="shared.dyn")
    acc = T.alloc_buffer((128, 128), scope="local.fragment")
    T.gemm(As[0:128, 0:32], Bs[0:32, 0:128], acc[0:128, 0:128])

After:

    As = T.alloc_buffer((128, 32), scope="shared.dyn")
    Bs = T.alloc_buffer((32, 128), scope="shared.dyn")
    acc = T.alloc_buffer((128, 128), scope="local.fragment")
    T.gemm(As[0:128, 0:32], Bs[0:32, 0:128], acc[0:128, 0:128], repeats=[8, 2, 1], row="vector.fma.f32x16")
"""

from __future__ import annotations

from tilelab.hardware import row
from tilelab.hardware.model import bits
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, PrimFunc, TileCall, Var, dtype_of
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because, decide
from tilelab.passes.cpu_tiles import cpu_chip
from tilelab.passes.plan_gemms import gemm_shape

__all__ = ["compute_dtype", "plan_gemms_cpu"]

# x86 has 32 vector registers from AVX-512 on and 16 before; arm64 has 32, where 16 is merely careful.
_REGISTERS = {"cpu-avx512": 32, "cpu-avx2": 16, "cpu": 16}
_VECTORS = 2


def compute_dtype(c_dtype: str) -> str:
    """The dtype in which sums are kept: C's, but at least float32 for floats."""
    return "float32" if c_dtype in ("float16", "bfloat16") else c_dtype


def _rows(m: int, registers: int) -> int:
    """The tallest block of at most 8 rows that fits beside the vectors of B; one that divides m if it can."""
    most = min(8, m, (registers - _VECTORS - 1) // _VECTORS)
    dividing = [rows for rows in range(most, most // 2, -1) if m % rows == 0]
    return dividing[0] if dividing else most


def _narrow_operands(f: PrimFunc) -> dict[Var, str]:
    """Tiles that are A or B of a gemm and have fewer bits than its sums, with the dtype of the sums."""
    narrow: dict[Var, str] = {}
    for call in collect(f.body, TileCall):
        if op_of(call).name == "gemm":
            sums = compute_dtype(dtype_of(operand(call, "C").source))
            for name in ("A", "B"):
                buffer = operand(call, name).source
                if str(buffer.scope()) != "global" and bits(dtype_of(buffer)) < bits(sums):
                    narrow[buffer] = sums
    return narrow


def run(f: PrimFunc) -> PrimFunc:
    if not any(op_of(call).name == "gemm" for call in collect(f.body, TileCall)):
        because("the kernel has no gemm")
        return f
    cpu = cpu_chip(f)

    def choose_block(call: TileCall) -> TileCall | None:
        if op_of(call).name != "gemm":
            return None
        m, n, k = gemm_shape(call)
        dtype = compute_dtype(dtype_of(operand(call, "C").source))
        width = bits(dtype)
        lanes = max(1, cpu.vector_bits // width)
        rows = _rows(m, _REGISTERS[cpu.arch])
        if dtype in ("float32", "float64") and n >= lanes:
            name, across = f"vector.fma.f{width}x{lanes}", min(_VECTORS, n // lanes)
        else:
            # No row of the table multiplies vectors of this dtype, or C is narrower than a vector.
            name, across = "fma.scalar", min(_VECTORS * lanes, n)
        columns = across * row(name).d.tile[1]
        decide(
            f"{name} for {m} x {n} x {k}: {rows} rows x {columns} columns of C in registers, sums in {dtype}",
            call.span, row=name, repeats=[rows, across, 1], chip=cpu.arch,
        )  # fmt: skip
        return b.tile_with(call, row=name, repeats=[rows, across, 1])

    narrow = _narrow_operands(f)

    def hold_wider(node: AllocBuffer) -> AllocBuffer | None:
        held = narrow.get(node.buffer)
        if held is None:
            return None
        decide(f"{node.buffer.name} is held in {held}, so the inner loop converts nothing", node.span)
        return b.annotated(node, held=held)

    return rewrite(f, (TileCall, choose_block), (AllocBuffer, hold_wider))


plan_gemms_cpu = Pass("plan_gemms_cpu", run, needs="tile", gives="tile")
