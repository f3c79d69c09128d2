"""dtype names taken apart: `float16x8` is eight elements of float16."""

from __future__ import annotations

import re

from tilelab.errors import InternalError
from tilelab.hardware.model import bits

__all__ = ["bytes_of", "element", "is_float", "is_small_float", "lanes"]

_VECTOR = re.compile(r"(.+?)x(\d+)")


def _split(dtype: str) -> tuple[str, int]:
    found = _VECTOR.fullmatch(dtype)
    return (found[1], int(found[2])) if found else (dtype, 1)


def element(dtype: str) -> str:
    """The dtype of one lane."""
    return _split(dtype)[0]


def lanes(dtype: str) -> int:
    """The number of lanes; 1 for a scalar."""
    return _split(dtype)[1]


def is_float(dtype: str) -> bool:
    """Whether the elements are floating-point numbers."""
    return element(dtype).startswith(("float", "bfloat"))


def is_small_float(dtype: str) -> bool:
    """Whether the elements are floats of 16 or fewer bits, which are computed in float32."""
    return is_float(dtype) and bits(element(dtype)) <= 16


def bytes_of(dtype: str) -> int:
    """Bytes of an element or a vector."""
    size = bits(element(dtype)) * lanes(dtype)
    if size % 8:
        raise InternalError(f"{dtype} is no whole number of bytes")
    return size // 8
