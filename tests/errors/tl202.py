"""Two operations want different layouts of one tile of registers.

A fragment is spread over the registers of the block's threads, and a matrix instruction says which thread
holds which element. The policy says how the warps share the tile out: as rows of warps or as columns. Both
gemms add to `c`, so they must share it out alike. Use one policy, or let the tile go through shared memory
in between.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def square_twice(A, first, second):
    C = T.empty((64, 64), "float32")
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.clear(c)
        T.gemm(a, a, c, policy=first)
        T.gemm(a, a, c, policy=second)  # error: TL202 c is laid out as
        T.copy(c, C)
    return C


A = np.ones((64, 64), np.float16)


def fails():
    square_twice(A, T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol)


def works():
    assert (square_twice(A, T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullRow) == 128).all()
