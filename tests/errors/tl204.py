"""A tile is read before anything was written to it. What it holds then is left over from another kernel.

T.gemm adds to its accumulator, so it reads it too: clear it first. (On some machines fresh memory happens
to be zero, and the missing T.clear goes unnoticed there; here it is an error everywhere.)
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A, B):
    C = T.empty((16, 16), "float32")
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)  # error: TL204 c is read before it was given a value
        T.copy(c, C)
    return C


@tilelang.jit(target="llvm")
def mended(A, B):
    C = T.empty((16, 16), "float32")
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)
    return C


def fails():
    broken(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16))


def works():
    assert (mended(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16)) == 16).all()
