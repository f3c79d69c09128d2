"""A pipelined loop cannot be pipelined as asked.

`num_stages` says how many copies of the loaded tiles there are, so that loads can run ahead of the
arithmetic: a whole number, zero or one for no running ahead.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def total(A, num_stages=2):
    C = T.empty((16,), A.dtype)
    with T.Kernel(1, threads=32):
        part, c = T.alloc_shared((16,), A.dtype), T.alloc_fragment((16,), A.dtype)
        T.clear(c)
        for k in T.Pipelined(4, num_stages=num_stages):  # error: TL303 num_stages=2.5 must be a whole number
            T.copy(A[k * 16], part)
            for i in T.Parallel(16):
                c[i] = c[i] + part[i]
        T.copy(c, C)
    return C


def fails():
    total(np.ones(64, np.float32), num_stages=2.5)


def works():
    assert (total(np.ones(64, np.float32), num_stages=2) == 4).all()
