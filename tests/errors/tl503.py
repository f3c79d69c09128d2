"""An argument has another dtype than the kernel takes, or is no tensor where one is needed.

Nothing is converted behind your back, since that would cost a copy. Convert the argument, or leave the
annotation out: a kernel without one is compiled for the dtype that comes.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def double(A):
    A: T.Tensor((64,), T.float32)  # error: TL503 A is float64, and the annotation says float32
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[i] = A[i] * 2.0
    return C


def fails():
    double(np.ones(64))


def works():
    assert (double(np.ones(64, np.float32)) == 2).all()
