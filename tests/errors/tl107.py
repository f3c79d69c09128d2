"""A tile is indexed with something that is no index: a whole tile, a fraction, too many indices, a stepped
slice.

An index is a whole number or a number of the kernel, one for each axis. A number that is stored in a tile
as a float has to be converted first: `T.cast(x, "int32")`.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A, where):
    C = T.empty((8,), A.dtype)
    with T.Kernel(1, threads=32):
        places = T.alloc_shared((8,), "int32")
        T.copy(where, places)
        for i in T.Parallel(8):
            C[i] = A[places]  # error: TL107 the tile places
    return C


@tilelang.jit(target="llvm")
def mended(A, where):
    C = T.empty((8,), A.dtype)
    with T.Kernel(1, threads=32):
        places = T.alloc_shared((8,), "int32")
        T.copy(where, places)
        for i in T.Parallel(8):
            C[i] = A[places[i]]
    return C


def fails():
    broken(np.arange(8, dtype=np.float32), np.arange(8, dtype=np.int32))


def works():
    backwards = np.arange(8, dtype=np.int32)[::-1].copy()
    assert list(mended(np.arange(8, dtype=np.float32), backwards)) == [7, 6, 5, 4, 3, 2, 1, 0]
