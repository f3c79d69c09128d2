"""The kernel needs something that the target does not have.

On a CPU one thread runs the whole block. What threads do one by one it does in a loop over them; but a
statement of the whole block, such as a copy of a tile, cannot stand in a branch that only some threads
take. Let the whole block do it: on a GPU all threads share the copy out among them, which is quicker too.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A):
    C = T.empty((32,), A.dtype)
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((32,), A.dtype)
        if T.get_thread_binding() == 0:
            T.copy(A, tile)  # error: TL402 which a CPU cannot run
        for i in T.Parallel(32):
            C[i] = tile[31 - i]
    return C


@tilelang.jit(target="llvm")
def mended(A):
    C = T.empty((32,), A.dtype)
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((32,), A.dtype)
        T.copy(A, tile)
        for i in T.Parallel(32):
            C[i] = tile[31 - i]
    return C


def fails():
    broken(np.arange(32, dtype=np.float32))


def works():
    assert list(mended(np.arange(32, dtype=np.float32)))[:2] == [31, 30]
