"""The target is not known. A target is a kind of back end and an architecture: `llvm`, `cuda:sm_90a`,
`hip:gfx942`.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit
def double(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[i] = A[i] * 2.0
    return C


A = np.ones(64, np.float32)


def fails():
    double.compile(A, target="cuda:sm_91")  # error: TL401 no target is called 'cuda:sm_91'


def works():
    double.compile(A, target="cuda:sm_90a")
