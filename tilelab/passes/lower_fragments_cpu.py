"""Make fragments plain arrays of the one thread that runs a block on a CPU.

Before (llvm, cpu=cpu-avx512):

    F = T.alloc_buffer((2, 16), scope="local.fragment")
    F[0, 1] = T.float32(0)

After:

    F = T.alloc_buffer((2, 16), scope="local")
    F[0, 1] = T.float32(0)
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Var, dtype_of
from tilelab.ir.rewrite import substitute
from tilelab.ir.scoped import allocations
from tilelab.passes.base import Pass, because


def run(f: PrimFunc) -> PrimFunc:
    arrays: dict[Var, Var] = {}
    for node in allocations(f):
        old = node.buffer
        if str(old.scope()) == "local.fragment":
            arrays[old] = b.buffer(str(old.name), list(old.shape), dtype_of(old), "local")
    if not arrays:
        because("the kernel has no fragment")
        return f
    return f.with_body(substitute(f.body, arrays))


lower_fragments_cpu = Pass("lower_fragments_cpu", run, needs="laid_out", gives="threaded")
