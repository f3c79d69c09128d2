"""A kernel's source is read, not run, so some Python statements have no meaning in it.

The usual case is a running total. The loop is a loop of the device, and a Python name stands for one value:
it cannot mean something else in each iteration. What changes while the kernel runs has to live in memory:
in a tile, or in a scalar made by T.alloc_var. Statements such as try, class, yield and async are refused
with this code too.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken(A):
    C = T.empty((1,), A.dtype)
    with T.Kernel(1, threads=32):
        total = 0.0
        for i in T.serial(8):
            total = total + A[i]  # error: TL101 total has a value from
        C[0] = total
    return C


@tilelang.jit(target="llvm")
def mended(A):
    C = T.empty((1,), A.dtype)
    with T.Kernel(1, threads=32):
        total = T.alloc_var("float32", init=0.0)
        for i in T.serial(8):
            total = total + A[i]
        C[0] = total
    return C


def fails():
    broken(np.ones(8, np.float32))


def works():
    assert mended(np.ones(8, np.float32))[0] == 8
