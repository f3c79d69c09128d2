"""Turn each fill of a CPU kernel into loops over its elements, vectors innermost.

Before (llvm, cpu=cpu-avx512):

    F = T.alloc_buffer((2, 16), scope="local.fragment")
    T.fill(F[0:2, 0:16], T.float32(0))

After:

    F = T.alloc_buffer((2, 16), scope="local.fragment")
    for i in range(2):
        for v in T.vectorized(16):
            F[i, v] = T.float32(0)
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import Load, PrimFunc, Stmt, TileCall, dtype_of
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass
from tilelab.passes.cpu_tiles import cpu_chip, element_nest, lanes_of, layouts_of, tile_of


def run(f: PrimFunc) -> PrimFunc:
    cpu, layouts = cpu_chip(f), layouts_of(f)

    def lower_fill(call: TileCall) -> Stmt | None:
        if op_of(call).name != "fill":
            return None
        dst, value = tile_of(operand(call, "dst")), operand(call, "value")
        if not collect(value, Load):
            return element_nest(
                dst, lambda at: dst.store(value, at), lanes_of(cpu, dtype_of(dst.buffer)), layouts
            )
        # A value read from memory is read once, before the tile that may hold it changes.
        held = b.buffer("value", (1,), dtype_of(dst.buffer), "local.var")
        nest = element_nest(
            dst, lambda at: dst.store(b.load(held, [0]), at), lanes_of(cpu, dtype_of(dst.buffer)), layouts
        )
        return b.seq(b.alloc(held), b.store(held, value, [0]), nest)

    return rewrite(f, (TileCall, lower_fill))


lower_fill_cpu = Pass("lower_fill_cpu", run, needs="laid_out", gives="laid_out")
