"""Check a kernel against a reference on several inputs, and show the outcome a row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilelab

__all__ = ["Row", "Verdict", "check"]


@dataclass(frozen=True)
class Row:
    """One input: its name, whether the kernel was right on it, and what was found."""

    name: str
    passed: bool
    found: str


@dataclass(frozen=True)
class Verdict:
    """What a check found. It is true when every row passed, and prints as a list of rows."""

    rows: tuple[Row, ...]

    def __bool__(self) -> bool:
        return bool(self.rows) and all(row.passed for row in self.rows)

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [f"{'✓' if row.passed else '✗'} {row.name:<{width}}  {row.found}" for row in self.rows]
        passed = sum(row.passed for row in self.rows)
        return "\n".join([*lines, "solved" if self else f"{passed} of {len(self.rows)} so far"])

    __repr__ = __str__


def check(
    kernel: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: Iterable[tuple[Any, ...]],
    *,
    tolerance: float = 1e-3,
) -> Verdict:
    """Run the kernel and the reference, which computes in float64, on each tuple of arrays.

    A row passes when ‖result - reference‖ / ‖reference‖ (Frobenius) is at most `tolerance`. A kernel that
    ends in a TileError fails its row with the error's first line; nothing is raised.
    """
    return Verdict(tuple(_row(kernel, reference, given, tolerance) for given in inputs))


def _row(kernel: Any, reference: Any, given: tuple[Any, ...], tolerance: float) -> Row:
    name = ", ".join("×".join(map(str, np.shape(x))) for x in given)
    want = np.asarray(reference(*(np.asarray(x, np.float64) for x in given)))
    try:
        got = kernel(*given)
    except tilelab.TileError as error:
        where = f" (line {error.places[0].line})" if error.places else ""
        return Row(name, False, f"{error.code}{where}: {error.message}")
    if got is None:
        return Row(name, False, "the kernel returns nothing")
    got = np.asarray(got, np.float64)
    if got.shape != want.shape:
        return Row(name, False, f"the result has shape {got.shape}, and {want.shape} is right")
    wrong = ~np.isclose(got, want, rtol=10 * tolerance, atol=10 * tolerance)
    error = float(np.linalg.norm(got - want)) / (float(np.linalg.norm(want)) or 1.0)
    if np.isfinite(got).all() and error <= tolerance:
        return Row(name, True, f"relative error {error:.1e}")
    if not wrong.any():
        return Row(name, False, f"relative error {error:.1e}, at most {tolerance:g} is right")
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Row(name, False, f"{wrong.sum()} of {wrong.size} elements are wrong, the first at {first}: "
               f"{got[first]:.4g}, and {want[first]:.4g} is right")  # fmt: skip
