"""Kernels whose tensors have sizes that only a launch knows."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab.language as T
from tests.kernels.case import KernelCase, floats
from tests.test_meaning import PIPELINES, poisoned
from tilelab.emulate.compare import compare_steps
from tilelab.ir import build as b
from tilelab.pipelines.run import run, start_trace


def matmul(A, B, block=16):
    M, N, K = T.dynamic("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
        A_shared = T.alloc_shared((32, block), T.float16)
        B_shared = T.alloc_shared((block, 32), T.float16)
        C_local = T.alloc_fragment((32, 32), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block), num_stages=3):
            T.copy(A[by * 32, k * block], A_shared)
            T.copy(B[k * block, bx * 32], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 32, bx * 32])
    return C


@pytest.mark.parametrize("target", list(PIPELINES))
def test_one_compile_serves_every_size(target: str) -> None:
    case = KernelCase("matmul", matmul, lambda: (floats(8, 8), floats(8, 8)), lambda A, B: (A,), 0.0)
    parsed = case.build()
    trace = start_trace(b.with_attrs(parsed.func, target=target), parsed.source)
    run(trace.steps[0].function, PIPELINES[target], trace)
    steps = [(s.name, s.function) for s in trace.steps]
    for m, n, k in ((32, 64, 48), (33, 31, 17), (5, 7, 3)):
        A, B = floats(m, k), floats(k, n, seed=1)
        want = A.astype(np.float64) @ B.astype(np.float64)
        change = compare_steps(
            steps,
            lambda A=A, B=B, m=m, n=n: {"A": A, "B": B, "C": poisoned((m, n), "float32")},
            {"C": want},
            1e-4,
            seeds=(0,),
        )
        assert change is None, f"{m} x {n} x {k}: {change}"
