"""An operator or a function is used on something that it does not work on.

Arithmetic is written for elements. Over a whole tile it needs a loop that says which elements:
`T.Parallel`, whose iterations are spread over the threads of the block. `/` of two whole numbers gets this
code as well, since a fraction is hardly meant: `//` divides and rounds down.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        tile = T.alloc_fragment((64,), A.dtype)
        T.copy(A, tile)
        T.copy(tile + 1.0, C)  # error: TL109 + of the whole tile
    return C


@tilelang.jit(target="llvm")
def mended(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        tile = T.alloc_fragment((64,), A.dtype)
        T.copy(A, tile)
        for i in T.Parallel(64):
            tile[i] = tile[i] + 1.0
        T.copy(tile, C)
    return C


def fails():
    broken(np.ones(64, np.float32))


def works():
    assert (mended(np.ones(64, np.float32)) == 2).all()
