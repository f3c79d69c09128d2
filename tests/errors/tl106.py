"""The launch is not usable: T.Kernel is missing, stands twice, or its grid or threads are no positive whole
numbers.

`/` gives a fraction in Python, also where it divides evenly. The number of blocks that cover N elements,
the last one perhaps partly, is `T.ceildiv(N, block)`.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A, block=32):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(N / block, threads=32) as bx:  # error: TL106 is 3.125, which is not a whole number
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + 1.0
    return C


@tilelang.jit(target="llvm")
def mended(A, block=32):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + 1.0
    return C


def fails():
    broken(np.ones(100, np.float32))


def works():
    assert mended(np.ones(100, np.float32)).sum() == 200
