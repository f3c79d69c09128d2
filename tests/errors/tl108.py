"""A name is used before it has a value, or after the branch in which it had one has ended.

The branch depends on the block, so the value of x after it would too, and a Python name cannot have two
values. A variable of the kernel can: `T.alloc_var`. A misspelt name gets this code as well, with the
nearest known one.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def broken():
    C = T.empty((4,), "float32")
    with T.Kernel(4, threads=32) as bx:
        if bx > 0:
            x = 1.0
        C[bx] = x  # error: TL108 inside a branch and is gone
    return C


@tilelang.jit(target="llvm")
def mended():
    C = T.empty((4,), "float32")
    with T.Kernel(4, threads=32) as bx:
        x = T.alloc_var("float32", init=0.0)
        if bx > 0:
            x = 1.0
        C[bx] = x
    return C


def fails():
    broken()


def works():
    assert list(np.asarray(mended())) == [0, 1, 1, 1]
