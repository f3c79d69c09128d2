"""Plain Python inside the kernel raised an error while the kernel was read.

What does not depend on the device is ordinary Python and runs when the kernel is compiled: loops over
tuples, sums of sizes, look-ups in lists. An error in it is shown on its line of the kernel, with Python's
own words.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T

BLOCKS = {"float16": 64, "float32": 32}


@tilelang.jit(target="llvm")
def broken(A):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    block = BLOCKS["float64"]  # error: TL111 KeyError: 'float64'
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i]
    return C


@tilelang.jit(target="llvm")
def mended(A):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    block = BLOCKS[str(A.dtype)]
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i]
    return C


def fails():
    broken(np.ones(64, np.float32))


def works():
    assert mended(np.ones(64, np.float32)).sum() == 64
