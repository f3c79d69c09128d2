"""Device-stage kernels as HIP C++: what is printed, and what the code objects compute in the gfx942
emulator.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.codegen import kernels
from tilelab.codegen.helpers import in_order
from tilelab.codegen.hip import hip_text
from tilelab.codegen.templates.hip import HIP_HELPERS
from tilelab.emulate.gfx942 import run
from tilelab.errors import InternalError, TileError
from tilelab.hardware import ROWS
from tilelab.runtime.hip_build import build_hip


def execute(f, *arguments):
    """Print, compile and run in the emulator; arrays are written in place."""
    code = hip_text(f)
    binary = build_hip(code.text)
    assert "warning" not in binary.log
    grid = tuple(int(e) for e in code.grid)
    return run(binary.code_object, code.entry, grid, code.block, list(arguments))


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    words = x.astype(np.float32).view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vector_add_is_exact(dtype):
    a, c = random(1024).astype(dtype), random(1024, seed=1).astype(dtype)
    out = np.zeros(1024, dtype)
    execute(kernels.vector_add(dtype, 4), a, c, out)
    np.testing.assert_array_equal(out, a + c)


def test_bfloat16_sums_round_to_nearest_even():
    a, c = to_bfloat16(random(1024)), to_bfloat16(random(1024, seed=1))
    out = np.zeros(1024, np.uint16)
    execute(kernels.vector_add("bfloat16", 4), a, c, out)
    np.testing.assert_array_equal(out, to_bfloat16(from_bfloat16(a) + from_bfloat16(c)))


@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_sums_of_eight_bit_floats_are_exact(dtype):
    small = getattr(ml_dtypes, dtype)
    a, b = random(1024).astype(small), random(1024, seed=1).astype(small)
    out = np.zeros(1024, np.uint8)
    execute(kernels.vector_add(dtype, 4), a.view(np.uint8), b.view(np.uint8), out)
    wanted = (a.astype(np.float32) + b.astype(np.float32)).astype(small)
    np.testing.assert_array_equal(out, wanted.view(np.uint8))


def test_rows_are_summed_across_the_lanes_of_a_wave():
    a, out = random(8, 256).astype(np.float16), np.zeros(8, np.float32)
    execute(kernels.row_sums(warp=64), a.reshape(-1), out)
    np.testing.assert_allclose(out, a.astype(np.float64).sum(1), rtol=1e-4, atol=1e-4)


def test_atomic_additions_add_up():
    values, bins = random(1024), np.random.default_rng(3).integers(0, 16, 1024).astype(np.int32)
    counts, sums, pairs = np.zeros(16, np.int32), np.zeros(16, np.float32), np.zeros(32, np.float16)
    execute(kernels.histogram(), values, bins, counts, sums, pairs)
    np.testing.assert_array_equal(counts, np.bincount(bins, minlength=16))
    np.testing.assert_allclose(sums, np.bincount(bins, values, 16), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(pairs[1::2], counts.astype(np.float16))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_mfma_matmul_agrees_with_float64(dtype):
    m, n, k = 128, 128, 64
    a, c = random(m, k), random(k, n, seed=1)
    half = dtype == "float16"
    to, back = (lambda x: x.astype(np.float16), lambda x: x.astype(np.float64)) if half else (
        to_bfloat16, lambda x: from_bfloat16(x).astype(np.float64))  # fmt: skip
    out = np.zeros((m, n), np.float16 if half else np.uint16)
    execute(kernels.mfma_matmul(m, n, k, dtype), to(a).reshape(-1), to(c).reshape(-1), out.reshape(-1))
    wanted = back(to(a)) @ back(to(c))
    error = np.linalg.norm(back(out) - wanted) / np.linalg.norm(wanted)
    # One rounding to the output's dtype: half a unit in the last place of 11 or 8 bits.
    assert error < (2**-11 if half else 2**-8)


def test_rows_and_barriers_print_as_builtins(check_text):
    check_text(
        hip_text(kernels.mfma_matmul(128, 128, 64)).text,
        """
# CHECK: typedef _Float16 half;
# CHECK: __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
# CHECK-NEXT: __builtin_amdgcn_s_barrier();
# CHECK-NEXT: __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
# CHECK: __builtin_amdgcn_mfma_f32_32x32x8f16
# CHECK: amdgpu_flat_work_group_size(256, 256)
# CHECK: const int by = __builtin_amdgcn_workgroup_id_y();
# CHECK: static __attribute__((shared, aligned(1024))) unsigned char pool[20480];
# CHECK: __builtin_amdgcn_raw_buffer_load_b128(buffer_of(B, 8192 * 2),
# CHECK: block_barrier();
# CHECK: mfma_f32_32x32x8_f16(C_local + (i * 32 + j * 16), A_local + i * 4, B_local + j * 4);
""",
    )


def test_every_helper_compiles_alone():
    # A process a helper would take a minute: each goes into one file by itself, in a namespace of its own.
    parts = []
    for name in HIP_HELPERS:
        needed = in_order([name], HIP_HELPERS)
        text = "\n".join(h.text for h in needed if h.name != "DEV")
        parts.append(f"namespace alone_{name} {{\n{text}\n}}")
    source = HIP_HELPERS["DEV"].text + "\n" + "\n".join(parts)
    source += '\nextern "C" __attribute__((global)) void k() {}\n'
    assert build_hip(source).resources[0].name == "k"


@pytest.mark.parametrize(
    ("dtype", "word", "function"),
    [
        ("float32", "exp2", np.exp2),
        ("float32", "tanh", np.tanh),
        ("float16", "exp", np.exp),
        ("float32", "rsqrt", None),
    ],
)
def test_functions_of_floats_are_close(dtype, word, function):
    x = np.abs(random(64)).astype(dtype) + np.asarray(0.1, dtype)
    out = np.zeros(64, dtype)
    tensors = f'A: T.Buffer((64,), "{dtype}"), C: T.Buffer((64,), "{dtype}")'
    execute(kernels.function("k", tensors, 64, f"C[tx] = T.{word}(A[tx])"), x, out)
    wanted = 1 / np.sqrt(x.astype(np.float64)) if function is None else function(x.astype(np.float64))
    np.testing.assert_allclose(out, wanted, rtol=2e-3 if dtype == "float16" else 2e-6)


def test_erf_stays_within_its_stated_error():
    x = np.linspace(-4, 4, 64, dtype=np.float32)
    out = np.zeros(64, np.float32)
    tensors = 'A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")'
    execute(kernels.function("k", tensors, 64, "C[tx] = T.erf(A[tx])"), x, out)
    from math import erf

    assert max(abs(float(o) - erf(float(v))) for o, v in zip(out, x, strict=True)) < 5e-7


def test_a_guarded_buffer_load_reads_zero_beyond_its_guard():
    tensors = 'A: T.Buffer((512,), "float16"), C: T.Buffer((512,), "float16"), n: T.int32'
    body = """
L = T.alloc_buffer((8,), "float16", scope="local")
T.issue(L[0:8], A[tx * 8:tx * 8 + 8], tx < n, row="buffer_load_dwordx4")
C[T.Ramp(tx * 8, 1, 8)] = L[T.Ramp(0, 1, 8)]
"""
    a, out = random(512).astype(np.float16), np.ones(512, np.float16)
    execute(kernels.function("k", tensors, 64, body), a, out, 40)
    np.testing.assert_array_equal(out, np.where(np.arange(512) < 320, a, 0))


def test_every_row_of_memory_prints_and_compiles():
    rows = [r for r in ROWS if r.dialect == "hip" and r.family in ("load", "store")]
    lines = ['L = T.alloc_buffer((16,), "uint8", scope="local")',
             'S = T.alloc_buffer((64,), "uint8", scope="shared.dyn")']  # fmt: skip
    for each in rows:
        size, outside = each.bytes, "S" if "ds_" in each.name else "A"
        memory, held = f"{outside}[tx * {size}:tx * {size} + {size}]", f"L[0:{size}]"
        operands = f"{held}, {memory}" if each.family == "load" else f"{memory}, {held}"
        lines += [
            f'T.issue({operands}, row="{each.name}")',
            f'T.issue({operands}, tx < n, row="{each.name}")',
        ]
    assert len(rows) == 30
    f = kernels.function("k", 'A: T.Buffer((1024,), "uint8"), n: T.int32', 64, "\n".join(lines))
    assert build_hip(hip_text(f).text).resources[0].name == "k"


def test_printing_is_refused_with_the_way_out():
    f = kernels.function("k", 'C: T.Buffer((128,), "int32")', 128, 'T.print(C[0], message="x")')
    with pytest.raises(TileError, match="device libraries") as caught:
        hip_text(f)
    assert caught.value.code == "TL402"


def test_a_barrier_of_part_of_a_block_is_refused():
    body = """
with T.attr({"tl.group": "first:0:128"}):
    T.barrier()
"""
    with pytest.raises(InternalError, match="128 of 256"):
        hip_text(kernels.function("k", 'C: T.Buffer((128,), "int32")', 256, body))
