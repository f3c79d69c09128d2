"""A call of a kernel lacks an argument, or has one too many. Outputs made by T.empty are returned, not
passed.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def add(A, B):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[i] = A[i] + B[i]
    return C


A = np.ones(64, np.float32)


def fails():
    add(A)  # error: TL501 add lacks the argument B


def works():
    assert (add(A, A) == 2).all()
