"""A loop cannot be spread over the threads of the block.

The iterations of T.Parallel are shared out when the kernel is compiled, so its extents must be numbers. The
block's index is not one. Loop over the largest extent, and leave out the rest with an if.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def broken():
    C = T.empty((4, 4), "float32")
    with T.Kernel(4, threads=32) as bx:
        for j in T.Parallel(bx + 1):  # error: TL205 is not known when the kernel is compiled
            C[bx, j] = 1.0
    return C


@tilelang.jit(target="cuda:sm_80", emulate=True)
def mended():
    C = T.empty((4, 4), "float32")
    with T.Kernel(4, threads=32) as bx:
        for j in T.Parallel(4):
            C[bx, j] = T.if_then_else(j <= bx, 1.0, 0.0)
    return C


def fails():
    broken()


def works():
    assert (np.asarray(mended()) == np.tri(4)).all()
