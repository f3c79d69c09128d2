"""The emulator found a race: two threads touch the same bytes, one of them writes, and nothing orders the
two.

The passes insert the barriers that a kernel needs. The example compiles without the pass that does it,
insert_barriers. On a GPU the sum may come out right all the same, a thousand times; the emulator knows what
is ordered and what is luck.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.run import without


def reverse(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((64,), A.dtype)
        for i in T.Parallel(64):
            tile[i] = A[i]
        for i in T.Parallel(64):
            C[i] = tile[63 - i]  # error: TL603 with nothing to order the two
    return C


broken = tilelang.jit(reverse, target="cuda:sm_80", emulate=True, passes=without(CUDA, "insert_barriers"))
mended = tilelang.jit(reverse, target="cuda:sm_80", emulate=True)


def fails():
    broken(np.arange(64, dtype=np.float32))


def works():
    assert list(mended(np.arange(64, dtype=np.float32)))[:2] == [63, 62]
