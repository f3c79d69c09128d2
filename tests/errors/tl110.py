"""An assertion that the kernel itself makes does not hold for these arguments.

An `assert` whose condition is known when the kernel is compiled is checked then, with the text that its
author gave. Either pass other arguments, or write the kernel so that it does without the assumption: copies
at the edge of a tensor read zeros outside and write nothing there.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A, block=32):
    (N,) = A.shape
    assert N % block == 0, f"{block} does not divide {N}"  # error: TL110 32 does not divide 100
    C = T.empty((N,), A.dtype)
    with T.Kernel(N // block, threads=32) as bx:
        tile = T.alloc_shared((block,), A.dtype)
        T.copy(A[bx * block], tile)
        T.copy(tile, C[bx * block])
    return C


@tilelang.jit(target="llvm")
def mended(A, block=32):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        tile = T.alloc_shared((block,), A.dtype)
        T.copy(A[bx * block], tile)
        T.copy(tile, C[bx * block])
    return C


def fails():
    broken(np.ones(100, np.float32))


def works():
    assert mended(np.ones(100, np.float32)).sum() == 100
