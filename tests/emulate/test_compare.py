"""The step that changes an answer is found, with what it did."""

import numpy as np

from tests.emulate.kernels import simt_matmul
from tilelab.emulate.compare import compare_steps, relative_error

A = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float16)
B = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float16)
WANT = {"C": A.astype(np.float64) @ B.astype(np.float64)}


def arguments():
    return {"A": A, "B": B, "C": np.full((64, 64), np.nan, np.float16)}


def test_right_steps_are_all_passed():
    good = simt_matmul("threaded")
    steps = [("parse", good), ("nothing", good), ("insert_barriers", simt_matmul("synced"))]
    assert compare_steps(steps, arguments, WANT, 1e-3) is None


def test_the_first_wrong_step_is_named_with_its_fault():
    steps = [
        ("parse", simt_matmul("threaded")),
        ("insert_waits", simt_matmul("synced", barrier=False)),
        ("later", simt_matmul("synced", wait=None)),
    ]
    change = compare_steps(steps, arguments, WANT, 1e-3)
    assert (change.step, change.stage) == ("insert_waits", "synced")
    assert "TL603" in change.reason
    assert str(change).startswith("insert_waits (stage synced, mode late, seed 0): error[TL603]")


def test_a_wrong_value_is_measured():
    change = compare_steps([("parse", simt_matmul("threaded"))], arguments, {"C": WANT["C"] * 2}, 1e-3)
    assert change.reason == "C is off by 5.00e-01 (relative), 1e-03 is allowed"


def test_relative_error_knows_nan_and_infinity():
    assert relative_error(np.array([1.0, np.nan]), np.array([1.0, np.nan])) == 0
    assert relative_error(np.array([np.inf, 1.0]), np.array([np.inf, 1.0])) == 0
    assert relative_error(np.array([np.nan]), np.array([1.0])) == float("inf")
    assert relative_error(np.array([3.0, 4.0]), np.array([0.0, 0.0])) == 5.0
