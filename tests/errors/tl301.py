"""The tiles of a block need more shared memory than a block can have.

A block of an A100 has 163 KiB, one of an MI300X 64 KiB. Use smaller tiles, with more blocks or a loop.
(Stages of a pipelined loop are different: when their copies of the tiles do not fit, fewer stages are used,
and the Trace says so.)
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def transpose(A, block):
    M, N = A.shape
    C = T.empty((N, M), A.dtype)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        tile = T.alloc_shared((block, block), A.dtype)  # error: TL301 a block needs 262144 bytes
        T.copy(A[by * block, bx * block], tile)
        for i, j in T.Parallel(block, block):
            C[bx * block + i, by * block + j] = tile[j, i]
    return C


A = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)


def fails():
    transpose(A, block=256)


def works():
    assert (transpose(A, block=32) == A.T).all()
