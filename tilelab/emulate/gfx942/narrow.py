"""Loads of 8 and 16 bits into 32-bit registers."""

from __future__ import annotations

import numpy as np

from tilelab.emulate.gfx942.formats import I16, I32, U32, Array
from tilelab.emulate.gfx942.waves import Waves

__all__ = ["extend", "merge_half"]


def extend(data: Array, is_signed: bool) -> Array:
    """uint8 or uint16 to uint32, with sign or zeros."""
    if not is_signed:
        return data.astype(U32)
    return data.view(np.int8 if data.dtype.itemsize == 1 else I16).astype(I32).view(U32)


def merge_half(w: Waves, register: int, value: Array, is_high: bool) -> Array:
    """A d16 load: the value's low 16 bits in one half of the register, the other half kept."""
    old = w.vector[register, w.selected]
    if is_high:
        return old & U32(0xFFFF) | value << U32(16)
    return old & U32(0xFFFF0000) | value & U32(0xFFFF)
