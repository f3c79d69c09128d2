"""Number formats of gfx942 as NumPy tables and bit tricks: FNUZ fp8, bfloat16, xf32, truncating float16.

gfx942's "fp8" is e4m3 with bias 8 and greatest value 240, its "bf8" e5m2 with bias 16 and greatest value
57344; both have one zero, one NaN (0x80) and no infinity ("FNUZ"). Source: AMD Instinct MI300 ISA, sections
on FP8 and BF8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "BF8",
    "F16",
    "F32",
    "F64",
    "FP8",
    "I16",
    "I32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "Array",
    "bfloat16_to_float32",
    "encode_fnuz",
    "reverse_bits",
    "round_to_xf32",
    "truncate_to_float16",
]

Array = npt.NDArray[Any]
U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
I16, I32, I64 = np.int16, np.int32, np.int64
F16, F32, F64 = np.float16, np.float32, np.float64


def _fnuz_values(exponent_bits: int, mantissa_bits: int, bias: int) -> Array:
    """The float32 value of each of the 256 bytes of a FNUZ format."""
    values = np.zeros(256, F32)
    for byte in range(256):
        sign = -1.0 if byte >> 7 else 1.0
        exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = byte & ((1 << mantissa_bits) - 1)
        if exponent == 0:
            values[byte] = sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
        else:
            values[byte] = sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)
    values[0x80] = np.nan
    return values


FP8 = _fnuz_values(4, 3, 8)
"""float32 value of each e4m3fnuz byte."""
BF8 = _fnuz_values(5, 2, 16)
"""float32 value of each e5m2fnuz byte."""


def encode_fnuz(x: Array, values: Array) -> Array:
    """float32 to FNUZ bytes (as uint32), to nearest even; overflow, NaN and infinity become NaN (0x80)."""
    x = np.asarray(x, F32)
    positive = values[:128].astype(F64)
    magnitude = np.abs(x.astype(F64))
    # The tie above the greatest value would round to the even code after it, which is out of range.
    limit = positive[-1] + (positive[-1] - positive[-2]) / 2
    is_bad = ~np.isfinite(x) | (magnitude >= limit)
    magnitude = np.where(is_bad, 0, magnitude)
    above = np.minimum(np.searchsorted(positive, magnitude, side="left"), 127)
    below = np.maximum(above - 1, 0)
    to_below, to_above = magnitude - positive[below], positive[above] - magnitude
    even = np.where(below % 2 == 0, below, above)
    code = np.where(to_below < to_above, below, np.where(to_above < to_below, above, even))
    code = np.where(to_above == 0, above, code)
    code = code | (np.signbit(x) & (code != 0)) * 0x80
    return np.where(is_bad, 0x80, code).astype(U32)


def bfloat16_to_float32(bits: Array) -> Array:
    """bfloat16 bit patterns (uint16) as float32."""
    return (bits.astype(U32) << U32(16)).view(F32)


def round_to_xf32(bits: Array) -> Array:
    """float32 bit patterns rounded to nearest even at ten mantissa bits, as float32."""
    wide = bits.astype(U64)
    rounded = wide + U64(0xFFF) + ((wide >> U64(13)) & U64(1))
    return (rounded & U64(0xFFFFE000)).astype(U32).view(F32)


def truncate_to_float16(x: Array) -> Array:
    """float32 to float16 bit patterns (as uint32), rounded towards zero."""
    nearest = x.astype(F16)
    bits = np.ascontiguousarray(nearest).view(U16)
    went_up = np.abs(nearest.astype(F32)) > np.abs(x)
    return np.where(went_up, bits - U16(1), bits).astype(U32)


def reverse_bits(x: Array) -> Array:
    """Bit-reversed uint32."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        x = ((x >> U32(shift)) & U32(mask)) | ((x & U32(mask)) << U32(shift))
    return x
