"""Run the nests of `T.Parallel` of a CPU kernel in order: LLVM turns their inner loops into vectors.

Before:

    for i in T.parallel(4):
        for j in T.parallel(16):
            B[i, j] = A[i, j] + T.float32(1)

After:

    for i in range(4):
        for j in range(16):
            B[i, j] = A[i, j] + T.float32(1)
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import For, PrimFunc
from tilelab.ir.rewrite import rewrite
from tilelab.passes.base import Pass


def run_in_order(loop: For) -> For | None:
    if loop.kind != b.PARALLEL:
        return None
    return b.for_(loop.loop_var, loop.extent, loop.body, annotations=loop.annotations, start=loop.min)


def run(f: PrimFunc) -> PrimFunc:
    return rewrite(f, (For, run_in_order))


lower_parallel_cpu = Pass("lower_parallel_cpu", run, needs="laid_out", gives="laid_out")
