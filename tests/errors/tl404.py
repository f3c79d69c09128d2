"""The compiler of the target refused the code that was generated for it.

That is nearly always a fault of tilelab, and worth a report with the kernel; a too old compiler is the
other cause. The place is the line of the generated code. The example spoils a line of it on purpose.
"""

import numpy as np

import tilelab as tilelang
import tilelab.language as T
from tilelab.runtime.hip_build import build_hip


@tilelang.jit(target="hip:gfx942")
def double(A):
    C = T.empty((64,), A.dtype)
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            C[i] = A[i] * 2.0
    return C


source = double.compile(np.ones(64, np.float32)).get_kernel_source()


def fails():
    build_hip(source.replace("const int tx", "const int ty"), "gfx942")  # error: TL404 of the generated code


def works():
    assert build_hip(source, "gfx942").code_object
