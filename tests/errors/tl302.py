"""A block asks for more threads, or for more registers, than the chip gives it.

A block of an NVIDIA or AMD GPU has at most 1024 threads. More work does not need more threads: T.Parallel
shares out any number of iterations, several to a thread.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def double(A, threads=128):
    C = T.empty((4096,), A.dtype)
    with T.Kernel(1, threads=threads):  # error: TL302 a block asks for 4096 threads
        for i in T.Parallel(4096):
            C[i] = A[i] * 2.0
    return C


def fails():
    double(np.ones(4096, np.float32), threads=4096)


def works():
    assert (double(np.ones(4096, np.float32), threads=128) == 2).all()
