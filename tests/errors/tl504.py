"""An argument is on another device than the kernel's target, or than the other arguments.

The example uses torch's device `meta`, which every machine has and which holds no data.
"""

import torch

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="llvm")
def add(A, B):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[i] = A[i] + B[i]
    return C


def fails():
    add(torch.ones(64), torch.ones(64, device="meta"))  # error: TL504 B is on meta


def works():
    assert (add(torch.ones(64), torch.ones(64)) == 2).all()
