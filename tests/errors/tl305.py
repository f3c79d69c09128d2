"""A tensor reaches over more elements than the kernel's offsets can count.

Offsets into a tensor are 32-bit integers, as on most GPU libraries' fast paths: they reach 2³¹ elements. A
larger tensor is given to the kernel in parts, which costs one launch each and no copy.
"""

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80")
def double(A, block=256):
    M, N = A.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block), M, threads=128) as (bx, by):  # error: TL305 A reaches over 4294967296
        for i in T.Parallel(block):
            C[by, bx * block + i] = A[by, bx * block + i] * 2.0
    return C


def fails():
    tilelang.trace(double, T.Tensor((2**16, 2**16), T.float16))


def works():
    trace = tilelang.trace(double, T.Tensor((2**10, 2**10), T.float16))
    assert trace.code is not None
