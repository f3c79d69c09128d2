"""One kernel through every part on the CPU: the first test to look at, over in seconds."""

from __future__ import annotations

import numpy as np

import tilelab
import tilelab.language as T


@tilelab.jit(target="llvm")
def scale_and_add(A, B, factor=2.0, block=32):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] * factor + B[bx * block + i]
    return C


def test_a_kernel_goes_through_every_stage_and_gives_the_right_values():
    a, b = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    np.testing.assert_array_equal(scale_and_add(a, b), 2 * a + b)
    trace = tilelab.trace_of(scale_and_add)
    stages = list(dict.fromkeys(step.stage for step in trace.steps))
    assert stages == ["tile", "laid_out", "threaded", "synced", "device"]
    assert all(step.status != "failed" for step in trace.steps)
    assert trace.code is not None
    store = trace.source.first_line + 6
    assert trace.source.lines[6].strip().startswith("C[")
    assert any(line.source == (store, store) for line in trace.steps[-1].render())
