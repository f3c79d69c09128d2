"""The operands of a tile operation do not fit together: their extents, dtypes or places differ from what it
needs.

T.gemm adds an M × K tile times a K × N tile to an M × N tile. Here B is stored as N × K, as weights often
are, so the inner extents do not meet. The message shows the shapes and, where a transposition would make
them fit, says so.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A, B):
    C = T.empty((16, 32), "float32")
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((16, 64), "float16"), T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((16, 32), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)  # error: TL201 a 16×64 @ b 32×64 does not fit c 16×32
        T.copy(c, C)
    return C


@tilelang.jit(target="llvm")
def mended(A, B):
    C = T.empty((16, 32), "float32")
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((16, 64), "float16"), T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((16, 32), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
    return C


def fails():
    broken(np.ones((16, 64), np.float16), np.ones((32, 64), np.float16))


def works():
    assert (mended(np.ones((16, 64), np.float16), np.ones((32, 64), np.float16)) == 64).all()
