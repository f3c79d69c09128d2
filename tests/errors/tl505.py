"""The strides of an argument cannot be used: they are negative, or several of its elements share one place
in memory.

A broadcast tensor has stride 0. As an input it could be read, but nothing says that the kernel only reads
it, and two threads that write one place race. Make the elements real: `np.ascontiguousarray(x)`, or
`x.contiguous()` in torch. Other strides, such as those of a transposed or sliced tensor, are fine, and the
kernel is compiled for them.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def double(A):
    M, N = A.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(M, N):
            C[i, j] = A[i, j] * 2.0
    return C


row = np.broadcast_to(np.ones(8, np.float32), (4, 8))


def fails():
    double(row)  # error: TL505 elements of A overlap


def works():
    assert (double(np.ascontiguousarray(row)) == 2).all()
