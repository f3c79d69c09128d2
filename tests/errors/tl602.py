"""The emulator found a read of bytes that nothing has written.

Half of the tile is filled, and all of it is read. When a tile is not written at all, the compiler sees it
(TL204); which parts of it are written is known only by running the kernel, which the emulator does with
every byte marked.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def broken(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64,), A.dtype)
        for i in T.Parallel(32):
            tile[i] = A[i]
        for i in T.Parallel(64):
            C[i] = tile[63 - i]  # error: TL602 before it was written
    return C


@tilelang.jit(target="cuda:sm_80", emulate=True)
def mended(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64,), A.dtype)
        for i in T.Parallel(64):
            tile[i] = A[i]
        for i in T.Parallel(64):
            C[i] = tile[63 - i]
    return C


def fails():
    broken(np.ones(64, np.float32))


def works():
    assert (mended(np.ones(64, np.float32)) == 1).all()
