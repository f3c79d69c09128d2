"""The checker of exercises: right kernels pass, wrong ones say where, errors are rows and not tracebacks."""

from __future__ import annotations

import numpy as np

import tilelab
from tilelab_puzzles import check

INPUTS = [(np.ones((2, 3)),), (np.arange(4.0),)]


def double(x: np.ndarray) -> np.ndarray:
    return 2 * x


def test_a_right_kernel_passes_every_row() -> None:
    verdict = check(double, double, INPUTS)
    assert verdict
    assert str(verdict).splitlines() == [
        "✓ 2×3  relative error 0.0e+00",
        "✓ 4    relative error 0.0e+00",
        "solved",
    ]


def test_a_wrong_element_is_named() -> None:
    def nearly(x: np.ndarray) -> np.ndarray:
        out = double(x)
        out.flat[-1] = 7
        return out

    verdict = check(nearly, double, INPUTS)
    assert not verdict
    assert "1 of 6 elements are wrong, the first at (1, 2): 7, and 2 is right" in str(verdict)
    assert str(verdict).endswith("0 of 2 so far")


def test_other_shapes_nan_and_nothing_do_not_pass() -> None:
    assert "has shape (1,)" in str(check(lambda x: np.ones(1), double, INPUTS))
    assert not check(lambda x: np.full_like(x, np.nan), double, INPUTS)
    assert "returns nothing" in str(check(lambda x: None, double, INPUTS))
    assert not check(double, double, [])


def test_a_tile_error_is_a_row() -> None:
    def refuse(x: np.ndarray) -> np.ndarray:
        raise tilelab.TileError("TL502", "x has 1 axis, and 2 are wanted")

    assert "✗ 4    TL502: x has 1 axis" in str(check(refuse, double, INPUTS))
