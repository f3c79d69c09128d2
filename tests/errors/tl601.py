"""The emulator found an access outside of a buffer.

The passes put a guard around accesses that can leave a tensor: a block at the edge reads zeros outside and
writes nothing there. The example compiles without the pass that adds them, guard_bounds, and 100 elements
are no whole number of blocks of 64.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.run import without


def double(A, block=64):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] * 2.0  # error: TL601 is outside
    return C


broken = tilelang.jit(double, target="cuda:sm_80", emulate=True, passes=without(CUDA, "guard_bounds"))
mended = tilelang.jit(double, target="cuda:sm_80", emulate=True)


def fails():
    broken(np.ones(100, np.float32))


def works():
    assert (mended(np.ones(100, np.float32)) == 2).all()
