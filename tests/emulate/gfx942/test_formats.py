"""Number formats: FNUZ bytes, xf32 and bit tricks against definitions written out here."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.emulate.gfx942.formats import (
    BF8,
    FP8,
    encode_fnuz,
    reverse_bits,
    round_to_xf32,
    truncate_to_float16,
)


@pytest.mark.parametrize(("values", "largest"), [(FP8, 240.0), (BF8, 57344.0)])
def test_fnuz_has_one_nan_one_zero_and_no_infinity(values, largest):
    assert np.flatnonzero(np.isnan(values)).tolist() == [0x80]
    assert np.flatnonzero(values == 0).tolist() == [0]
    assert np.nanmax(np.abs(values)) == largest
    assert (np.diff(values[:128]) > 0).all()


def ocp_e4m3(code: int) -> float:
    exponent, mantissa = code >> 3 & 15, code & 7
    size = mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -size if code >> 7 else size


def test_fnuz_byte_is_half_of_the_ocp_byte():
    codes = [c for c in range(256) if c not in (0x7F, 0x80, 0xFF)]
    np.testing.assert_array_equal(FP8[codes], [ocp_e4m3(c) / 2 for c in codes])


@pytest.mark.parametrize("values", [FP8, BF8])
def test_encoding_a_value_gives_its_code(values):
    codes = np.array([c for c in range(256) if c != 0x80])
    np.testing.assert_array_equal(encode_fnuz(values[codes], values), codes)


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (0.0, 0x00),
        (-0.0, 0x00),
        (247.9, 0x7F),  # below the tie with the value that would follow 240
        (248.0, 0x80),
        (1e30, 0x80),
        (-np.inf, 0x80),
        (np.nan, 0x80),
        (2.0**-11, 0x00),  # the tie between zero and the least value goes to zero
        (1.5 * 2.0**-10, 0x02),
        (17.0, 0x60),  # ties between 16 and 18
        (19.0, 0x62),
    ],
)
def test_encoding_at_the_edges(x, code):
    assert encode_fnuz(np.array([x], np.float32), FP8)[0] == code


def test_xf32_keeps_ten_mantissa_bits_to_nearest_even():
    x = np.array([1.0, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-10, 1 + 1.5 * 2.0**-10, -3.3], np.float32)
    found = round_to_xf32(x.view(np.uint32))
    wanted = np.rint(x.astype(np.float64) / 2.0 ** (np.floor(np.log2(np.abs(x))) - 10))
    np.testing.assert_array_equal(found, wanted * 2.0 ** (np.floor(np.log2(np.abs(x))) - 10))


def test_truncation_to_float16_never_grows():
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32) * 100
    found = truncate_to_float16(x).astype(np.uint16).view(np.float16).astype(np.float32)
    assert (np.abs(found) <= np.abs(x)).all()
    assert (np.abs(x - found) < np.abs(x) * 2.0**-10).all()


def test_bit_reversal():
    assert reverse_bits(np.array([1, 0x80000000, 0x0000F00F], np.uint32)).tolist() == [
        0x80000000,
        1,
        0xF00F0000,
    ]
