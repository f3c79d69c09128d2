"""dtypes by name as NumPy types, and the arithmetic of scalars and lanes that NumPy spells differently."""

from __future__ import annotations

import math
from functools import cache

import ml_dtypes
import numpy as np

__all__ = [
    "convert",
    "element",
    "is_float",
    "is_integer",
    "numpy_type",
    "truncated_divide",
    "truncated_rest",
    "wrap",
]


def element(dtype: str) -> str:
    """The dtype of one element of a vector type: float16 for float16x8."""
    head, x, lanes = dtype.rpartition("x")
    return head if x and lanes.isdigit() else dtype


@cache
def numpy_type(dtype: str) -> type:
    """The NumPy scalar type of a dtype's name."""
    name = element(dtype)
    if name == "bool":
        return np.bool_
    return getattr(np, name, None) or getattr(ml_dtypes, name)


@cache
def is_float(dtype: str) -> bool:
    """Whether the dtype is a floating-point one."""
    return element(dtype).startswith(("float", "bfloat"))


def is_integer(dtype: str) -> bool:
    """Whether the dtype is an integer, bool apart."""
    return not is_float(dtype) and element(dtype) != "bool"


def wrap(value: int, dtype: str) -> int:
    """A Python integer brought into the range of an integer dtype, as two's complement does."""
    name = element(dtype)
    signed = name.startswith("int")
    size = int(name.lstrip("uint"))
    value &= (1 << size) - 1
    return value - (1 << size) if signed and value >> (size - 1) else value


def convert(value, dtype: str):
    """A scalar or an array converted: round to nearest even, floats to integers truncated."""
    if isinstance(value, np.ndarray):
        return value != 0 if dtype == "bool" else value.astype(numpy_type(dtype))
    if dtype == "bool":
        return bool(value)
    if is_float(dtype):
        return numpy_type(dtype)(float(value))
    number = float(value)
    return wrap(int(value), dtype) if math.isfinite(number) else 0


def truncated_divide(a, b):
    """Integer division that rounds towards zero, as C does."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        quotient = np.abs(a) // np.maximum(np.abs(b), 1)
        return np.where((a < 0) != (b < 0), -quotient, quotient)
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def truncated_rest(a, b):
    """The rest of `truncated_divide`: it has the sign of a."""
    return a - truncated_divide(a, b) * b
