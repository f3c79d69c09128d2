"""There is nothing to show: the name is no kernel, the file has none, or the trace has no pass of that
name.

A kernel is what `@tilelang.jit` makes of a function; a plain function has no passes.
"""

import tilelab as tilelang
import tilelab.language as T


def double(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[i] = A[i] * 2.0
    return C


def fails():
    tilelang.trace(double, T.Tensor((64,), "float32"))  # error: TL406 double is no kernel


def works():
    assert tilelang.trace(tilelang.jit(double), T.Tensor((64,), "float32"), target="llvm").steps
