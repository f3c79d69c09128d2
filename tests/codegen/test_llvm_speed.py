"""How fast the CPU target is: the article's kernel beside torch, paired in one process."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.codegen.cpu import compiled, lowered, matmul
from tilelab.codegen import llvm
from tilelab.targets import parse_target

torch = pytest.importorskip("torch")


@pytest.mark.slow
def test_float32_matmul_is_at_least_half_as_fast_as_torch_with_two_threads() -> None:
    threads = llvm.threads(), torch.get_num_threads()
    size = 1024
    a, w, c = torch.randn(size, size), torch.randn(size, size), torch.zeros(size, size)
    run = compiled(matmul(size, size, size))
    llvm.set_threads(2)
    torch.set_num_threads(2)
    ours, theirs = [], []
    try:
        for _ in range(20):
            started = time.perf_counter()
            run(a, w, c)
            middle = time.perf_counter()
            reference = torch.mm(a, w)
            ours.append(middle - started)
            theirs.append(time.perf_counter() - middle)
    finally:
        llvm.set_threads(threads[0])
        torch.set_num_threads(threads[1])
    torch.testing.assert_close(c, reference, rtol=1e-4, atol=1e-3)
    paired = statistics.median(y / x for x, y in zip(ours, theirs, strict=True))
    assert max(paired, min(theirs) / min(ours)) >= 0.5


def test_the_kernel_compiles_in_a_moment() -> None:
    f, target = matmul(1024, 1024, 1024), parse_target("llvm")
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        llvm.build(lowered(f)[0], target)
        best = min(best, time.perf_counter() - started)
    assert best < 0.5, "150 ms on a machine that does nothing else"
