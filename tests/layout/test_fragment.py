"""Fragments against the register maps of the manuals and against plain enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelab.layout import Fragment, Layout, block, coverage, linear, parse, tile

ACCUMULATOR = parse("(16,8)@((4,8),(2,2)):((32,1),(16,8))")
MFMA = parse("(32,32)@((32,2),(4,4)):((32,4),(1,8))")

# Enumeration is slow in Python, so few and small fragments, without a deadline.
enumerated = settings(deadline=None, max_examples=30)
counts = st.sampled_from([1, 2])
fragments = st.one_of(
    st.builds(
        lambda atom, warps, repeats, order: tile(atom, warps, repeats, order),
        st.sampled_from([ACCUMULATOR, MFMA, parse("(4,6)@((2,3),(2,2)):((1,4),(2,12))")]),
        st.tuples(counts, counts),
        st.tuples(counts, counts),
        st.sampled_from(["repeats", "warps"]),
    ),
    st.builds(
        linear,
        st.sampled_from([(8, 16), (16, 48), (20, 32), (64,), (4, 8, 16)]),
        st.sampled_from([1, 32, 128]),
        st.sampled_from([1, 2, 4, 8]),
    ),
)


def held(fragment):
    return Counter(
        fragment.coords(t, v) for t, v in itertools.product(range(fragment.threads), range(fragment.values))
    )


def elements(shape):
    return itertools.product(*map(range, shape))


def test_the_accumulator_is_where_the_ptx_manual_says():
    """c0, c1 in row lane // 4, c2, c3 eight rows below; columns 2·(lane % 4) and the next."""
    for lane, value in itertools.product(range(32), range(4)):
        want = (lane // 4 + 8 * (value // 2), 2 * (lane % 4) + value % 2)
        assert ACCUMULATOR.coords(lane, value) == want


def test_an_element_is_found_in_its_lane():
    assert ACCUMULATOR.owner((3, 5)) == [(14, 1)]
    assert ACCUMULATOR.owner((11, 0)) == [(12, 2)]


@enumerated
@given(fragments)
def test_a_fragment_holds_each_element_as_often_as_it_says(fragment):
    seen = held(fragment)
    assert set(seen) == set(elements(fragment.tile))
    assert set(seen.values()) == {fragment.replication}
    assert coverage(fragment).reached == math.prod(fragment.tile)


@enumerated
@given(fragments)
def test_coordinates_are_the_sums_of_their_digits(fragment):
    for thread in range(0, fragment.threads, 5):
        for value in range(0, fragment.values, 3):
            number = {"thread": thread, "value": value}
            sums = tuple(
                sum(number[s] // d % n * step for s, d, n, step in fragment.axis_digits(axis))
                for axis in range(len(fragment.tile))
            )
            assert sums == fragment.coords(thread, value)


@enumerated
@given(fragments)
def test_owners_are_exactly_those_that_hold_an_element(fragment):
    owners = {}
    for thread, value in itertools.product(range(fragment.threads), range(fragment.values)):
        owners.setdefault(fragment.coords(thread, value), []).append((thread, value))
    for element in list(owners)[::7]:
        assert fragment.owner(element) == owners[element]


@enumerated
@given(fragments)
def test_a_fragment_string_reads_back(fragment):
    assert parse(str(fragment)) == fragment


@enumerated
@given(fragments, st.integers(0, 2))
def test_reducing_leaves_each_thread_the_other_coordinates(fragment, axis):
    axis %= len(fragment.tile)
    if len(fragment.tile) == 1:
        return
    reduced = fragment.reduce(axis)
    assert reduced.tile == fragment.tile[:axis] + fragment.tile[axis + 1 :]
    assert reduced.threads == fragment.threads
    for thread in range(fragment.threads):
        before = {fragment.coords(thread, v) for v in range(fragment.values)}
        after = [reduced.coords(thread, v) for v in range(reduced.values)]
        assert set(after) == {c[:axis] + c[axis + 1 :] for c in before}
        assert len(after) == len(set(after))


def test_a_row_reduction_replicates_over_the_four_lanes_of_a_row():
    rows = ACCUMULATOR.reduce(1)
    assert str(rows) == "(16,)@((4,8),2):((0,1),8)"
    assert rows.replication == 4
    assert rows.owner((9,)) == [(4, 1), (5, 1), (6, 1), (7, 1)]
    assert str(ACCUMULATOR.reduce(1, keep=True)) == "(16,1)@((4,8),2):((0,1),8)"


def test_a_rank_one_fragment_reduces_to_one_element_held_by_all():
    scalar = linear((64,), 32, 2).reduce(0)
    assert (scalar.tile, scalar.replication, scalar.values) == ((1,), 32, 1)


def test_broadcasting_gives_each_thread_the_whole_new_axis():
    wide = ACCUMULATOR.reduce(1).broadcast(1, 8)
    assert wide.tile == (16, 8)
    assert {wide.coords(0, v) for v in range(wide.values)} == {(r, c) for r in (0, 8) for c in range(8)}
    assert wide.holds(ACCUMULATOR)
    assert not ACCUMULATOR.holds(wide)


@enumerated
@given(fragments, fragments)
def test_holding_is_what_enumeration_says(first, second):
    def by_thread(fragment):
        return [{fragment.layout(t, v) for v in range(fragment.values)} for t in range(fragment.threads)]

    same = first.tile == second.tile and first.threads == second.threads
    want = same and all(a >= b for a, b in zip(by_thread(first), by_thread(second), strict=True))
    assert first.holds(second) == want


@enumerated
@given(fragments)
def test_a_fragment_holds_itself_and_its_reduction_broadcast_holds_it(fragment):
    assert fragment.holds(fragment)
    if len(fragment.tile) == 2:
        assert fragment.reduce(1).broadcast(1, fragment.tile[1]).holds(fragment)


@pytest.mark.parametrize("order", ["repeats", "warps"])
def test_a_block_is_divided_by_its_atom_and_by_no_other(order):
    whole = tile(ACCUMULATOR, (2, 2), (4, 8), order)
    assert whole.tile == (128, 128)
    assert whole.divides(ACCUMULATOR)
    assert not whole.divides(MFMA)
    assert not linear((128, 128), 128, 4).divides(ACCUMULATOR)


def test_repeats_first_gives_each_warp_one_region_and_warps_first_interleaves():
    repeats = tile(ACCUMULATOR, (2, 1), (2, 1), "repeats")
    warps = tile(ACCUMULATOR, (2, 1), (2, 1), "warps")
    assert [repeats.coords(0, v)[0] for v in (0, 4)] == [0, 16]
    assert repeats.coords(32, 0)[0] == 32
    assert [warps.coords(0, v)[0] for v in (0, 4)] == [0, 32]
    assert warps.coords(32, 0)[0] == 16


def test_warps_without_an_axis_hold_copies():
    shared = block(ACCUMULATOR, ((0, 2), (None, 2)), ((1, 2),))
    assert (shared.tile, shared.threads, shared.replication) == ((32, 16), 128, 2)
    assert shared.owner((17, 0)) == [(36, 0), (100, 0)]


def test_a_transposed_fragment_keeps_registers_and_swaps_coordinates():
    for lane, value in itertools.product(range(0, 32, 3), range(4)):
        assert ACCUMULATOR.transpose().coords(lane, value) == ACCUMULATOR.coords(lane, value)[::-1]


def test_a_linear_fragment_gives_neighbours_to_neighbouring_threads():
    rows = linear((128, 32), 128, 8)
    assert [rows.coords(0, v) for v in (0, 7, 8)] == [(0, 0), (0, 7), (32, 0)]
    assert [rows.coords(t, 0) for t in (1, 3, 4, 127)] == [(0, 8), (0, 24), (1, 0), (31, 24)]
    assert rows.vector(1) == 8
    assert rows.vector(0) == 1


def test_threads_that_find_no_place_hold_copies():
    assert linear((64,), 128).replication == 2
    assert linear((60, 60), 128).replication == 8


def test_vectors_that_do_not_divide_the_row_are_refused():
    with pytest.raises(ValueError, match="vectors of 8 do not divide"):
        linear((16, 12), 32, 8)


def test_a_fragment_that_leaves_its_tile_is_refused():
    with pytest.raises(ValueError, match="leaves the tile"):
        Fragment((4, 4), Layout((4, 8), (1, 4)))


def test_a_fragment_that_misses_elements_has_no_owners():
    with pytest.raises(ValueError, match="2 of 4 positions of axis 1"):
        Fragment((4, 4), Layout((4, 2), (1, 4))).owner((0, 0))
