"""Single instructions against references in plain Python integers and floats, lane by lane.

All instructions of a table are assembled into one kernel; each leaves its result in v20, and the results
are stored row after row.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tilelab.emulate.gfx942 import run
from tilelab.errors import TileError

MASK = 0xFFFFFFFF
EDGES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0x40490FDB, 0x00FF00FF, 0xC0000000]


@dataclass(frozen=True)
class Case:
    """Assembler whose sources are v2, v3, v4 (a, b, c) and s20, s21, and what v20 must hold."""

    text: str
    wanted: Callable[..., int]


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def f32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits & MASK))[0]


def f16(bits: int) -> float:
    return struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]


def from_f32(x: float) -> int:
    with np.errstate(over="ignore"):
        return int(np.array(x, np.float64).astype(np.float32).view(np.uint32))


def from_f16(x: float) -> int:
    with np.errstate(over="ignore"):
        return int(np.array(x, np.float64).astype(np.float16).view(np.uint16))


def reverse(x: int) -> int:
    return int(f"{x:032b}"[::-1], 2)


def first_one(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else -1


def permute(a: int, b: int, selector: int) -> int:
    data = (a << 32 | b).to_bytes(8, "little")
    out = 0
    for place in range(4):
        code = selector >> 8 * place & 0xFF
        if code < 8:
            byte = data[code]
        elif code < 12:
            byte = 0xFF if data[2 * (code - 8) + 1] & 0x80 else 0
        else:
            byte = 0 if code == 12 else 0xFF
        out |= byte << 8 * place
    return out


def field(a: int, offset: int, width: int) -> int:
    return a >> (offset & 31) & (1 << (width & 31)) - 1


def signed_field(a: int, offset: int, width: int) -> int:
    width &= 31
    return signed(signed(a) >> (offset & 31), width) if width else 0


INTEGERS = [
    Case("v_add_u32 v20, v2, v3", lambda a, b, c: a + b),
    Case("v_sub_u32 v20, v2, v3", lambda a, b, c: a - b),
    Case("v_subrev_u32 v20, v2, v3", lambda a, b, c: b - a),
    Case("v_add_u32_e64 v20, v2, v3 clamp", lambda a, b, c: min(a + b, MASK)),
    Case("v_sub_u32_e64 v20, v2, v3 clamp", lambda a, b, c: max(a - b, 0)),
    Case("v_add3_u32 v20, v2, v3, v4", lambda a, b, c: a + b + c),
    Case("v_mul_lo_u32 v20, v2, v3", lambda a, b, c: a * b),
    Case("v_mul_hi_u32 v20, v2, v3", lambda a, b, c: a * b >> 32),
    Case("v_mul_hi_i32 v20, v2, v3", lambda a, b, c: signed(a) * signed(b) >> 32),
    Case("v_mul_u32_u24 v20, v2, v3", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    Case("v_mul_i32_i24 v20, v2, v3", lambda a, b, c: signed(a, 24) * signed(b, 24)),
    Case("v_mad_u32_u24 v20, v2, v3, v4", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    Case("v_and_or_b32 v20, v2, v3, v4", lambda a, b, c: a & b | c),
    Case("v_or3_b32 v20, v2, v3, v4", lambda a, b, c: a | b | c),
    Case("v_xor_b32 v20, v2, v3", lambda a, b, c: a ^ b),
    Case("v_xnor_b32 v20, v2, v3", lambda a, b, c: ~(a ^ b)),
    Case("v_not_b32 v20, v2", lambda a, b, c: ~a),
    Case("v_xad_u32 v20, v2, v3, v4", lambda a, b, c: (a ^ b) + c),
    Case("v_lshlrev_b32 v20, v2, v3", lambda a, b, c: b << (a & 31)),
    Case("v_lshrrev_b32 v20, v2, v3", lambda a, b, c: b >> (a & 31)),
    Case("v_ashrrev_i32 v20, v2, v3", lambda a, b, c: signed(b) >> (a & 31)),
    Case("v_lshl_add_u32 v20, v2, v3, v4", lambda a, b, c: (a << (b & 31)) + c),
    Case("v_add_lshl_u32 v20, v2, v3, v4", lambda a, b, c: ((a + b) & MASK) << (c & 31)),
    Case("v_lshl_or_b32 v20, v2, v3, v4", lambda a, b, c: a << (b & 31) | c),
    Case("v_bfi_b32 v20, v2, v3, v4", lambda a, b, c: a & b | ~a & c),
    Case("v_bfe_u32 v20, v2, v3, v4", field),
    Case("v_bfe_i32 v20, v2, v3, v4", signed_field),
    Case("v_bfm_b32 v20, v2, v3", lambda a, b, c: ((1 << (a & 31)) - 1) << (b & 31)),
    Case("v_bfrev_b32 v20, v2", lambda a, b, c: reverse(a)),
    Case("v_bcnt_u32_b32 v20, v2, v3", lambda a, b, c: bin(a).count("1") + b),
    Case("v_ffbh_u32 v20, v2", lambda a, b, c: 32 - a.bit_length() if a else -1),
    Case("v_ffbl_b32 v20, v2", lambda a, b, c: first_one(a)),
    Case("v_perm_b32 v20, v2, v3, v4", permute),
    Case("v_alignbit_b32 v20, v2, v3, v4", lambda a, b, c: (a << 32 | b) >> (c & 31)),
    Case("v_alignbyte_b32 v20, v2, v3, v4", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3)),
    Case("v_min_i32 v20, v2, v3", lambda a, b, c: min(signed(a), signed(b))),
    Case("v_max_u32 v20, v2, v3", lambda a, b, c: max(a, b)),
    Case("v_med3_i32 v20, v2, v3, v4", lambda a, b, c: sorted((signed(a), signed(b), signed(c)))[1]),
    Case("v_max3_u32 v20, v2, v3, v4", lambda a, b, c: max(a, b, c)),
    Case("v_min3_i32 v20, v2, v3, v4", lambda a, b, c: min(signed(a), signed(b), signed(c))),
    Case("v_add_u16 v20, v2, v3", lambda a, b, c: (a + b) & 0xFFFF),
    Case("v_mul_lo_u16 v20, v2, v3", lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) & 0xFFFF),
    Case("v_lshlrev_b16 v20, v2, v3", lambda a, b, c: (b & 0xFFFF) << (a & 15) & 0xFFFF),
    Case(
        "v_pk_add_u16 v20, v2, v3", lambda a, b, c: (a + b) & 0xFFFF | ((a >> 16) + (b >> 16) & 0xFFFF) << 16
    ),
    Case(
        "v_pk_add_u16 v20, v2, v3 op_sel:[1,0] op_sel_hi:[0,0]",
        lambda a, b, c: (a >> 16) + b & 0xFFFF | (a + b & 0xFFFF) << 16,
    ),
    Case("v_cndmask_b32 v20, v2, v3, s[22:23]", lambda a, b, c, lane: b if lane % 3 == 0 else a),
    Case(
        "v_mbcnt_lo_u32_b32 v20, v2, 7",
        lambda a, b, c, lane: bin(a & (1 << min(lane, 32)) - 1).count("1") + 7,
    ),
    Case(
        "v_mbcnt_hi_u32_b32 v20, v2, 7",
        lambda a, b, c, lane: bin(a & (1 << max(lane - 32, 0)) - 1).count("1") + 7,
    ),
    Case(
        "v_add_co_u32 v20, s[24:25], v2, v3\n v_addc_co_u32 v20, s[24:25], v4, 0, s[24:25]",
        lambda a, b, c: c + (a + b >> 32),
    ),
    Case(
        "v_sub_co_u32 v20, vcc, v2, v3\n v_subb_co_u32 v20, vcc, v4, v2, vcc", lambda a, b, c: c - a - (a < b)
    ),
    Case(
        "v_mad_u64_u32 v[20:21], s[24:25], v2, v3, v[4:5]\n v_mov_b32 v20, v21",
        lambda a, b, c, d: a * b + (d << 32 | c) >> 32,
    ),
    Case(
        "v_lshl_add_u64 v[20:21], v[2:3], 3, v[4:5]\n v_mov_b32 v20, v21",
        lambda a, b, c, d: ((b << 32 | a) << 3) + (d << 32 | c) >> 32,
    ),
    Case("v_lshrrev_b64 v[20:21], v4, v[2:3]", lambda a, b, c: (b << 32 | a) >> (c & 63)),
    Case("v_cmp_lt_i32 vcc, v2, v3\n v_cndmask_b32 v20, 0, 1, vcc", lambda a, b, c: signed(a) < signed(b)),
    Case("v_cmp_ge_u32 s[24:25], v2, v3\n v_cndmask_b32 v20, 0, 1, s[24:25]", lambda a, b, c: a >= b),
    Case(
        "v_mov_b32 v9, v2\n v_mov_b32 v20, v3\n v_swap_b32 v9, v20\n v_sub_u32 v20, v9, v20",
        lambda a, b, c: b - a,
    ),
]
SELECTIONS = [
    Case(
        "v_mov_b32_sdwa v20, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2",
        lambda a, b, c: a >> 16 & 0xFF,
    ),
    Case(
        "v_add_u32_sdwa v20, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_0",
        lambda a, b, c: (a >> 16) + (b & 0xFF),
    ),
    Case(
        "v_mov_b32 v20, v4\n v_or_b32_sdwa v20, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
        "src0_sel:WORD_0 src1_sel:WORD_1",
        lambda a, b, c: c & 0xFFFF | (a & 0xFFFF | b >> 16) << 16,
    ),
]


def lane_case(modifiers: str, source: Callable[[int], int | None]) -> tuple[str, Callable[[int], int | None]]:
    return f"v_mov_b32 v20, v4\n s_nop 1\n v_mov_b32_dpp v20, v2 {modifiers}", source


LANE_MOVES = [
    lane_case("quad_perm:[3,0,1,2] row_mask:0xf bank_mask:0xf", lambda i: i & ~3 | [3, 0, 1, 2][i & 3]),
    lane_case("row_shl:3 row_mask:0xf bank_mask:0xf", lambda i: i + 3 if i % 16 < 13 else None),
    lane_case("row_shr:2 row_mask:0xf bank_mask:0xf", lambda i: i - 2 if i % 16 >= 2 else None),
    lane_case("row_ror:5 row_mask:0xf bank_mask:0xf", lambda i: i & ~15 | (i - 5) & 15),
    lane_case("row_mirror row_mask:0xf bank_mask:0xf", lambda i: i & ~15 | 15 - i % 16),
    lane_case("row_half_mirror row_mask:0xf bank_mask:0xf", lambda i: i & ~7 | 7 - i % 8),
    lane_case("row_newbcast:6 row_mask:0xf bank_mask:0xf", lambda i: i & ~15 | 6),
    lane_case("row_bcast:15 row_mask:0xf bank_mask:0xf", lambda i: (i & ~15) - 1 if i >= 16 else None),
    lane_case("row_bcast:31 row_mask:0xf bank_mask:0xf", lambda i: 31 if i >= 32 else None),
    lane_case("wave_shr:1 row_mask:0xf bank_mask:0xf", lambda i: i - 1 if i else None),
    lane_case(
        "row_mirror row_mask:0x5 bank_mask:0xf", lambda i: 2 * (i & ~15) + 15 - i if i & 16 == 0 else None
    ),
    lane_case("row_ror:1 row_mask:0xf bank_mask:0x2", lambda i: i - 1 if i % 16 // 4 == 1 else None),
    (
        "v_lshlrev_b32 v9, 2, v7\n ds_bpermute_b32 v20, v9, v2\n s_waitcnt lgkmcnt(0)",
        lambda i: (i * 7 + 3) % 64,
    ),
    ("ds_swizzle_b32 v20, v2 offset:swizzle(SWAP,8)\n s_waitcnt lgkmcnt(0)", lambda i: i ^ 8),
    ("ds_swizzle_b32 v20, v2 offset:swizzle(REVERSE,4)\n s_waitcnt lgkmcnt(0)", lambda i: i & ~3 | 3 - i % 4),
    ("ds_swizzle_b32 v20, v2 offset:swizzle(BROADCAST,8,5)\n s_waitcnt lgkmcnt(0)", lambda i: i & ~7 | 5),
    (
        "ds_swizzle_b32 v20, v2 offset:swizzle(QUAD_PERM,1,1,3,0)\n s_waitcnt lgkmcnt(0)",
        lambda i: i & ~3 | [1, 1, 3, 0][i & 3],
    ),
    (
        'ds_swizzle_b32 v20, v2 offset:swizzle(BITMASK_PERM,"01pip")\n s_waitcnt lgkmcnt(0)',
        lambda i: i & 32 | 8 | i & 5 | ~i & 2,
    ),
    ("v_readlane_b32 s24, v2, 37\n v_mov_b32 v20, s24", lambda i: 37),
    ("v_readfirstlane_b32 s24, v2\n v_mov_b32 v20, s24", lambda i: 0),
]
FLOATS = [
    Case("v_add_f32 v20, v2, v3", lambda a, b, c: a + b),
    Case("v_sub_f32 v20, v2, v3", lambda a, b, c: a - b),
    Case("v_mul_f32_e64 v20, -v2, |v3|", lambda a, b, c: -a * abs(b)),
    Case("v_fma_f32 v20, v2, v3, v4", lambda a, b, c: a * b + c),
    Case("v_mov_b32 v20, v4\n v_fmac_f32 v20, v2, v3", lambda a, b, c: a * b + c),
    Case("v_max_f32 v20, v2, v3", lambda a, b, c: max(a, b)),
    Case("v_med3_f32 v20, v2, v3, v4", lambda a, b, c: sorted((a, b, c))[1]),
    Case("v_mul_f32_e64 v20, v2, v3 clamp", lambda a, b, c: min(max(a * b, 0), 1)),
    Case("v_add_f32_e64 v20, v2, v3 mul:4", lambda a, b, c: 4 * (a + b)),
    Case("v_add_f32_e64 v20, v2, v3 div:2", lambda a, b, c: (a + b) / 2),
    Case("v_mul_f32 v20, 0.15915494, v2", lambda a, b, c: a * f32(0x3E22F983)),
    Case("v_floor_f32 v20, v2", lambda a, b, c: math.floor(a)),
    Case("v_rndne_f32 v20, v2", lambda a, b, c: round(a)),
    Case("v_exp_f32 v20, v2", lambda a, b, c: 2**a),
    Case("v_rcp_f32 v20, v2", lambda a, b, c: 1 / a),
    Case("v_rsq_f32_e64 v20, |v2|", lambda a, b, c: abs(a) ** -0.5),
    Case("v_sin_f32 v20, v2", lambda a, b, c: math.sin(2 * math.pi * a)),
    Case("v_ldexp_f32 v20, v2, 3", lambda a, b, c: a * 8),
    Case("v_pk_fma_f32 v[20:21], v[2:3], v[4:5], v[2:3]", lambda a, b, c, d: a * c + a),
    Case("v_pk_mul_f32 v[20:21], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]", lambda a, b, c, d: b * c),
    Case(
        "v_pk_mul_f32 v[20:21], v[2:3], v[4:5] op_sel_hi:[0,1]\n v_mov_b32 v20, v21", lambda a, b, c, d: a * d
    ),
    Case(
        "v_pk_mov_b32 v[20:21], v[2:3], v[4:5] op_sel:[1,0]\n v_add_f32 v20, v20, v21",
        lambda a, b, c, d: b + c,
    ),
    Case(
        "v_cvt_f64_f32 v[8:9], v2\n v_cvt_f64_f32 v[14:15], v3\n v_fma_f64 v[8:9], v[8:9], v[14:15], 1.0\n"
        " v_cvt_f32_f64 v20, v[8:9]",
        lambda a, b, c: a * b + 1,
    ),
    Case("v_cvt_i32_f32 v20, v2\n v_cvt_f32_i32 v20, v20", lambda a, b, c: math.trunc(a)),
    Case("v_cvt_f16_f32 v20, v2\n v_cvt_f32_f16 v20, v20", lambda a, b, c: f16(from_f16(a))),
    Case(
        "v_cvt_pkrtz_f16_f32 v20, v2, v3\n v_cvt_f32_f16_sdwa v20, v20 dst_sel:DWORD dst_unused:UNUSED_PAD "
        "src0_sel:WORD_1",
        lambda a, b, c: truncated_to_f16(b),
    ),
    Case(
        "v_cvt_pkrtz_f16_f32 v9, v2, v3\n v_fma_mix_f32 v20, v9, v9, v4 op_sel:[0,1,0] op_sel_hi:[1,1,0]",
        lambda a, b, c: truncated_to_f16(a) * truncated_to_f16(b) + c,
    ),
    Case(
        "v_cvt_pkrtz_f16_f32 v9, v2, v3\n v_dot2_f32_f16 v20, v9, v9, v4",
        lambda a, b, c: truncated_to_f16(a) ** 2 + truncated_to_f16(b) ** 2 + c,
    ),
    Case(
        "v_div_scale_f32 v9, s[24:25], v3, v3, v2\n v_rcp_f32 v8, v9\n v_div_scale_f32 v15, vcc, v2, v3, v2\n"
        " v_fma_f32 v13, -v9, v8, 1.0\n v_fma_f32 v8, v13, v8, v8\n v_mul_f32 v13, v15, v8\n"
        " v_fma_f32 v14, -v9, v13, v15\n v_fma_f32 v13, v14, v8, v13\n v_fma_f32 v9, -v9, v13, v15\n"
        " v_div_fmas_f32 v9, v9, v8, v13\n v_div_fixup_f32 v20, v9, v3, v2",
        lambda a, b, c: a / b,
    ),
]


def truncated_to_f16(x: float) -> float:
    nearest = np.float16(x)
    if abs(float(nearest)) > abs(x):
        nearest = np.nextafter(nearest, np.float16(0))
    return float(nearest)


SCALARS = [
    Case("s_add_u32 s24, s20, s21\n s_addc_u32 s24, s20, 5", lambda x, y: x + 5 + (x + y >> 32)),
    Case("s_sub_u32 s24, s20, s21\n s_subb_u32 s24, s20, 5", lambda x, y: x - 5 - (x < y)),
    Case(
        "s_add_i32 s24, s20, s21\n s_cselect_b32 s24, 1, 0",
        lambda x, y: not -(2**31) <= signed(x) + signed(y) < 2**31,
    ),
    Case("s_mul_i32 s24, s20, s21", lambda x, y: x * y),
    Case("s_mul_hi_u32 s24, s20, s21", lambda x, y: x * y >> 32),
    Case("s_mul_hi_i32 s24, s20, s21", lambda x, y: signed(x) * signed(y) >> 32),
    Case("s_lshl_b32 s24, s20, 7", lambda x, y: x << 7),
    Case("s_ashr_i32 s24, s20, 7", lambda x, y: signed(x) >> 7),
    Case("s_lshr_b64 s[24:25], s[20:21], 12", lambda x, y: (y << 32 | x) >> 12),
    Case("s_ashr_i64 s[24:25], s[20:21], 40", lambda x, y: signed(y << 32 | x, 64) >> 40),
    Case("s_bfe_u32 s24, s20, 0x80004", lambda x, y: x >> 4 & 0xFF),
    Case("s_bfe_i32 s24, s20, 0x80004", lambda x, y: signed(x >> 4, 8)),
    Case("s_bfm_b32 s24, 5, 3", lambda x, y: 0b11111000),
    Case("s_andn2_b32 s24, s20, s21", lambda x, y: x & ~y),
    Case("s_nor_b32 s24, s20, s21", lambda x, y: ~(x | y)),
    Case("s_xnor_b64 s[24:25], s[20:21], s[20:21]", lambda x, y: MASK),
    Case("s_min_i32 s24, s20, s21", lambda x, y: min(signed(x), signed(y))),
    Case("s_max_u32 s24, s20, s21\n s_cselect_b32 s24, 3, 4", lambda x, y: 3 if x >= y else 4),
    Case("s_cmp_lt_i32 s20, s21\n s_cselect_b32 s24, 1, 0", lambda x, y: signed(x) < signed(y)),
    Case("s_cmp_eq_u64 s[20:21], s[20:21]\n s_cselect_b32 s24, 1, 0", lambda x, y: 1),
    Case("s_bitcmp1_b32 s20, 4\n s_cselect_b32 s24, 1, 0", lambda x, y: x >> 4 & 1),
    Case("s_bcnt1_i32_b32 s24, s20", lambda x, y: bin(x).count("1")),
    Case("s_bcnt1_i32_b64 s24, s[20:21]", lambda x, y: bin(y << 32 | x).count("1")),
    Case("s_ff1_i32_b32 s24, s20", lambda x, y: first_one(x)),
    Case("s_ff1_i32_b64 s24, s[20:21]", lambda x, y: first_one(y << 32 | x)),
    Case("s_flbit_i32_b32 s24, s20", lambda x, y: 32 - x.bit_length() if x else -1),
    Case("s_flbit_i32_b64 s24, s[20:21]", lambda x, y: 64 - (y << 32 | x).bit_length() if x or y else -1),
    Case("s_brev_b32 s24, s20", lambda x, y: reverse(x)),
    Case("s_sext_i32_i16 s24, s20", lambda x, y: signed(x, 16)),
    Case("s_sext_i32_i8 s24, s20", lambda x, y: signed(x, 8)),
    Case("s_pack_ll_b32_b16 s24, s20, s21", lambda x, y: x & 0xFFFF | y << 16),
    Case("s_pack_lh_b32_b16 s24, s20, s21", lambda x, y: x & 0xFFFF | y & 0xFFFF0000),
    Case("s_pack_hh_b32_b16 s24, s20, s21", lambda x, y: x >> 16 | y & 0xFFFF0000),
    Case("s_lshl3_add_u32 s24, s20, s21", lambda x, y: (x << 3) + y),
    Case("s_abs_i32 s24, s20", lambda x, y: abs(signed(x))),
    Case("s_mov_b32 s24, s21\n s_bitset1_b32 s24, 9\n s_bitset0_b32 s24, 0", lambda x, y: (y | 512) & ~1),
    Case("s_movk_i32 s24, -5", lambda x, y: -5),
    Case("s_mov_b32 s24, s20\n s_addk_i32 s24, 0x7fff", lambda x, y: x + 0x7FFF),
    Case("s_mov_b32 s24, s20\n s_mulk_i32 s24, 77", lambda x, y: x * 77),
    Case("s_cmp_eq_u32 s20, s21\n s_mov_b32 s24, s20\n s_cmov_b32 s24, 9", lambda x, y: 9 if x == y else x),
    Case(
        "s_mov_b64 s[30:31], exec\n s_and_saveexec_b64 s[24:25], s[20:21]\n s_mov_b64 s[26:27], exec\n"
        " s_mov_b64 exec, s[30:31]\n s_mov_b32 s24, s26",
        lambda x, y: x,
    ),
    Case("s_getpc_b64 s[24:25]\n s_getpc_b64 s[26:27]\n s_sub_u32 s24, s26, s24", lambda x, y: 4),
]


def kernel_of(texts: list[str], before: str = "") -> str:
    """All instructions one after the other; the row of 64 results of each is stored behind the one before."""
    parts = ["  v_lshlrev_b32 v12, 2, v0", before]
    for text in texts:
        parts.append(f"  {text}\n  global_store_dword v12, v20, s[10:11]\n")
        parts.append("  s_add_u32 s10, s10, 0x100\n  s_addc_u32 s11, s11, 0\n")
    return "\n".join(parts)


def results_of(assemble, texts: list[str], inputs: np.ndarray, before: str = "") -> np.ndarray:
    source = np.zeros((64, 4), np.uint32)
    source[:] = inputs.view(np.uint32)
    # the kernel's own last store writes 512 bytes more
    target = np.zeros((len(texts) + 2, 64), np.uint32)
    run(assemble(kernel_of(texts, before)), "snippet", (1, 1, 1), (64, 1, 1), [source, target])
    return target[: len(texts)]


def random_words() -> np.ndarray:
    words = np.random.default_rng(0).integers(0, 1 << 32, (64, 4), dtype=np.uint64).astype(np.uint32)
    words[: len(EDGES), 0], words[: len(EDGES), 1], words[: len(EDGES), 2] = (
        EDGES,
        EDGES[::-1],
        EDGES[3:] + EDGES[:3],
    )
    # selectors of v_perm_b32 in every class
    words[40:52, 2] = [0x01020304, 0x0C0D0007, 0x08090A0B, 0x00000000, *range(8)]
    return words


def call(wanted: Callable, row: list, lane: int = 0) -> int:
    """The reference with the lane's inputs by name: a to d for v2 to v5, and `lane` for its number."""
    names = wanted.__code__.co_varnames[: wanted.__code__.co_argcount]
    if wanted in (permute, field, signed_field):
        return wanted(*row[:3])
    values = dict(zip("abcd", row, strict=True)) | {"lane": lane}
    return wanted(*[values[name] for name in names])


@pytest.mark.parametrize("cases", [INTEGERS, SELECTIONS], ids=["integers", "selections"])
def test_integer_instructions(assemble, cases):
    inputs = random_words()
    mask = sum(1 << lane for lane in range(64) if lane % 3 == 0)
    before = f"  s_mov_b32 s22, {mask & MASK:#x}\n  s_mov_b32 s23, {mask >> 32:#x}\n"
    found = results_of(assemble, [c.text for c in cases], inputs, before)
    for case, lanes in zip(cases, found, strict=True):
        wanted = [call(case.wanted, row, lane) & MASK for lane, row in enumerate(inputs.tolist())]
        assert lanes.tolist() == wanted, case.text


def test_lane_moves(assemble):
    inputs = random_words()
    before = "  v_mul_u32_u24 v7, 7, v0\n  v_add_u32 v7, 3, v7\n"
    found = results_of(assemble, [text for text, _ in LANE_MOVES], inputs, before)
    for (text, source), lanes in zip(LANE_MOVES, found, strict=True):
        wanted = [
            int(inputs[lane, 2] if (at := source(lane)) is None else inputs[at, 0]) for lane in range(64)
        ]
        assert lanes.tolist() == wanted, text


def test_float_instructions(assemble):
    inputs = (np.random.default_rng(1).standard_normal((64, 4)) * 3).astype(np.float32)
    found = results_of(assemble, [c.text for c in FLOATS], inputs).view(np.float32)
    for case, lanes in zip(FLOATS, found, strict=True):
        wanted = [call(case.wanted, row) for row in inputs.astype(np.float64).tolist()]
        # one rounding of the result, and 1 ulp where the hardware promises no more
        np.testing.assert_allclose(lanes, wanted, rtol=2.5e-7, atol=1e-6, err_msg=case.text)


@pytest.mark.parametrize(
    ("x", "y"),
    [(0, 0), (1, MASK), (0x7FFFFFFF, 1), (0x80000000, 0x80000000), (0x12345678, 0x9ABCDEF0), (5, 5)],
)
def test_scalar_instructions(assemble, x, y):
    before = f"  s_mov_b32 s20, {x:#x}\n  s_mov_b32 s21, {y:#x}\n"
    texts = [f"{c.text}\n  v_mov_b32 v20, s24" for c in SCALARS]
    found = results_of(assemble, texts, random_words(), before)
    for case, lanes in zip(SCALARS, found, strict=True):
        assert lanes[0] == case.wanted(x, y) & MASK, case.text
        assert (lanes == lanes[0]).all()


def test_division_handles_its_special_cases(assemble):
    division = next(c for c in FLOATS if "div_fixup" in c.text)
    pairs = [
        (0, 0),
        (1, 0),
        (-1, 0),
        (0, -3),
        (np.inf, 2),
        (2, -np.inf),
        (np.inf, np.inf),
        (np.nan, 1),
        (7, 7),
    ]
    inputs = np.ones((64, 4), np.float32)
    inputs[: len(pairs), :2] = pairs
    (found,) = results_of(assemble, [division.text], inputs).view(np.float32)
    with np.errstate(all="ignore"):
        wanted = inputs[:, 0] / inputs[:, 1]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(wanted)]))


def test_inactive_lanes_keep_their_registers(assemble):
    body = (
        "v_mov_b32 v20, v3\n s_mov_b64 s[24:25], exec\n s_mov_b32 exec_lo, 0xffff\n s_mov_b32 exec_hi, 0\n"
        " v_mov_b32 v20, v2\n s_mov_b64 exec, s[24:25]"
    )
    inputs = random_words()
    (found,) = results_of(assemble, [body], inputs)
    np.testing.assert_array_equal(found, np.where(np.arange(64) < 16, inputs[:, 0], inputs[:, 1]))


def test_divergent_branch_runs_both_sides_and_merges(assemble):
    body = (
        "v_cmp_gt_u32 vcc, 20, v0\n v_mov_b32 v20, 7\n s_and_saveexec_b64 s[24:25], vcc\n"
        " s_cbranch_execz .Lelse\n"
        " v_mov_b32 v20, 1\n.Lelse:\n s_andn2_b64 exec, s[24:25], exec\n v_mov_b32 v20, 2\n"
        " s_mov_b64 exec, s[24:25]"
    )
    (found,) = results_of(assemble, [body], random_words())
    np.testing.assert_array_equal(found, np.where(np.arange(64) < 20, 1, 2))


@pytest.mark.parametrize("counter", ["vmcnt(1)", "vmcnt(0)"])
def test_partial_wait_covers_the_older_load_only(assemble, counter):
    body = (
        "  global_load_dword v20, v10, s[8:9]\n  global_load_dword v21, v10, s[8:9] offset:4\n"
        f"  s_waitcnt {counter}\n"
        "  v_mov_b32 v6, v20\n  v_mov_b32 v7, v21\n"
    )
    code = assemble(body)
    arrays = [random_words(), np.zeros((64, 2), np.uint32)]
    if counter == "vmcnt(0)":
        run(code, "snippet", (1, 1, 1), (64, 1, 1), arrays)
        np.testing.assert_array_equal(arrays[1], arrays[0][:, :2])
        return
    with pytest.raises(TileError, match="v21 is read before its load has arrived"):
        run(code, "snippet", (1, 1, 1), (64, 1, 1), arrays)


def test_scalar_loads_need_a_wait_for_all_of_them(assemble):
    body = (
        "  s_load_dword s24, s[8:9], 0x0\n  ds_bpermute_b32 v20, v2, v2\n  s_waitcnt lgkmcnt(1)\n"
        "  v_mov_b32 v6, s24\n"
    )
    arrays = [random_words(), np.zeros((64, 2), np.uint32)]
    with pytest.raises(TileError, match="s24 is read before its load has arrived"):
        run(assemble(body), "snippet", (1, 1, 1), (64, 1, 1), arrays)


def test_overwriting_the_target_of_a_load_is_a_hazard(assemble):
    body = "  global_load_dword v20, v10, s[8:9]\n  v_mov_b32 v20, 0\n"
    arrays = [random_words(), np.zeros((64, 2), np.uint32)]
    with pytest.raises(TileError, match="v20 is overwritten before its load has arrived"):
        run(assemble(body), "snippet", (1, 1, 1), (64, 1, 1), arrays)
