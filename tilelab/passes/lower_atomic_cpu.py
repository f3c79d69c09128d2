"""Turn atomic additions of a CPU kernel into plain ones.

A kernel that adds to global memory is marked `tl.blocks_in_order`, so that no other block runs beside it.

Before (llvm, cpu=cpu-avx512):

    F = T.alloc_buffer((32,), scope="local.fragment")
    T.atomic_add(B[0:32], F[0:32])

After:

    F = T.alloc_buffer((32,), scope="local.fragment")
    for i in range(32):
        B[i] = B[i] + F[i]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall, dtype_of
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because, slow
from tilelab.passes.cpu_tiles import paired, scalar_nest, tile_of


def lower_atomic(call: TileCall) -> Stmt | None:
    if op_of(call).name != "atomic_add":
        return None
    target, value = operand(call, "dst"), operand(call, "value")
    if isinstance(value, Region):
        dst, src = paired(target, value)
        if len(src.axes) != len(dst.axes):
            src = tile_of(value)
    else:
        dst, src = tile_of(target), None
    dtype = dtype_of(dst.buffer)

    def element(at: list[Any]) -> Stmt:
        added = src.load(at) if src is not None else b.as_expr(value, dtype)
        return dst.store(dst.load(at) + b.cast(dtype, added), at)

    return scalar_nest(dst.shape, element)


def run(f: PrimFunc) -> PrimFunc:
    calls = [call for call in collect(f.body, TileCall) if op_of(call).name == "atomic_add"]
    if not calls:
        because("nothing is added atomically")
        return f
    shared = [c for c in calls if not tile_of(operand(c, "dst")).inside]
    if shared:
        slow("blocks run one after another, since they add to global memory atomically", shared[0].span)
        f = b.with_attrs(f, blocks_in_order=True)
    return rewrite(f, (TileCall, lower_atomic))


lower_atomic_cpu = Pass("lower_atomic_cpu", run, needs="laid_out", gives="laid_out")
