"""Calls in expressions: the functions by their names, on scalars and on lanes alike."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilelab.emulate.dtypes import convert, is_float, numpy_type

__all__ = ["INTRINSICS", "call_intrinsic", "maximum", "minimum", "reinterpret", "shuffle"]


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _popcount(x):
    return np.vectorize(lambda v: int(v).bit_count() if v >= 0 else (int(v) & 0xFFFFFFFF).bit_count())(x)


INTRINSICS: dict[str, Callable] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "hypot": np.hypot, "erf": _erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "fabs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.round, "nearbyint": np.rint, "fmod": np.fmod, "copysign": np.copysign,
    "fma": lambda a, b, c: a * b + c, "ldexp": lambda a, b: a * np.exp2(b), "popcount": _popcount,
}  # fmt: skip
TESTS: dict[str, Callable] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def call_intrinsic(name: str, dtype: str, *args):
    """The intrinsic's value; floats are computed in at least float32 (fma in float64) and rounded once."""
    if name in TESTS:
        result = TESTS[name](*(np.asarray(a, np.float64) for a in args))
        return result if result.ndim else bool(result)
    if not is_float(dtype):
        result = np.asarray(INTRINSICS[name](*args))
        return convert(result, dtype) if result.ndim else convert(result.item(), dtype)
    wide = np.float64 if dtype == "float64" or name == "fma" else np.float32
    result = INTRINSICS[name](*(np.asarray(a).astype(wide) for a in args))
    result = np.asarray(result).astype(numpy_type(dtype))
    return result if result.ndim else result[()]


def maximum(a, b):
    """The larger value; a NaN gives way to a number, as `fmax` does on GPUs."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.fmax(a, b)


def minimum(a, b):
    """The smaller value; a NaN gives way to a number, as `fmin` does on GPUs."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.fmin(a, b)


def reinterpret(value, old: str, new: str):
    """The same bits as another dtype; the last axis of vectors changes with the element's size."""
    data = np.ascontiguousarray(np.asarray(value, numpy_type(old)))
    if data.ndim == 0:
        out = data.reshape(1).view(numpy_type(new))[0]
        return out if is_float(new) else out.item()
    return data.view(numpy_type(new))


def shuffle(kind: str, value, amount: int, lanes: int, warp: int = 32):
    """`shuffle_xor` and `shuffle_down` over the lanes of each warp; sources outside a warp give the own
    value.
    """
    if not isinstance(value, np.ndarray):
        return value
    numbers = np.arange(lanes)
    lane = numbers % warp
    source = lane ^ amount if kind == "shuffle_xor" else lane + amount
    inside = (source < warp) & (numbers - lane + source < lanes)
    return value[np.where(inside, numbers - lane + source, numbers)]
