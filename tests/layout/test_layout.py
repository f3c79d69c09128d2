"""Laws of the layout algebra, each against plain enumeration, and values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelab.layout import Layout, column_major, concat, parse, row_major, split_digit

# No deadline: other work on the machine must not fail a law.
unhurried = settings(deadline=None, max_examples=60)
sizes = st.sampled_from([1, 2, 3, 4, 6, 8])
strides = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32])


@st.composite
def trees(draw, depth=2):
    """A congruent pair of shape and stride."""
    if depth == 0 or draw(st.booleans()):
        return draw(sizes), draw(strides)
    pairs = [draw(trees(depth=depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    return tuple(s for s, _ in pairs), tuple(d for _, d in pairs)


layouts = trees().map(lambda pair: Layout(*pair))


@st.composite
def compact(draw):
    """A layout that is one-to-one onto 0 … size − 1: a column-major one with its modes in another order."""
    shape = tuple(draw(st.lists(sizes, min_size=1, max_size=4)))
    order = draw(st.permutations(range(len(shape))))
    stride, step = [0] * len(shape), 1
    for mode in order:
        stride[mode] = step
        step *= shape[mode]
    return Layout(shape, tuple(stride))


def table(layout):
    return [layout(i) for i in range(layout.size)]


def test_a_nested_layout_has_the_offsets_worked_out_by_hand():
    accumulator = Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))
    assert accumulator(5, 1) == 33 + 16
    assert accumulator((1, 1), (1, 0)) == 33 + 16
    assert accumulator(31, 3) == 3 * 32 + 7 + 24
    assert (accumulator.size, accumulator.cosize, accumulator.rank) == (128, 128, 2)
    assert accumulator[1].digits() == ((2, 16), (2, 8))
    assert accumulator.digits(0) == ((4, 32), (8, 1))


def test_row_and_column_major_have_the_strides_of_c_and_fortran():
    assert row_major((4, 8, 2)) == Layout((4, 8, 2), (16, 2, 1))
    assert column_major((4, (8, 2))) == Layout((4, (8, 2)), (1, (4, 32)))


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [
        # Examples of CuTe's documentation of composition.
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
    ],
)
def test_composition_has_the_known_results(outer, inner, result):
    assert parse(outer).compose(parse(inner)) == parse(result)


@pytest.mark.parametrize(
    ("layout", "cotarget", "result"),
    [("4:1", 24, "6:4"), ("6:4", 24, "4:1"), ("(4,6):(1,4)", 24, "1:0"), ("4:2", 24, "(2,3):(1,8)")],
)
def test_complements_have_the_known_results(layout, cotarget, result):
    assert parse(layout).complement(cotarget) == parse(result)


def test_division_and_product_have_the_known_results():
    assert parse("(4,2,3):(2,1,8)").divide(parse("4:2")) == parse("((2,2),(2,3)):((4,1),(2,8))")
    assert parse("(2,2):(4,1)").product(parse("6:1")) == parse("((2,2),(2,3)):((4,1),(2,8))")
    tiled = row_major((8, 16)).divide((4, 8))
    assert tiled == parse("((4,2),(8,2)):((16,64),(1,8))")


@unhurried
@given(layouts)
def test_offsets_are_those_of_the_linear_index(layout):
    assert layout.offsets() == table(layout)
    assert layout.cosize == 1 + max(table(layout))


@unhurried
@given(layouts)
def test_coalescing_and_flattening_keep_the_function(layout):
    assert layout.coalesce().offsets() == layout.offsets() == layout.flatten().offsets()
    assert layout.coalesce().coalesce() == layout.coalesce()


@unhurried
@given(layouts)
def test_a_string_reads_back_as_the_same_layout(layout):
    assert parse(str(layout)) == layout


@unhurried
@given(layouts, layouts)
def test_composition_applies_one_after_the_other_or_refuses(outer, inner):
    try:
        both = outer.compose(inner)
    except ValueError:
        return
    assert both.offsets() == [outer(inner(i)) for i in range(inner.size)]
    if isinstance(inner.shape, tuple):
        assert both.rank == inner.rank


bits = st.permutations(range(6)).map(lambda order: Layout((2,) * 6, tuple(1 << bit for bit in order)))


@unhurried
@given(bits, bits)
def test_permutations_of_address_bits_always_compose(outer, inner):
    assert outer.compose(inner).offsets() == [outer(inner(i)) for i in range(64)]


@unhurried
@given(layouts, layouts, layouts)
def test_composition_is_associative(first, second, third):
    try:
        left = first.compose(second).compose(third)
        right = first.compose(second.compose(third))
    except ValueError:
        return
    assert left.offsets() == right.offsets()


@unhurried
@given(layouts, st.sampled_from([24, 48, 64, 96, 192]))
def test_a_complement_is_disjoint_and_covers(layout, cotarget):
    try:
        rest = layout.complement(cotarget)
    except ValueError:
        return
    distinct = sorted(set(layout.offsets()))
    assert sorted(a + b for a in distinct for b in rest.offsets()) == list(range(cotarget))


@unhurried
@given(compact(), st.integers(1, 4))
def test_a_compact_layout_has_a_complement_in_each_multiple_of_its_size(layout, times):
    assert layout.complement(layout.size * times).size == times


@unhurried
@given(compact())
def test_the_inverse_undoes_a_compact_layout(layout):
    inverse = layout.inverse()
    assert [inverse(layout(i)) for i in range(layout.size)] == list(range(layout.size))
    assert [layout(inverse(i)) for i in range(layout.size)] == list(range(layout.size))


@unhurried
@given(layouts)
def test_the_right_inverse_walks_a_run_of_offsets(layout):
    inverse = layout.right_inverse()
    assert [layout(inverse(i)) for i in range(inverse.size)] == list(range(inverse.size))


@unhurried
@given(layouts)
def test_the_left_inverse_finds_every_index_or_is_refused(layout):
    try:
        inverse = layout.left_inverse()
    except ValueError:
        return
    assert [inverse(layout(i)) for i in range(layout.size)] == list(range(layout.size))


def test_a_layout_with_gaps_has_a_left_inverse_and_no_inverse():
    gaps = Layout((4, 2), (2, 16))
    assert [gaps.left_inverse()(gaps(i)) for i in range(8)] == list(range(8))
    with pytest.raises(ValueError, match="not one-to-one onto 0 … 7"):
        gaps.inverse()


@unhurried
@given(layouts, compact())
def test_division_keeps_size_and_offsets_and_starts_with_the_tile(layout, tiler):
    try:
        divided = layout.divide(tiler)
    except ValueError:
        return
    assert divided.size == layout.size
    assert sorted(divided.offsets()) == sorted(layout.offsets())
    assert divided[0].offsets() == [layout(tiler(i)) for i in range(tiler.size)]


@unhurried
@given(compact(), compact())
def test_a_product_repeats_the_layout_without_overlap(layout, tiler):
    try:
        product = layout.product(tiler)
    except ValueError:
        return
    assert product.size == layout.size * tiler.size
    assert product[0] == layout
    assert len(set(product.offsets())) == product.size


@unhurried
@given(layouts, layouts)
def test_concatenation_adds_the_modes(first, second):
    both = concat(first, second)
    assert both(first.size - 1, second.size - 1) == first(first.size - 1) + second(second.size - 1)
    assert both.modes == (first, second)


@pytest.mark.parametrize(
    ("digit", "extents", "pieces"),
    [
        ((8, 1), (4, 8), [(4, 1, 0), (2, 1, 1)]),
        ((4, 8), (4, 8), [(4, 2, 1)]),
        ((2, 3), (4, 8), [(2, 3, 0)]),
        ((3, 0), (4, 8), [(3, 0, 0)]),
    ],
)
def test_a_digit_is_cut_at_the_edges_of_a_box(digit, extents, pieces):
    assert split_digit(*digit, extents) == pieces


@pytest.mark.parametrize(("digit", "extents"), [((4, 2), (6, 4)), ((4, 8), (4, 4)), ((2, 6), (4, 8))])
def test_a_digit_that_crosses_an_edge_unevenly_is_refused(digit, extents):
    with pytest.raises(ValueError, match=r"unevenly|leaves"):
        split_digit(*digit, extents)


@pytest.mark.parametrize(
    "text", ["", "4", "4:1:2", "(4,:(1)", "(4,2):1", "(,):(,)", "4:x", "(4 2):(1 4)", "0:1"]
)
def test_a_string_that_is_no_layout_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)
