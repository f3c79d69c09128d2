"""Swizzles are permutations, agree with the hardware's addresses, and remove bank conflicts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelab.hardware import chip
from tilelab.layout import (
    Composed,
    Layout,
    Swizzle,
    blocked,
    is_bijective,
    parse,
    sectors,
    shared_tile,
    swizzle_for,
    vector_width,
    wavefronts,
    widest_swizzle,
)

# No deadline: other work on the machine must not fail a law.
unhurried = settings(deadline=None, max_examples=60)
swizzles = st.integers(0, 3).flatmap(
    lambda bits: st.builds(Swizzle, st.just(bits), st.integers(0, 4), st.integers(max(bits, 1), 5))
)


@unhurried
@given(swizzles, st.integers(0, 1 << 16))
def test_a_swizzle_undoes_itself(swizzle, offset):
    assert swizzle(swizzle(offset)) == offset


@unhurried
@given(swizzles)
def test_a_swizzle_permutes_its_period(swizzle):
    assert sorted(map(swizzle, range(swizzle.period))) == list(range(swizzle.period))


@unhurried
@given(swizzles, st.integers(0, 300), st.integers(0, 9))
def test_a_swizzle_repeats_with_its_period(swizzle, offset, times):
    assert swizzle(offset + times * swizzle.period) == swizzle(offset) + times * swizzle.period


@unhurried
@given(swizzles, st.integers(0, 64))
def test_a_swizzled_string_reads_back(swizzle, offset):
    tile = Composed(swizzle, offset, Layout(((64, 8), (64,)), ((1, 4096), (64,))))
    assert parse(str(tile)) == tile


def test_the_string_leaves_out_an_offset_of_zero():
    tile = Composed(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    assert str(tile) == "S<3,3,3>o(8,64):(64,1)"
    assert str(Composed(Swizzle(2, 4, 3), 128, tile.layout)) == "S<2,4,3>o128o(8,64):(64,1)"


def test_a_swizzle_of_overlapping_bits_is_refused():
    with pytest.raises(ValueError, match="shift"):
        Swizzle(3, 0, 2)


def test_128_bytes_of_float16_is_the_address_that_stmatrix_uses():
    """Measured kernels address chunk c of row r at r·128 + ((c ^ (r & 7)) << 4) bytes."""
    tile = shared_tile((64, 64), 16, 128)
    for row in range(64):
        for chunk in range(8):
            assert 2 * tile(row, 8 * chunk) == row * 128 + ((chunk ^ (row & 7)) << 4)


@pytest.mark.parametrize(
    ("swizzle_bytes", "bits", "text"),
    [
        (128, 16, "S<3,3,3>"),
        (64, 16, "S<2,3,3>"),
        (32, 16, "S<1,3,3>"),
        (128, 32, "S<3,2,3>"),
        (128, 8, "S<3,4,3>"),
    ],
)
def test_the_hardware_swizzle_in_elements_is_written_as_in_cute(swizzle_bytes, bits, text):
    assert str(swizzle_for(swizzle_bytes, bits)) == text


def test_256_columns_of_float16_are_four_boxes():
    assert str(blocked((64, 256), 16, 128)) == "(64,(64,4)):(64,(1,4096))"
    assert str(blocked((3, 64, 128), 16, 128)) == "(3,64,(64,2)):(8192,64,(1,4096))"
    assert str(shared_tile((128, 64), 16, 128, "mn")) == "S<3,3,3>o((64,2),64):((1,4096),64)"


@unhurried
@given(
    st.sampled_from([8, 16, 64]),
    st.sampled_from([128, 256]),
    st.sampled_from([8, 16, 32]),
    st.sampled_from([0, 32, 64, 128]),
    st.sampled_from(["k", "mn"]),
)
def test_a_shared_tile_holds_each_element_once(rows, columns, bits, swizzle_bytes, major):
    shape = (rows, columns) if major == "k" else (columns, rows)
    assert is_bijective(shared_tile(shape, bits, swizzle_bytes, major))


def test_a_tile_narrower_than_the_swizzle_is_refused_with_its_extent():
    with pytest.raises(ValueError, match="extent 32 of 16-bit elements is no multiple of 128 bytes"):
        shared_tile((64, 32), 16, 128)
    assert [widest_swizzle(extent, 16) for extent in (64, 96, 32, 16, 24)] == [128, 64, 64, 32, 0]


def column_reads(tile, column=0):
    """What ldmatrix does for one 8 × 8 matrix, four times: 32 rows, 16 bytes each, at one column."""
    return [2 * tile(row, column) for row in range(32)]


@pytest.mark.parametrize(("swizzle_bytes", "cycles"), [(0, 32), (128, 4)])
def test_a_column_of_rows_of_128_bytes_conflicts_eightfold_unless_swizzled(swizzle_bytes, cycles):
    tile = shared_tile((64, 64), 16, swizzle_bytes)
    assert wavefronts(column_reads(tile), 16, chip("sm_90a").reads) == (cycles, 4)


@pytest.mark.parametrize(("columns", "swizzle_bytes"), [(64, 128), (32, 64), (16, 32)])
def test_every_swizzle_frees_its_own_width_of_conflicts(columns, swizzle_bytes):
    tile = shared_tile((64, columns), 16, swizzle_bytes)
    for column in range(0, columns, 8):
        assert wavefronts(column_reads(tile, column), 16, chip("sm_80").reads) == (4, 4)


def test_mi300x_reads_a_swizzled_tile_without_conflicts_by_its_own_phases():
    """Lane l of mfma 32x32x8 reads 16 bytes of row l % 32 at k = 8·(l // 32)."""
    plain, swizzled = (shared_tile((128, 64), 16, s) for s in (0, 128))
    reads = chip("gfx942").reads
    taken = [
        wavefronts([2 * tile(lane % 32, 8 * (lane // 32)) for lane in range(64)], 16, reads)
        for tile in (plain, swizzled)
    ]
    assert taken == [(64, 8), (8, 8)]


def test_lanes_that_read_one_word_share_it():
    assert wavefronts([0] * 32, 4, chip("sm_80").reads) == (1, 1)
    assert wavefronts([128 * lane for lane in range(32)], 4, chip("sm_80").reads) == (32, 1)
    assert wavefronts([None] * 31 + [64], 4, chip("sm_80").reads) == (1, 1)


def test_sectors_count_what_a_warp_touches():
    assert sectors([4 * lane for lane in range(32)], 4) == (4, 4)
    assert sectors([64 * lane for lane in range(32)], 4) == (32, 4)
    assert sectors([4 * lane + 4 for lane in range(32)], 4) == (5, 4)


def test_vectors_stop_at_the_swizzle_chunk_and_at_unaligned_rows():
    assert vector_width(shared_tile((64, 64), 16, 128), 1, 16) == 8
    assert vector_width(shared_tile((64, 64), 16, 0), 1, 16) == 16
    assert vector_width(shared_tile((64, 64), 16, 0), 0, 8) == 1
    assert vector_width(Layout((4, 63), (63, 1)), 1, 8) == 1
    assert vector_width(Layout((4, 64), (68, 1)), 1, 8) == 4
    assert vector_width(Layout((4, 64), (64, 1)), 1, 8, alignment=2) == 2
