"""Vector arithmetic as a table: mnemonic → dtypes of the sources and a function of NumPy arrays.

Shifts take their amount from the low bits, as the hardware does. A fused multiply-add is computed in
float64 and rounded once more to its type; transcendental functions are those of NumPy (the hardware's are
within 1 ulp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.formats import F16, F32, F64, I16, I32, I64, U16, U32, U64, Array, reverse_bits

__all__ = ["TABLE", "fused_multiply_add"]

Row = tuple[tuple[Any, ...], Callable[..., Array]]
_TWO_PI = 2 * np.pi


def _shift(x: Array, dtype: type = U32) -> Array:
    """A shift amount for a value of the given dtype."""
    return (x & U32(np.dtype(dtype).itemsize * 8 - 1)).astype(dtype)


def _low24(x: Array) -> Array:
    return x << x.dtype.type(8) >> x.dtype.type(8)


def _high(a: Array, b: Array, wide: Any, narrow: Any) -> Array:
    return (a.astype(wide) * b.astype(wide) >> wide(32)).astype(narrow)


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _float_median(a: Array, b: Array, c: Array) -> Array:
    has_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    middle = np.fmax(np.fmin(a, b), np.fmin(np.fmax(a, b), c))
    return np.where(has_nan, np.fmin(np.fmin(a, b), c), middle)


def _align(a: Array, b: Array, amount: Array) -> Array:
    return ((a.astype(U64) << U64(32) | b) >> amount.astype(U64) & U64(0xFFFFFFFF)).astype(U32)


def _field(a: Array, offset: Array, width: Array) -> Array:
    mask = (U64(1) << _shift(width).astype(U64)) - U64(1)
    return (a.astype(U64) >> _shift(offset).astype(U64) & mask).astype(U32)


def _signed_field(a: Array, offset: Array, width: Array) -> Array:
    bits = _shift(width).astype(I64)
    up = 64 - np.maximum(bits, 1)
    found = (a.astype(I64) >> _shift(offset).astype(I64)) << up >> up
    return np.where(bits == 0, 0, found).astype(I32)


def _select_bytes(a: Array, b: Array, selector: Array) -> Array:
    """v_perm_b32: each result byte picks one of 8 source bytes, a sign, 0x00 or 0xff."""
    data = a.astype(U64) << U64(32) | b
    out = np.zeros(np.broadcast_shapes(a.shape, b.shape, selector.shape), U64)
    for place in range(4):
        code = (selector >> U32(8 * place) & U32(0xFF)).astype(U64)
        byte = data >> np.minimum(code, U64(7)) * U64(8) & U64(0xFF)
        # codes 8 to 11 replicate the sign of byte 1, 3, 5 or 7
        sign = (data >> (np.clip(code, 8, 11) - U64(8)) * U64(16) + U64(15) & U64(1)) * U64(0xFF)
        byte = np.where(code < 8, byte, np.where(code < 12, sign, np.where(code == 12, U64(0), U64(0xFF))))
        out |= byte << U64(8 * place)
    return out.astype(U32)


def _bits(x: Array) -> Array:
    return (
        np.unpackbits(np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, 4), axis=-1)
        .sum(-1)
        .astype(U32)
    )


def _leading_zeros(x: Array) -> Array:
    # float64 holds every uint32 exactly, so frexp gives the bit length
    return np.where(x == 0, U32(0xFFFFFFFF), U32(32) - np.frexp(x.astype(F64))[1].astype(U32))


def _trailing_zeros(x: Array) -> Array:
    lowest = x & (~x + U32(1))
    return np.where(x == 0, U32(0xFFFFFFFF), np.frexp(lowest.astype(F64))[1].astype(U32) - U32(1))


def _to_integer(x: Array, low: int, high: int, dtype: Any) -> Array:
    return np.clip(np.nan_to_num(np.trunc(x.astype(F64)), nan=0.0), low, high).astype(dtype)


def _to_float16(x: Array) -> Array:
    bits = np.ascontiguousarray(x.astype(F16)).view(U16)
    return np.where(np.isnan(x), bits | U16(0x200), bits).view(F16)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a · b + c of float32 (or float16) arrays with one rounding, by way of float64."""
    return (a.astype(F64) * b + c).astype(a.dtype)


def _turn(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """v_sin_f32 and v_cos_f32 take their angle in turns."""
    return lambda x: function(x.astype(F64) * _TWO_PI).astype(F32)


_BITS: dict[str, Row] = {
    "v_mov_b32": ((U32,), lambda a: a),
    "v_mov_b64": ((U64,), lambda a: a),
    "v_accvgpr_write_b32": ((U32,), lambda a: a),
    "v_accvgpr_read_b32": ((U32,), lambda a: a),
    "v_accvgpr_mov_b32": ((U32,), lambda a: a),
    "v_not_b32": ((U32,), lambda a: ~a),
    "v_and_b32": ((U32, U32), lambda a, b: a & b),
    "v_or_b32": ((U32, U32), lambda a, b: a | b),
    "v_xor_b32": ((U32, U32), lambda a, b: a ^ b),
    "v_xnor_b32": ((U32, U32), lambda a, b: ~(a ^ b)),
    "v_and_or_b32": ((U32,) * 3, lambda a, b, c: a & b | c),
    "v_or3_b32": ((U32,) * 3, lambda a, b, c: a | b | c),
    "v_bfi_b32": ((U32,) * 3, lambda a, b, c: a & b | ~a & c),
    "v_bfe_u32": ((U32,) * 3, _field),
    "v_bfe_i32": ((I32, U32, U32), _signed_field),
    "v_bfm_b32": ((U32, U32), lambda a, b: ((U32(1) << _shift(a)) - U32(1)) << _shift(b)),
    "v_bfrev_b32": ((U32,), reverse_bits),
    "v_bcnt_u32_b32": ((U32, U32), lambda a, b: _bits(a) + b),
    "v_ffbh_u32": ((U32,), _leading_zeros),
    "v_ffbl_b32": ((U32,), _trailing_zeros),
    "v_perm_b32": ((U32,) * 3, _select_bytes),
    "v_alignbit_b32": ((U32,) * 3, lambda a, b, c: _align(a, b, c & U32(31))),
    "v_alignbyte_b32": ((U32,) * 3, lambda a, b, c: _align(a, b, (c & U32(3)) * U32(8))),
    "v_lshlrev_b32": ((U32, U32), lambda a, b: b << _shift(a)),
    "v_lshrrev_b32": ((U32, U32), lambda a, b: b >> _shift(a)),
    "v_ashrrev_i32": ((U32, I32), lambda a, b: b >> _shift(a, I32)),
    "v_lshlrev_b64": ((U32, U64), lambda a, b: b << _shift(a, U64)),
    "v_lshrrev_b64": ((U32, U64), lambda a, b: b >> _shift(a, U64)),
    "v_ashrrev_i64": ((U32, I64), lambda a, b: b >> _shift(a, I64)),
    "v_lshlrev_b16": ((U16, U16), lambda a, b: b << (a & U16(15))),
    "v_lshrrev_b16": ((U16, U16), lambda a, b: b >> (a & U16(15))),
    "v_ashrrev_i16": ((U16, I16), lambda a, b: b >> (a & U16(15)).astype(I16)),
    "v_lshl_or_b32": ((U32,) * 3, lambda a, b, c: a << _shift(b) | c),
}
_INTEGERS: dict[str, Row] = {
    "v_add_u32": ((U32, U32), lambda a, b: a + b),
    "v_sub_u32": ((U32, U32), lambda a, b: a - b),
    "v_subrev_u32": ((U32, U32), lambda a, b: b - a),
    "v_add_i32": ((U32, U32), lambda a, b: a + b),
    "v_sub_i32": ((U32, U32), lambda a, b: a - b),
    "v_add3_u32": ((U32,) * 3, lambda a, b, c: a + b + c),
    "v_xad_u32": ((U32,) * 3, lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u32": ((U32,) * 3, lambda a, b, c: (a << _shift(b)) + c),
    "v_add_lshl_u32": ((U32,) * 3, lambda a, b, c: (a + b) << _shift(c)),
    "v_lshl_add_u64": ((U64, U32, U64), lambda a, b, c: (a << _shift(b, U64)) + c),
    "v_mul_lo_u32": ((U32, U32), lambda a, b: a * b),
    "v_mul_hi_u32": ((U32, U32), lambda a, b: _high(a, b, U64, U32)),
    "v_mul_hi_i32": ((I32, I32), lambda a, b: _high(a, b, I64, I32)),
    "v_mul_u32_u24": ((U32, U32), lambda a, b: _low24(a) * _low24(b)),
    "v_mul_i32_i24": ((I32, I32), lambda a, b: _low24(a) * _low24(b)),
    "v_mul_hi_u32_u24": ((U32, U32), lambda a, b: _high(_low24(a), _low24(b), U64, U32)),
    "v_mad_u32_u24": ((U32,) * 3, lambda a, b, c: _low24(a) * _low24(b) + c),
    "v_mad_i32_i24": ((I32,) * 3, lambda a, b, c: _low24(a) * _low24(b) + c),
    "v_min_u32": ((U32, U32), np.minimum),
    "v_max_u32": ((U32, U32), np.maximum),
    "v_min_i32": ((I32, I32), np.minimum),
    "v_max_i32": ((I32, I32), np.maximum),
    "v_min3_u32": ((U32,) * 3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_u32": ((U32,) * 3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_min3_i32": ((I32,) * 3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_i32": ((I32,) * 3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_med3_u32": ((U32,) * 3, _median),
    "v_med3_i32": ((I32,) * 3, _median),
    "v_add_u16": ((U16, U16), lambda a, b: a + b),
    "v_sub_u16": ((U16, U16), lambda a, b: a - b),
    "v_subrev_u16": ((U16, U16), lambda a, b: b - a),
    "v_mul_lo_u16": ((U16, U16), lambda a, b: a * b),
    "v_mad_legacy_u16": ((U16,) * 3, lambda a, b, c: a * b + c),
    "v_min_u16": ((U16, U16), np.minimum),
    "v_max_u16": ((U16, U16), np.maximum),
    "v_min_i16": ((I16, I16), np.minimum),
    "v_max_i16": ((I16, I16), np.maximum),
}
_FLOATS: dict[str, Row] = {
    "v_add_f32": ((F32, F32), lambda a, b: a + b),
    "v_sub_f32": ((F32, F32), lambda a, b: a - b),
    "v_subrev_f32": ((F32, F32), lambda a, b: b - a),
    "v_mul_f32": ((F32, F32), lambda a, b: a * b),
    "v_max_f32": ((F32, F32), np.fmax),
    "v_min_f32": ((F32, F32), np.fmin),
    "v_max3_f32": ((F32,) * 3, lambda a, b, c: np.fmax(np.fmax(a, b), c)),
    "v_min3_f32": ((F32,) * 3, lambda a, b, c: np.fmin(np.fmin(a, b), c)),
    "v_med3_f32": ((F32,) * 3, _float_median),
    "v_fma_f32": ((F32,) * 3, fused_multiply_add),
    "v_fmaak_f32": ((F32,) * 3, fused_multiply_add),
    "v_fmamk_f32": ((F32,) * 3, fused_multiply_add),
    "v_div_fmas_f32": ((F32,) * 3, fused_multiply_add),
    "v_mad_f32": ((F32,) * 3, lambda a, b, c: a * b + c),
    "v_rcp_f32": ((F32,), lambda a: F32(1) / a),
    "v_rcp_iflag_f32": ((F32,), lambda a: F32(1) / a),
    "v_rsq_f32": ((F32,), lambda a: F32(1) / np.sqrt(a)),
    "v_sqrt_f32": ((F32,), np.sqrt),
    "v_exp_f32": ((F32,), np.exp2),
    "v_log_f32": ((F32,), np.log2),
    "v_sin_f32": ((F32,), _turn(np.sin)),
    "v_cos_f32": ((F32,), _turn(np.cos)),
    "v_floor_f32": ((F32,), np.floor),
    "v_ceil_f32": ((F32,), np.ceil),
    "v_trunc_f32": ((F32,), np.trunc),
    "v_rndne_f32": ((F32,), np.rint),
    "v_fract_f32": ((F32,), lambda a: a - np.floor(a)),
    "v_ldexp_f32": ((F32, I32), np.ldexp),
    "v_frexp_mant_f32": ((F32,), lambda a: np.frexp(a)[0]),
    "v_frexp_exp_i32_f32": ((F32,), lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(I32)),
    "v_add_f16": ((F16, F16), lambda a, b: a + b),
    "v_sub_f16": ((F16, F16), lambda a, b: a - b),
    "v_subrev_f16": ((F16, F16), lambda a, b: b - a),
    "v_mul_f16": ((F16, F16), lambda a, b: a * b),
    "v_max_f16": ((F16, F16), np.fmax),
    "v_min_f16": ((F16, F16), np.fmin),
    "v_fma_f16": ((F16,) * 3, fused_multiply_add),
    "v_rcp_f16": ((F16,), lambda a: F16(1) / a),
    "v_sqrt_f16": ((F16,), np.sqrt),
    "v_rsq_f16": ((F16,), lambda a: (F32(1) / np.sqrt(a.astype(F32))).astype(F16)),
    "v_exp_f16": ((F16,), np.exp2),
    "v_log_f16": ((F16,), np.log2),
    "v_floor_f16": ((F16,), np.floor),
    "v_rndne_f16": ((F16,), np.rint),
    "v_add_f64": ((F64, F64), lambda a, b: a + b),
    "v_mul_f64": ((F64, F64), lambda a, b: a * b),
    "v_rcp_f64": ((F64,), lambda a: 1 / a),
    "v_rsq_f64": ((F64,), lambda a: 1 / np.sqrt(a)),
    "v_sqrt_f64": ((F64,), np.sqrt),
    "v_floor_f64": ((F64,), np.floor),
    "v_ceil_f64": ((F64,), np.ceil),
    "v_trunc_f64": ((F64,), np.trunc),
    "v_rndne_f64": ((F64,), np.rint),
    "v_fract_f64": ((F64,), lambda a: a - np.floor(a)),
    "v_ldexp_f64": ((F64, I32), np.ldexp),
    "v_max_f64": ((F64, F64), np.fmax),
    "v_min_f64": ((F64, F64), np.fmin),
    # rounds twice, unlike the hardware: float64 has no wider type to go through
    "v_fma_f64": ((F64,) * 3, lambda a, b, c: a * b + c),
    "v_div_fmas_f64": ((F64,) * 3, lambda a, b, c: a * b + c),
}
_CONVERSIONS: dict[str, Row] = {
    "v_cvt_f32_i32": ((I32,), lambda a: a.astype(F32)),
    "v_cvt_f32_u32": ((U32,), lambda a: a.astype(F32)),
    "v_cvt_i32_f32": ((F32,), lambda a: _to_integer(a, -(2**31), 2**31 - 1, I32)),
    "v_cvt_u32_f32": ((F32,), lambda a: _to_integer(a, 0, 2**32 - 1, U32)),
    "v_cvt_f16_f32": ((F32,), _to_float16),
    "v_cvt_f32_f16": ((F16,), lambda a: a.astype(F32)),
    "v_cvt_f16_u16": ((U16,), lambda a: a.astype(F16)),
    "v_cvt_f16_i16": ((I16,), lambda a: a.astype(F16)),
    "v_cvt_u16_f16": ((F16,), lambda a: _to_integer(a, 0, 2**16 - 1, U16)),
    "v_cvt_i16_f16": ((F16,), lambda a: _to_integer(a, -(2**15), 2**15 - 1, I16)),
    "v_cvt_f32_ubyte0": ((U32,), lambda a: (a & U32(255)).astype(F32)),
    "v_cvt_f32_ubyte1": ((U32,), lambda a: (a >> U32(8) & U32(255)).astype(F32)),
    "v_cvt_f32_ubyte2": ((U32,), lambda a: (a >> U32(16) & U32(255)).astype(F32)),
    "v_cvt_f32_ubyte3": ((U32,), lambda a: (a >> U32(24)).astype(F32)),
    "v_cvt_f64_f32": ((F32,), lambda a: a.astype(F64)),
    "v_cvt_f32_f64": ((F64,), lambda a: a.astype(F32)),
    "v_cvt_f64_i32": ((I32,), lambda a: a.astype(F64)),
    "v_cvt_f64_u32": ((U32,), lambda a: a.astype(F64)),
    "v_cvt_i32_f64": ((F64,), lambda a: _to_integer(a, -(2**31), 2**31 - 1, I32)),
    "v_cvt_u32_f64": ((F64,), lambda a: _to_integer(a, 0, 2**32 - 1, U32)),
    "v_pack_b32_f16": ((U16, U16), lambda a, b: a.astype(U32) | b.astype(U32) << U32(16)),
}
TABLE: dict[str, Row] = _BITS | _INTEGERS | _FLOATS | _CONVERSIONS
