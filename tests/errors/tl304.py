"""The meetings of a block's threads do not match: some threads come to one, and the others never do.

The threads have to wait for one another between the write of `tile` and the read of its elements by other
threads. Inside a branch that only some threads take, the others would never arrive, and the block would
hang. Write the tile in one branch and read it in another, so that the wait can stand between them.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def broken(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64,), A.dtype)
        tx = T.get_thread_binding()
        if tx < 32:  # error: TL304 inside a branch that not all of them take
            tile[tx] = A[tx]
            C[tx] = tile[31 - tx]
    return C


@tilelang.jit(target="cuda:sm_80", emulate=True)
def mended(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64,), A.dtype)
        tx = T.get_thread_binding()
        if tx < 32:
            tile[tx] = A[tx]
        if tx < 32:
            C[tx] = tile[31 - tx]
    return C


def fails():
    broken(np.arange(64, dtype=np.float32))


def works():
    assert list(mended(np.arange(64, dtype=np.float32))[:32]) == list(range(31, -1, -1))
