"""Kernels written by hand at the device stage, on the device: the printers and the launch alone, without the
passes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.codegen import kernels
from tests.gpu.running import (
    architecture,
    build,
    execute,
    from_bfloat16,
    relative_error,
    run_printed,
    to_bfloat16,
)
from tilelab.codegen.cuda import cuda_text
from tilelab.runtime.cuda_driver import cuda

pytestmark = pytest.mark.gpu


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_vector_add_is_exact(dtype):
    a, b = random(1024).astype(dtype), random(1024, seed=1).astype(dtype)
    out = np.zeros(1024, dtype)
    run_printed(cuda_text(kernels.vector_add(dtype, 4)), [a, b, out])
    np.testing.assert_array_equal(out, a + b)


def test_bfloat16_sums_round_to_nearest_even():
    a, b = to_bfloat16(random(1024)), to_bfloat16(random(1024, seed=1))
    out = np.zeros(1024, np.uint16)
    run_printed(cuda_text(kernels.vector_add("bfloat16", 4)), [a, b, out])
    np.testing.assert_array_equal(out, to_bfloat16(from_bfloat16(a) + from_bfloat16(b)))


def test_rows_are_summed_across_the_lanes_of_a_warp():
    a, out = random(8, 256).astype(np.float16), np.zeros(8, np.float32)
    run_printed(cuda_text(kernels.row_sums()), [a, out])
    np.testing.assert_allclose(out, a.astype(np.float64).sum(1), rtol=1e-4, atol=1e-4)


def test_atomic_additions_add_up():
    values, bins = random(1024), np.random.default_rng(3).integers(0, 16, 1024).astype(np.int32)
    counts, sums, pairs = np.zeros(16, np.int32), np.zeros(16, np.float32), np.zeros(32, np.float16)
    run_printed(cuda_text(kernels.histogram()), [values, bins, counts, sums, pairs])
    np.testing.assert_array_equal(counts, np.bincount(bins, minlength=16))
    np.testing.assert_allclose(sums, np.bincount(bins, values, 16), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(pairs[1::2], counts.astype(np.float16))


def _matmul_error(make, m: int, n: int, k: int, dtype: str) -> float:
    half = dtype == "float16"
    a, b = random(m, k), random(k, n, seed=1)
    a, b = (x.astype(np.float16) if half else to_bfloat16(x) for x in (a, b))
    # NaN wherever the kernel writes nothing.
    out = np.full((m, n), 0x7FFF, np.uint16)
    out = out.view(np.float16) if half else out
    kernel, binary = build(cuda_text(make(m, n, k, dtype)))
    assert binary.resources[0].is_clean, binary.log
    assert kernel.function.local_bytes == 0
    errors = []
    back = (lambda x: x.astype(np.float64)) if half else (lambda x: from_bfloat16(x).astype(np.float64))
    wanted = back(a) @ back(b)
    for _ in range(2):
        execute(kernel, [a, b, out])
        errors.append(relative_error(back(out), wanted))
    assert errors[0] == errors[1], "two runs differ"
    return errors[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(128, 128, 64), (512, 768, 1024)])
def test_the_mma_matmul_agrees_with_float64(shape, dtype):
    def make(m, n, k, dtype):
        return kernels.mma_matmul(m, n, k, dtype, dtype)

    # One rounding to the output's dtype: half a unit in the last place of 11 or 8 bits.
    assert _matmul_error(make, *shape, dtype) < (2**-11 if dtype == "float16" else 2**-8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(128, 256, 64), (256, 512, 320), (512, 768, 1024)])
@pytest.mark.parametrize("split", [False, True])
def test_the_warp_specialised_wgmma_matmul_agrees_with_float64(shape, dtype, split):
    if architecture() != "sm_90a":
        pytest.skip(f"wgmma needs sm_90a, this device is {architecture()}")
    make = partial(kernels.wgmma_matmul, split=split)
    assert _matmul_error(make, *shape, dtype) < (2**-11 if dtype == "float16" else 2**-8)


def test_a_launch_costs_a_few_microseconds():
    import time

    kernel, _ = build(cuda_text(kernels.vector_add()))
    held = [cuda().allocate(4096) for _ in range(3)]
    launch = kernel.bind(held)
    for _ in range(100):
        launch()
    cuda().synchronize()
    begin = time.perf_counter()
    for _ in range(200):
        launch()
    each = (time.perf_counter() - begin) / 200
    cuda().synchronize()
    assert each < 20e-6, f"{each * 1e6:.1f} µs a launch"
