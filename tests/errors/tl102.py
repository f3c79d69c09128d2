"""The name after T. does not exist: it is misspelt, or it belongs to a part of TileLang that is not here
yet.

The message gives the nearest name, or for a name of TileLang the way to write the same thing with what
there is. `dir(T)` lists every name.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A):
    C = T.empty((16, 16), "float32")
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((16, 16), "float32")
        T.cpy(A, tile)  # error: TL102 no name T.cpy
        T.copy(tile, C)
    return C


@tilelang.jit(target="llvm")
def mended(A):
    C = T.empty((16, 16), "float32")
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((16, 16), "float32")
        T.copy(A, tile)
        T.copy(tile, C)
    return C


def fails():
    broken(np.ones((16, 16), np.float32))


def works():
    assert mended(np.ones((16, 16), np.float32)).sum() == 256
