"""A T. function is called with an argument or keyword that it does not take, or lacks one that it needs.

The message says which, gives the nearest keyword, and lists what the function takes. Keywords of TileLang
that have no effect here are accepted and recorded in the Trace; only unknown ones are refused.
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
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, transpose_b=True)  # error: TL103 no keyword 'transpose_b'
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
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
    return C


def fails():
    broken(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16))


def works():
    assert (mended(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16)) == 16).all()
