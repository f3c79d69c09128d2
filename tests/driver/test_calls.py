"""Calls give the right values for tensors of any framework, shape and stride, and compile each signature
once.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilelab
from tests.driver.kernels import (
    add,
    annotated_add,
    in_place,
    jit,
    lazy_add,
    lazy_open,
    matmul,
    open_rows,
    pair,
    prim_func,
    scaled,
)

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(0)


def random(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def compiled(function) -> int:
    return len(function._kernels)


def only(function):
    (kernel,) = function._kernels.values()
    return kernel


def test_outputs_come_in_the_framework_of_the_inputs():
    a, b = random(50), random(50)
    kernel = jit(add)
    assert isinstance(kernel(a, b), np.ndarray)
    assert isinstance(kernel(torch.from_numpy(a), torch.from_numpy(b)), torch.Tensor)
    assert compiled(kernel) == 1


class OnlyDlpack:
    """A tensor of a framework that offers nothing but DLPack."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_anything_that_speaks_dlpack_is_an_argument():
    a, b = random(40), random(40)
    np.testing.assert_array_equal(jit(add)(OnlyDlpack(a), OnlyDlpack(b)), a + b)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000])
def test_empty_one_element_and_ragged_inputs_are_right(n):
    a, b = random(n), random(n)
    np.testing.assert_array_equal(jit(add)(a, b), a + b)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    assert torch.equal(jit(add)(ta, tb), ta + tb)


@pytest.mark.parametrize("sizes", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1), (33, 17, 31)])
def test_matmul_is_right_where_sizes_are_zero_one_or_ragged(sizes):
    m, n, k = sizes
    a, b = random(m, k, dtype=np.float16), random(k, n, dtype=np.float16)
    c = jit(matmul)(a, b)
    tilelab.testing.assert_close(c, a.astype(np.float64) @ b.astype(np.float64), k=k)


def test_dtypes_that_numpy_exports_not_and_read_only_arrays_are_arguments():
    import ml_dtypes

    a = random(33).astype(ml_dtypes.bfloat16)
    a.flags.writeable = False
    np.testing.assert_array_equal(jit(add)(a, a), a + a)


def test_tensors_that_need_a_gradient_are_read():
    a = torch.ones(10, requires_grad=True)
    assert torch.equal(jit(add)(a, a), torch.full((10,), 2.0))


def test_each_signature_is_compiled_once():
    kernel = jit(add)
    a, b = random(50), random(50)
    for _ in range(3):
        kernel(a, b)
    kernel(a, B=b)
    assert compiled(kernel) == 1
    kernel(random(51), random(51))
    kernel(a, b, block=16)
    kernel(a.astype(np.float64), b.astype(np.float64))
    assert compiled(kernel) == 4


def test_strides_are_compiled_for_and_recorded_as_a_slower_path():
    a, b = random(17, 33, dtype=np.float16), random(33, 29, dtype=np.float16)
    kernel = jit(matmul)
    got = kernel(a.T.copy().T, b)
    tilelab.testing.assert_close(got, a.astype(np.float64) @ b.astype(np.float64), k=33)
    assert any(n.kind == "slow_path" and n.text.startswith("A is not contiguous") for n in only(kernel).notes)
    assert any("A is not contiguous" in n.text for n in only(kernel).trace.steps[0].notes)


def test_sliced_tensors_are_read_where_they_are():
    wide = torch.from_numpy(random(20, 40))
    a, b = wide[2:12, 3:19], wide[5:15, 20:36]
    assert torch.equal(jit(annotated_add)(a, b), a + b)


def test_dynamic_sizes_share_one_compile():
    kernel = jit(open_rows)
    for rows in (8, 5, 1, 0, 9):
        a, b = random(rows, 16), random(rows, 16)
        np.testing.assert_array_equal(kernel(a, b), a + b)
    assert compiled(kernel) == 1


def test_numbers_are_passed_at_the_launch():
    kernel = jit(scaled)
    a = random(20)
    for factor in (2.0, 3, np.float32(0.5)):
        np.testing.assert_allclose(kernel(a, factor), a * np.float32(factor), rtol=1e-6)
    assert compiled(kernel) == 1


def test_several_outputs_come_in_the_order_of_the_return_statement():
    a = random(20)
    square, twice = jit(pair)(a)
    np.testing.assert_array_equal(square, a * a)
    np.testing.assert_array_equal(twice, a + a)


def test_the_lazy_style_gives_a_kernel_with_outputs_by_index():
    factory = jit(lazy_add, out_idx=[-1])
    kernel = factory(24)
    a, b = random(24), random(24)
    np.testing.assert_array_equal(kernel(a, b), a + b)
    assert factory(24) is kernel
    assert factory(25) is not kernel


def test_a_kernel_takes_its_outputs_when_they_are_given():
    a, b, c = random(24), random(24), np.zeros(24, np.float32)
    tilelab.compile(lazy_add(24), target="llvm")(a, b, c)
    np.testing.assert_array_equal(c, a + b)
    with_output = tilelab.compile(lazy_add(24), out_idx=-1, target="llvm")
    d = np.zeros(24, np.float32)
    with_output(a, b, d)
    np.testing.assert_array_equal(d, a + b)


def test_the_lazy_style_reads_open_sizes_off_the_arguments():
    kernel = jit(lazy_open, out_idx=-1)(16)
    for m, n in ((3, 5), (7, 2)):
        a, b = random(m, n), random(n, 16)
        np.testing.assert_array_equal(kernel(a, b), a[:, :1] + b[:1])


def test_arguments_that_a_signature_wants_contiguous_are_copied_there_and_back():
    kernel = tilelab.compile(prim_func(in_place), target="llvm")
    wide = np.zeros((8, 16), np.float32)
    kernel(wide[:, ::2])
    assert (wide[:, ::2] == 1).all()
    assert (wide[:, 1::2] == 0).all()
    assert any("copied for each call" in n.text for n in kernel.notes)


def test_the_profiler_times_a_kernel_and_compares_it():
    kernel = jit(lazy_add, out_idx=-1)(64)
    profiler = kernel.get_profiler(tilelab.TensorSupplyType.Integer)
    assert 0 < profiler.do_bench(warmup=1, rep=2) < 1000
    low, high = profiler.do_bench(warmup=1, rep=2, quantiles=[0.0, 1.0])
    assert low <= high
    profiler.assert_allclose(lambda a, b: a + b)
    with pytest.raises(AssertionError, match="64 of 64 elements"):
        profiler.assert_allclose(lambda a, b: a + b + 1)


def test_the_profiler_says_that_it_measured_the_emulator():
    kernel = jit(add, target="cuda:sm_80", emulate=True).compile(
        np.ones(32, np.float32), np.ones(32, np.float32)
    )
    with pytest.warns(RuntimeWarning, match="measured the emulator, not a GPU"):
        kernel.get_profiler().do_bench(warmup=0, rep=1)
    assert any("measured the emulator" in n.text and n.kind == "slow_path" for n in kernel.notes)
