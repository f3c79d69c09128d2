"""No instruction of the chip does what the operation asks for.

The matrix instructions take A from registers or shared memory, and B from shared memory. Here B is a
fragment, that is in registers. Keep it in a T.alloc_shared tile. Where several instructions were
considered, the message lists each with the reason why it does not serve.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit(target="cuda:sm_80", emulate=True)
def broken(A, B):
    C = T.empty((16, 16), "float32")
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((16, 16), "float16"), T.alloc_fragment((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)  # error: TL203 B of a gemm is in registers
        T.copy(c, C)
    return C


@tilelang.jit(target="cuda:sm_80", emulate=True)
def mended(A, B):
    C = T.empty((16, 16), "float32")
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)
    return C


def fails():
    broken(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16))


def works():
    assert (mended(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16)) == 16).all()
