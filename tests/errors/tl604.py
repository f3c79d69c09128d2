"""The kernel does not come to an end: its threads wait for each other, or a loop goes on for ever.

The emulator counts steps and stops a kernel that takes too many; where threads wait for each other it names
who waits for whom. Here the loop halves `x` until it is below one, and its author forgot to halve. On a GPU
such a kernel hangs the device.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T
from tilelab.emulate import emulate


@tilelang.jit(target="cuda:sm_80", emulate=True)
def halvings(A, factor):
    C = T.empty((1,), "int32")
    with T.Kernel(1, threads=32):
        x = T.alloc_var("float32", init=0.0)
        count = T.alloc_var("int32", init=0)
        x = A[0]
        while x >= 1.0:  # error: TL604 no end after 1000 steps
            x = x * factor
            count = count + 1
        C[0] = count
    return C


def count(factor):
    A, C = np.full(1, 100.0, np.float32), np.zeros(1, np.int32)
    emulate(halvings.compile(A, factor).device_ir(), [A, C], max_steps=1000)
    return C[0]


def fails():
    count(factor=1.0)


def works():
    assert count(factor=0.5) == 7
