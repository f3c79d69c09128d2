"""The shape or the dtype of a tile cannot be used: an extent is no positive whole number, or the dtype is
unknown.

`/` gives a fraction in Python, also where it divides evenly: use `//`.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A, block=64):
    C = T.empty((64,), A.dtype)
    with T.Kernel(2, threads=32) as bx:
        half = T.alloc_shared((block / 2,), A.dtype)  # error: TL112 is not a whole number
        T.copy(A[bx * 32], half)
        T.copy(half, C[bx * 32])
    return C


@tilelang.jit(target="llvm")
def mended(A, block=64):
    C = T.empty((64,), A.dtype)
    with T.Kernel(2, threads=32) as bx:
        half = T.alloc_shared((block // 2,), A.dtype)
        T.copy(A[bx * 32], half)
        T.copy(half, C[bx * 32])
    return C


def fails():
    broken(np.ones(64, np.float32))


def works():
    assert mended(np.ones(64, np.float32)).sum() == 64
