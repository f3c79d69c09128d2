"""Compiled HIP kernels give the values of NumPy, at even and ragged sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.emulate.gfx942 import run
from tilelab.emulate.gfx942.formats import BF8, FP8


def random(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("n", [1, 255, 256, 1021])
@pytest.mark.parametrize(
    ("kernel", "threads", "per_block"),
    [("vector_add", 256, 256), ("vector_add4", 64, 256), ("vector_add_branch", 256, 256)],
)
def test_vector_add_is_exact_at_ragged_lengths(build, kernel, threads, per_block, n):
    a, b, c = random(n), random(n, seed=1), np.zeros(n, np.float32)
    report = run(build("vector_add"), kernel, (-(-n // per_block), 1, 1), (threads, 1, 1), [a, b, c, n])
    np.testing.assert_array_equal(c, a + b)
    assert report.bytes_stored <= 4 * n
    assert report.diagnostics == ()


@pytest.mark.parametrize(("m", "n"), [(32, 32), (64, 96), (33, 45)])
def test_transpose_through_lds(build, m, n):
    x, y = random(m, n), np.zeros((n, m), np.float32)
    grid = (-(-n // 32), -(-m // 32), 1)
    report = run(build("transpose"), "transpose", grid, (256, 1, 1), [x, y, m, n])
    np.testing.assert_array_equal(y, x.T)
    assert report.bank_conflict_cycles == 0


def test_transpose_without_padding_has_bank_conflicts(build):
    x, y = random(32, 32), np.zeros((32, 32), np.float32)
    report = run(build("transpose", "-DPAD=0"), "transpose", (1, 1, 1), (256, 1, 1), [x, y, 32, 32])
    np.testing.assert_array_equal(y, x.T)
    reads = [a for a in report.accesses if a.space == "lds" and not a.is_write]
    # a column of 32 words lies in one bank: 32 cycles for each half wave
    assert sum(a.cost for a in reads) == 32 * sum(a.ideal for a in reads)


def bfloat16(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def fnuz(
    rng: np.random.Generator, shape: tuple[int, int], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.integers(0, 256, shape).astype(np.uint8)
    codes[codes == 0x80] = 0
    return codes, values[codes].astype(np.float64)


def operands(kind: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A and B as the kernel takes them, and as float64."""
    rng = np.random.default_rng(3)
    if kind == "fp8":
        a, wide_a = fnuz(rng, (rows, k), FP8)
        b, wide_b = fnuz(rng, (rows, k), FP8)
        return a, b, wide_a, wide_b
    if kind == "bf8_fp8":
        a, wide_a = fnuz(rng, (rows, k), BF8)
        b, wide_b = fnuz(rng, (rows, k), FP8)
        return a, b, wide_a, wide_b
    if kind == "i8":
        a, b = (rng.integers(-128, 128, (rows, k)).astype(np.int8) for _ in range(2))
        return a, b, a.astype(np.float64), b.astype(np.float64)
    dtype = {"f16": np.float16, "f64": np.float64}.get(kind, np.float32)
    a, b = (rng.standard_normal((rows, k)).astype(dtype) for _ in range(2))
    if kind == "bf16":
        a, b = (bfloat16(x) for x in (a, b))
        wide_a, wide_b = ((x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for x in (a, b))
        return a, b, wide_a, wide_b
    return a, b, a.astype(np.float64), b.astype(np.float64)


@pytest.mark.parametrize(
    ("shape", "kind", "tolerance"),
    [
        ("16x16x16", "f16", 2e-7),
        ("16x16x16", "bf16", 2e-7),
        ("32x32x8", "f16", 2e-7),
        ("32x32x8", "bf16", 2e-7),
        ("16x16x32", "fp8", 2e-7),
        ("32x32x16", "fp8", 2e-7),
        ("16x16x32", "bf8_fp8", 2e-7),
        ("16x16x32", "i8", 0),
        # xf32 keeps ten mantissa bits of each factor
        ("16x16x8", "xf32", 2**-10),
        ("16x16x4", "f32", 2e-7),
        ("16x16x4", "f64", 1e-15),
    ],
)
def test_matrix_instruction_equals_matmul(build, shape, kind, tolerance):
    rows, k = int(shape.split("x")[0]), 64
    a, b, wide_a, wide_b = operands(kind, rows, k)
    d = np.zeros((rows, rows), {"i8": np.int32, "f64": np.float64}.get(kind, np.float32))
    report = run(build("mfma"), f"mfma_{shape}_{kind}", (1, 1, 1), (64, 1, 1), [a, b, d, k])
    assert relative_error(d, wide_a @ wide_b.T) <= tolerance
    assert report.matrix_flops == 2 * rows * rows * k


def nearest_fnuz(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The nearest value of the format, ties to the even code, found by comparing with all of them."""
    codes = np.array([c for c in range(256) if c != 0x80])
    distance = np.abs(values[codes].astype(np.float64)[None] - x.astype(np.float64)[:, None])
    is_best = distance == distance.min(axis=1, keepdims=True)
    # among the two of a tie the even code counts first
    order = np.argsort(codes % 2, kind="stable")
    return codes[order[np.argmax(is_best[:, order], axis=1)]]


def test_fp8_conversion_rounds_to_the_nearest_even_fnuz_code(build):
    rng = np.random.default_rng(5)
    x = (rng.standard_normal(1024) * 2.0 ** rng.integers(-12, 7, 1024)).astype(np.float32)
    x = np.clip(x, -240, 240)
    x[:16] = [
        0,
        240,
        -240,
        1,
        -1,
        0.5,
        1.0625,
        1.1875,
        2**-10,
        -(2**-10),
        2**-11,
        3 * 2**-11,
        17,
        19,
        100,
        120,
    ]
    e4m3, e5m2 = np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    back4, back5 = np.zeros(1024, np.float32), np.zeros(1024, np.float32)
    run(build("fp8"), "convert_fp8", (4, 1, 1), (64, 1, 1), [x, e4m3, e5m2, back4, back5])
    np.testing.assert_array_equal(FP8[e4m3.view(np.uint8)], FP8[nearest_fnuz(x, FP8)])
    np.testing.assert_array_equal(BF8[e5m2.view(np.uint8)], BF8[nearest_fnuz(x, BF8)])
    np.testing.assert_array_equal(back4, FP8[e4m3.view(np.uint8)])
    np.testing.assert_array_equal(back5, BF8[e5m2.view(np.uint8)])


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (128, 64, 128), (77, 100, 96), (1, 1, 32)])
def test_double_buffered_gemm(build, m, n, k):
    a, b, c = (
        random(m, k, dtype=np.float16),
        random(n, k, dtype=np.float16, seed=1),
        np.zeros((m, n), np.float32),
    )
    grid = (-(-n // 64), -(-m // 64), 1)
    report = run(build("gemm"), "gemm", grid, (256, 1, 1), [a, b, c, m, n, k])
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64).T) < 3e-7
    assert report.diagnostics == ()
    # every tile is multiplied whole, however ragged
    assert report.matrix_flops == 2 * 64 * grid[0] * 64 * grid[1] * k
    # 32 cycles for each 32x32x8
    assert report.matrix_cycles == report.matrix_flops // (2 * 32 * 32 * 8) * 32


def test_swizzle_takes_the_bank_conflicts_out_of_the_gemm(build):
    a, b, c = (
        random(64, 64, dtype=np.float16),
        random(64, 64, dtype=np.float16),
        np.zeros((64, 64), np.float32),
    )
    conflicts = []
    for swizzle in (1, 0):
        code = build("gemm", f"-DSWIZZLE={swizzle}")
        report = run(code, "gemm", (1, 1, 1), (256, 1, 1), [a, b, c, 64, 64, 64])
        conflicts.append(report.bank_conflict_cycles)
    assert conflicts[0] == 0
    assert conflicts[1] > 0


def test_histogram_by_atomics(build):
    n = 1000
    keys = np.random.default_rng(0).integers(0, 1 << 20, n).astype(np.uint32)
    bins, total, most = np.zeros(64, np.uint32), np.zeros(1, np.float32), np.zeros(1, np.uint32)
    run(build("atomics"), "histogram", (4, 1, 1), (256, 1, 1), [keys, bins, total, most, n])
    np.testing.assert_array_equal(bins, np.bincount(keys % 64, minlength=64))
    assert total[0] == (keys % 8).sum()
    assert most[0] == keys.max()


def test_returned_tickets_are_a_permutation(build):
    counter, taken = np.zeros(1, np.uint32), np.full(256, 999, np.uint32)
    run(build("atomics"), "tickets", (2, 1, 1), (128, 1, 1), [counter, taken])
    assert counter[0] == 256
    np.testing.assert_array_equal(np.sort(taken), np.arange(256))


def test_compare_and_swap_loop_ends_with_every_lane_counted(build):
    product, x = np.ones(1, np.float32), np.where(np.arange(64) % 3 == 0, 2, 1).astype(np.float32)
    run(build("atomics"), "float_product", (1, 1, 1), (64, 1, 1), [product, x])
    assert product[0] == 2.0**22


@pytest.mark.parametrize("n", [64, 200, 33])
def test_softmax_of_a_row(build, n):
    x, y = random(5, n) * 4, np.zeros((5, n), np.float32)
    run(build("softmax"), "softmax", (5, 1, 1), (64, 1, 1), [x, y, n])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert relative_error(y, e / e.sum(axis=1, keepdims=True)) < 3e-7


def test_copy_straight_into_lds(build):
    x, y = np.arange(1024, dtype=np.uint32), np.zeros(1024, np.uint32)
    report = run(build("direct_to_lds"), "reverse", (4, 1, 1), (256, 1, 1), [x, y])
    np.testing.assert_array_equal(y, x.reshape(4, 256)[:, ::-1].ravel())
    assert report.diagnostics == ()


def test_batch_size_changes_nothing(build):
    a, b = random(128, 64, dtype=np.float16), random(128, 64, dtype=np.float16, seed=1)
    results = []
    for batch in (4, 64):
        c = np.zeros((128, 128), np.float32)
        args = [a, b, c, 128, 128, 64]
        results.append((c, run(build("gemm"), "gemm", (2, 2, 1), (256, 1, 1), args, batch_waves=batch)))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1].by_mnemonic == results[1][1].by_mnemonic
    assert results[0][1].accesses == results[1][1].accesses
