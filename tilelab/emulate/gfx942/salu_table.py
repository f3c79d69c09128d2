"""Scalar arithmetic as tables, by effect on SCC: mnemonic → number of sources, function of arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942.formats import I16, I32, I64, U8, U16, U32, U64, Array, reverse_bits

__all__ = ["CARRY", "COMPARE", "COUNT64", "LOGIC", "MIN_MAX", "NONZERO", "NONZERO64", "OVERFLOW", "PLAIN"]

LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "andn1": lambda a, b: ~a & b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def _field(a: Array, b: Array, *, signed: bool) -> Array:
    """Bits of `a` from b[4:0], b[22:16] of them."""
    offset, width = (b & U32(31)).astype(U64), (b >> U32(16) & U32(0x7F)).astype(U64)
    mask = (U64(1) << np.minimum(width, U64(63))) - U64(1)
    found = a.astype(U64) >> offset & mask
    if signed:
        top = found >> np.maximum(width, U64(1)) - U64(1) & U64(1)
        found = np.where((width > 0) & (top == 1), found | ~mask, found)
    return (found & U64(0xFFFFFFFF)).astype(U32)


def _signed(x: Array) -> Array:
    return x.view(I32)


def _bit_count(x: Array) -> Array:
    return np.array([int(value).bit_count() for value in x.tolist()], U32)


def _first_one(x: Array) -> Array:
    """Number of the lowest set bit, or -1."""
    return np.array([(v & -v).bit_length() - 1 for v in x.tolist()], I32).view(U32)


def _leading_zeros(x: Array) -> Array:
    """Zeros above the highest set bit, or -1."""
    bits = 8 * x.dtype.itemsize
    return np.array([bits - v.bit_length() if v else -1 for v in x.tolist()], I32).view(U32)


# name → (number of sources, function of uint32 arrays); SCC is left alone
PLAIN: dict[str, tuple[int, Callable[..., Array]]] = {
    "s_mov_b32": (1, lambda a: a),
    "s_movk_i32": (1, lambda a: a),
    "s_mul_i32": (2, lambda a, b: a * b),
    "s_mul_hi_u32": (2, lambda a, b: (a.astype(U64) * b >> U64(32)).astype(U32)),
    "s_mul_hi_i32": (2, lambda a, b: (_signed(a).astype(I64) * _signed(b) >> 32).astype(I32).view(U32)),
    "s_bfm_b32": (2, lambda a, b: ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31))),
    "s_pack_ll_b32_b16": (2, lambda a, b: a & U32(0xFFFF) | b << U32(16)),
    "s_pack_lh_b32_b16": (2, lambda a, b: a & U32(0xFFFF) | b & U32(0xFFFF0000)),
    "s_pack_hh_b32_b16": (2, lambda a, b: a >> U32(16) | b & U32(0xFFFF0000)),
    "s_sext_i32_i8": (1, lambda a: a.astype(U8).view(np.int8).astype(I32).view(U32)),
    "s_sext_i32_i16": (1, lambda a: a.astype(U16).view(I16).astype(I32).view(U32)),
    "s_ff1_i32_b32": (1, _first_one),
    "s_flbit_i32_b32": (1, _leading_zeros),
    "s_brev_b32": (1, reverse_bits),
}
# the same; SCC becomes "result is not zero"
NONZERO: dict[str, tuple[int, Callable[..., Array]]] = {
    "s_not_b32": (1, lambda a: ~a),
    "s_lshl_b32": (2, lambda a, b: a << (b & U32(31))),
    "s_lshr_b32": (2, lambda a, b: a >> (b & U32(31))),
    "s_ashr_i32": (2, lambda a, b: (_signed(a) >> (b & U32(31)).astype(I32)).view(U32)),
    "s_bcnt1_i32_b32": (1, _bit_count),
    "s_abs_i32": (1, lambda a: np.abs(_signed(a)).view(U32)),
    "s_bfe_u32": (2, lambda a, b: _field(a, b, signed=False)),
    "s_bfe_i32": (2, lambda a, b: _field(a, b, signed=True)),
}
NONZERO64: dict[str, tuple[int, Callable[..., Array]]] = {
    "s_not_b64": (1, lambda a: ~a),
    "s_lshl_b64": (2, lambda a, b: a << (b & U64(63))),
    "s_lshr_b64": (2, lambda a, b: a >> (b & U64(63))),
    "s_ashr_i64": (2, lambda a, b: (a.view(I64) >> (b & U64(63)).astype(I64)).view(U64)),
}
for _name, _function in LOGIC.items():
    NONZERO[f"s_{_name}_b32"] = (2, _function)
    NONZERO64[f"s_{_name}_b64"] = (2, _function)

# name → function of (a, b, carry in) as int64; SCC is the carry or borrow
CARRY: dict[str, Callable[[Array, Array, Array], Array]] = {
    "s_add_u32": lambda a, b, c: a + b,
    "s_addc_u32": lambda a, b, c: a + b + c,
    "s_sub_u32": lambda a, b, c: a - b,
    "s_subb_u32": lambda a, b, c: a - b - c,
}
# name → function of signed int64; SCC is signed overflow
OVERFLOW: dict[str, Callable[[Array, Array], Array]] = {
    "s_add_i32": lambda a, b: a + b,
    "s_sub_i32": lambda a, b: a - b,
    "s_addk_i32": lambda a, b: a + b,
}
MIN_MAX = {
    "s_min_i32": np.minimum,
    "s_max_i32": np.maximum,
    "s_min_u32": np.minimum,
    "s_max_u32": np.maximum,
}
# 64-bit source, 32-bit result; and whether SCC becomes "result is not zero"
COUNT64: dict[str, tuple[Callable[[Array], Array], bool]] = {
    "s_bcnt1_i32_b64": (_bit_count, True),
    "s_ff1_i32_b64": (_first_one, False),
    "s_flbit_i32_b64": (_leading_zeros, False),
}
