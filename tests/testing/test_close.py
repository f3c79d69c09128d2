"""The tolerance passes what a right kernel gives, in every dtype, and fails what a wrong one gives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilelab.testing import Tolerance, assert_close, relative_error, tolerance

RANDOM = np.random.default_rng(1)


def product(k: int, dtype) -> tuple[np.ndarray, np.ndarray]:
    """A product of random matrices, summed in float32 and rounded, and the same in float64."""
    a, b = (RANDOM.standard_normal(shape).astype(dtype) for shape in ((64, k), (k, 64)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype), exact


@pytest.mark.parametrize("k", [1, 16, 1021, 4096])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_right_product_is_close(k, dtype):
    found, exact = product(k, dtype)
    assert_close(found, exact, k=k)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_one_missing_term_of_a_sum_is_not_close(dtype):
    a, b = (RANDOM.standard_normal(shape).astype(dtype) for shape in ((64, 256), (256, 64)))
    short = a[:, 1:].astype(np.float32) @ b[1:].astype(np.float32)
    with pytest.raises(AssertionError, match="elements are off"):
        assert_close(short.astype(dtype), a.astype(np.float64) @ b.astype(np.float64), k=256)


def test_integers_are_exact():
    assert tolerance("int32") == Tolerance(0.0, 0.0)
    with pytest.raises(AssertionError, match="1 of 2 elements"):
        assert_close(np.array([1, 2]), np.array([1, 3]))


def test_the_message_names_the_worst_element():
    wanted = np.zeros((4, 4))
    found = wanted.copy()
    found[1, 2], found[3, 0] = 0.5, np.nan
    with pytest.raises(AssertionError, match=r"2 of 16.*\(3, 0\): nan instead of 0"):
        assert_close(found, wanted)


def test_equal_infinities_and_nans_are_close():
    values = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert_close(values, values.astype(np.float64))


def test_shapes_must_agree():
    with pytest.raises(AssertionError, match=r"shapes differ: \(2,\) and \(1, 2\)"):
        assert_close(np.zeros(2), np.zeros((1, 2)))


def test_the_relative_error_is_that_of_the_norms():
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 5.0])) == pytest.approx(1 / np.sqrt(34))
    assert relative_error(np.array([3.0, 4.0]), np.zeros(2)) == pytest.approx(5.0)
