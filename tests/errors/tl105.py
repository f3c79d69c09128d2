"""The function that should be a kernel has a signature that cannot be used.

A T.prim_func says of each parameter what it is: a tensor by `T.Tensor(shape, dtype)`, a number by its
dtype. (In the eager style, where `@tilelang.jit` decorates the kernel itself, annotations may be left out,
because the tensors of the call say what they are.)
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm", out_idx=[-1])
def broken(N):
    @T.prim_func
    def double(A, B: T.Tensor((N,), "float32")):  # error: TL105 the parameter A of double has no annotation
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * 2.0

    return double


@tilelang.jit(target="llvm", out_idx=[-1])
def mended(N):
    @T.prim_func
    def double(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * 2.0

    return double


def fails():
    broken(64)


def works():
    assert (mended(64)(np.ones(64, np.float32)) == 2).all()
