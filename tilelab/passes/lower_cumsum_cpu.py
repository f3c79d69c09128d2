"""Turn running sums of a CPU kernel into loops that carry the sum along the axis.

Before (llvm, cpu=cpu-avx512):

    F = T.alloc_buffer((4, 32), scope="shared.dyn", annotations={"tl.layout": "(4,32):(32,1)"})
    G = T.alloc_buffer((4, 32), scope="shared.dyn", annotations={"tl.layout": "(4,32):(32,1)"})
    T.cumsum(F[0:4, 0:32], G[0:4, 0:32], dim=1, reverse=False)

After:

    F = T.alloc_buffer((4, 32), scope="shared.dyn", annotations={"tl.layout": "(4,32):(32,1)"})
    G = T.alloc_buffer((4, 32), scope="shared.dyn", annotations={"tl.layout": "(4,32):(32,1)"})
    for i in range(4):
        total = T.alloc_buffer((1,), scope="local.var")
        total[0] = T.float32(0)
        for k in range(32):
            total[0] = total[0] + F[i, k]
            G[i, k] = total[0]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Stmt, TileCall, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass
from tilelab.passes.cpu_tiles import scalar_nest, tile_of


def _lowered(call: TileCall) -> Stmt:
    config = b.plain(call.config)
    src, dst = (tile_of(operand(call, name)) for name in ("src", "dst"))
    src, dst = (tile.with_axes(range(len(tile.lows))) for tile in (src, dst))
    dim, dtype = int(config.get("dim", 0)) % len(src.axes), dtype_of(dst.buffer)
    last = src.shape[dim] - 1

    def line(at: list[Any]) -> Stmt:
        total, k = b.buffer("total", (1,), dtype, "local.var"), b.var("k")
        along = last - k if config.get("reverse") else k
        place = [*at[:dim], along, *at[dim:]]
        step = b.seq(
            b.store(total, b.load(total, [0]) + b.cast(dtype, src.load(place)), [0]),
            dst.store(b.load(total, [0]), place),
        )
        return b.seq(b.alloc(total), b.store(total, 0, [0]), b.for_(k, src.shape[dim], step))

    return scalar_nest([extent for axis, extent in enumerate(src.shape) if axis != dim], line)


def lower_cumsum(call: TileCall) -> Stmt | None:
    return _lowered(call) if op_of(call).name == "cumsum" else None


def run(f: PrimFunc) -> PrimFunc:
    return rewrite(f, (TileCall, lower_cumsum))


lower_cumsum_cpu = Pass("lower_cumsum_cpu", run, needs="laid_out", gives="laid_out")
