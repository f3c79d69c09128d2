"""The diff that every form of the view shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilelab_viz.diff import changed_hunks, plain_hunk, unified

LINES = st.lists(
    st.sampled_from(["", "a", "  a", "b = a[i]", "b = c[i]", "    b = a[i]", "for i in x:", "}"]), max_size=30
)


def rebuilt(old, new):
    """The new text, made from the old one and the hunks alone, and the old lines that the rows name."""
    out, at, seen = [], 0, []
    for hunk in changed_hunks(old, new):
        out += old[at : hunk.old[0]]
        assert len(out) == hunk.new[0]
        out += [new[row.new] for row in hunk.rows if row.new is not None]
        seen += [row.old for row in hunk.rows if row.old is not None]
        assert seen[-(hunk.old[1] - hunk.old[0]) or len(seen) :] == list(range(*hunk.old))
        at = hunk.old[1]
    return out + old[at:]


@given(LINES, LINES)
def test_hunks_turn_the_old_text_into_the_new_one(old, new):
    assert rebuilt(old, new) == new


@given(LINES)
def test_equal_texts_have_no_hunks(lines):
    assert changed_hunks(lines, list(lines)) == ()


@given(LINES, LINES)
def test_marked_words_are_all_that_differs(old, new):
    for hunk in changed_hunks(old, new):
        for row in hunk.rows:
            if row.old is not None and row.new is not None:
                assert unmarked(old[row.old], row.old_marks) == unmarked(new[row.new], row.new_marks)


def unmarked(text, marks):
    """The text without its marked ranges and without white space, which joined marks swallow."""
    for start, end in reversed(marks):
        text = text[:start] + text[end:]
    return "".join(text.split())


def test_a_block_that_was_indented_pairs_with_itself():
    old = ["x = 1", "y = 2", "z = x + y"]
    new = ["for i in r:", *(f"    {line}" for line in old)]
    (hunk,) = changed_hunks(old, new)
    assert [(row.old, row.new, row.noise) for row in hunk.rows] == [
        (None, 0, False),
        (0, 1, True),
        (1, 2, True),
        (2, 3, True),
    ]


def test_a_renaming_that_holds_everywhere_is_noise():
    (hunk,) = changed_hunks(["a = kk + 1", "b = kk + 2"], ["a = k_inner + 1", "b = k_inner + 2"])
    assert [row.noise for row in hunk.rows] == [True, True]


def test_swapping_one_of_two_uses_is_not_noise():
    (hunk,) = changed_hunks(["a = x + 1", "b = x + 2"], ["a = y + 1", "b = z + 2"])
    assert [row.noise for row in hunk.rows] == [False, False]


def test_a_changed_number_is_not_noise():
    (hunk,) = changed_hunks(["a = x + 1"], ["a = x + 2"])
    assert not hunk.rows[0].noise
    assert (hunk.rows[0].old_marks, hunk.rows[0].new_marks) == (((8, 9),), ((8, 9),))


def test_inline_form_shows_each_context_line_once():
    old = [f"line {i}" for i in range(20)]
    new = [*old[:5], "five", *old[6:8], "eight", *old[9:]]
    texts = [text for sign, _, text in unified(old, new) if sign == " "]
    assert texts == ["line 3", "line 4", "line 6", "line 7", "line 9", "line 10"]


def test_a_plain_hunk_lists_both_sides():
    rows = plain_hunk(2, 3).rows
    assert [(row.old, row.new) for row in rows] == [(0, 0), (1, 1), (None, 2)]
