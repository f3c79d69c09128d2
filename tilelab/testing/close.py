"""Comparison of results with a reference, in float64, with tolerances from the dtypes and the length of the
sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Tolerance", "assert_close", "relative_error", "tolerance"]

# Half a unit in the last place of 1.0: what one rounding to the dtype can be off, relatively.
_UNIT = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e4m3fnuz": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "float8_e5m2fnuz": 2.0**-3,
}


@dataclass(frozen=True)
class Tolerance:
    """How far an element may be off: by `relative` of its value plus `absolute`."""

    relative: float
    absolute: float


def tolerance(dtype: str, k: int = 1, scale: float = 1.0, accumulator: str = "float32") -> Tolerance:
    """The tolerance of a sum of `k` products kept in `accumulator` and rounded once to `dtype`.

    `scale` is the usual size of a product. Rounding to dtype allows two units; the sum, whose terms may be
    added in any order, four times √k units of the accumulator at the size that a sum of k random products
    has.
    """
    if dtype not in _UNIT:
        return Tolerance(0.0, 0.0)
    final, inner = _UNIT[dtype], _UNIT.get(accumulator, 0.0)
    size = scale * math.sqrt(max(k, 1))
    # An element near zero is the difference of large terms: it is held to the units of the sum's usual size.
    return Tolerance(2 * final, 2 * final * size * 0.05 + 4 * inner * size * math.sqrt(max(k, 1)))


def _float64(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        return value.detach().cpu().double().numpy()
    return np.asarray(value).astype(np.float64)


def _dtype_name(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def relative_error(found: Any, wanted: Any) -> float:
    """‖found − wanted‖ / ‖wanted‖ (Frobenius) in float64; ‖found‖ where `wanted` is zero."""
    a, b = _float64(found), _float64(wanted)
    size = float(np.linalg.norm(b))
    return float(np.linalg.norm(a - b)) / (size or 1.0)


def assert_close(
    found: Any, wanted: Any, *, k: int = 1, scale: float = 1.0, accumulator: str = "float32",
    allowed: Tolerance | None = None,
) -> None:  # fmt: skip
    """Raise AssertionError unless every element is within the tolerance; says how many are not, and the worst
    one.
    """
    a, b = _float64(found), _float64(wanted)
    if a.shape != b.shape:
        raise AssertionError(f"shapes differ: {a.shape} and {b.shape}")
    limit = allowed or tolerance(_dtype_name(found), k, scale, accumulator)
    with np.errstate(invalid="ignore"):  # the difference of equal infinities, which are taken as equal below
        off = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    bad = ~(same | (off <= limit.absolute + limit.relative * np.abs(b)))
    if not bad.any():
        return
    excess = np.where(bad, np.nan_to_num(off, nan=np.inf), -1.0)
    worst = np.unravel_index(int(excess.argmax()), a.shape)
    at = tuple(int(i) for i in worst)
    raise AssertionError(
        f"{int(bad.sum())} of {a.size} elements are off by more than {limit.relative:.2g} of their value + "
        f"{limit.absolute:.2g}; the worst is {at}: {a[worst]:.6g} instead of {b[worst]:.6g}"
    )
