"""Something must be known when the kernel is compiled, and it is known only when the kernel runs.

The shape of a tile decides how many registers and how much shared memory a block takes, so it must be a
number. The block's index is different in every block: it may stand in an index, not in a shape. Give the
tile the largest extent that it needs, and guard its edge.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(4, threads=32) as bx:
        tile = T.alloc_shared((bx * 16,), A.dtype)  # error: TL104 bx
        T.copy(A[0], tile)
        T.copy(tile, C[0])
    return C


@tilelang.jit(target="llvm")
def mended(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(4, threads=32) as bx:
        tile = T.alloc_shared((16,), A.dtype)
        T.copy(A[bx * 16], tile)
        T.copy(tile, C[bx * 16])
    return C


def fails():
    broken(np.ones(64, np.float32))


def works():
    assert mended(np.ones(64, np.float32)).sum() == 64
