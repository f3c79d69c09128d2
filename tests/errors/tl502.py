"""An argument has another rank or shape than the kernel takes.

The annotations say that the last axis of A and the first of B are both K. Here they are 64 and 32 long, so
A · B does not exist. The message names the argument and the axis.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def matmul(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float32)
    B: T.Tensor((K, N), T.float32)  # error: TL502 axis 0 of B has 32 elements, and K is 64
    C = T.empty((M, N), T.float32)
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((M, K), T.float32), T.alloc_shared((K, N), T.float32)
        c = T.alloc_fragment((M, N), T.float32)
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)
    return C


def fails():
    matmul(np.ones((16, 64), np.float32), np.ones((32, 16), np.float32))


def works():
    assert (matmul(np.ones((16, 64), np.float32), np.ones((64, 16), np.float32)) == 64).all()
