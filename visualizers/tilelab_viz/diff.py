"""Differences between two printings of a program: which lines pair up, and which words of a pair differ.

Lines are matched by their text without indentation, so that a pass that wraps a loop around a block shows the
block as re-indented rather than as removed and written again. The browser only draws what is computed here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

__all__ = ["Hunk", "Mark", "Row", "changed_hunks", "plain_hunk", "unified"]

Mark = tuple[int, int]

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*")
# Aligning a block of m old and n new lines costs m * n similarities; above this they are paired in order.
_ALIGN_LIMIT = 2500
# Two lines are shown as one edited line when at least this share of their tokens is common.
_SIMILAR = 0.6
# Above this many lines, difflib's heuristic for popular lines keeps the comparison linear.
_EXACT_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a side-by-side diff: the old and new line numbers (from 0), and the characters that differ.

    `noise` says that the two lines differ only in white space or by a renaming that holds in the whole step.
    """

    old: int | None
    new: int | None
    old_marks: tuple[Mark, ...] = ()
    new_marks: tuple[Mark, ...] = ()
    noise: bool = False


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `old[0]:old[1]` became `new[0]:new[1]`; outside the hunks both sides are equal line by line.

    `plain` hunks set two different languages side by side and mark nothing.
    """

    old: tuple[int, int]
    new: tuple[int, int]
    rows: tuple[Row, ...]
    plain: bool = False


def changed_hunks(old: Sequence[str], new: Sequence[str]) -> tuple[Hunk, ...]:
    """The hunks that turn `old` into `new`, in order."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if not left and not right:
        return ()
    rows = _align(left, right)
    rows = [replace(row, old=_shift(row.old, head), new=_shift(row.new, head)) for row in rows]
    return _mark_noise(_group(rows, old, new, head), old, new)


def plain_hunk(old_size: int, new_size: int) -> Hunk:
    """One hunk that sets two texts side by side without comparing them."""
    rows = tuple(
        Row(i if i < old_size else None, i if i < new_size else None) for i in range(max(old_size, new_size))
    )
    return Hunk((0, old_size), (0, new_size), rows, plain=True)


def unified(
    old: Sequence[str], new: Sequence[str], context: int = 2
) -> Iterable[tuple[str, Row | None, str]]:
    """The inline form: (sign, row, text), sign one of `@`, blank, `-`, `+`; `@` starts a stretch."""
    hunks = changed_hunks(old, new)
    shown = 0
    for index, hunk in enumerate(hunks):
        first = max(hunk.new[0] - context, shown)
        if first > shown or index == 0:
            yield "@", None, f"line {first + 1}"
        yield from ((" ", None, text) for text in new[first : hunk.new[0]])
        for row in hunk.rows:
            if row.old is not None:
                yield "-", row, old[row.old]
        for row in hunk.rows:
            if row.new is not None:
                yield "+", row, new[row.new]
        limit = hunks[index + 1].new[0] if index + 1 < len(hunks) else len(new)
        shown = min(hunk.new[1] + context, limit)
        yield from ((" ", None, text) for text in new[hunk.new[1] : shown])


def _shift(number: int | None, by: int) -> int | None:
    return None if number is None else number + by


def _align(left: Sequence[str], right: Sequence[str]) -> list[Row]:
    """Rows for every line of both sides; equal lines give rows without marks."""
    bare_left, bare_right = [t.strip() for t in left], [t.strip() for t in right]
    matcher = SequenceMatcher(None, bare_left, bare_right, autojunk=len(left) + len(right) > _EXACT_LIMIT)
    rows: list[Row] = []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            rows += [_row(left, right, a0 + i, b0 + i) for i in range(a1 - a0)]
        else:
            rows += [_row(left, right, a, b) for a, b in _pair(bare_left, bare_right, (a0, a1), (b0, b1))]
    return rows


def _row(left: Sequence[str], right: Sequence[str], a: int | None, b: int | None) -> Row:
    if a is None or b is None or left[a] == right[b]:
        return Row(a, b)
    old_marks, new_marks = _word_marks(left[a], right[b])
    return Row(a, b, old_marks, new_marks, noise=left[a].split() == right[b].split())


def _pair(
    left: Sequence[str], right: Sequence[str], old: Mark, new: Mark
) -> Iterable[tuple[int | None, int | None]]:
    """Pairs lines of a replaced block, in order, so that the sum of their similarities is greatest."""
    (a0, a1), (b0, b1) = old, new
    m, n = a1 - a0, b1 - b0
    if m == 0 or n == 0 or m * n > _ALIGN_LIMIT:
        yield from ((a, None) for a in range(a0, a1))
        yield from ((None, b) for b in range(b0, b1))
        return
    bags = [_bag(text) for text in left[a0:a1]]
    others = [_bag(text) for text in right[b0:b1]]
    score = [[_similarity(bags[i], others[j]) for j in range(n)] for i in range(m)]
    best = [[0.0] * (n + 1) for _ in range(m + 1)]
    for i in range(m - 1, -1, -1):
        for j in range(n - 1, -1, -1):
            together = score[i][j] + best[i + 1][j + 1] if score[i][j] >= _SIMILAR else 0.0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < m and j < n:
        if score[i][j] >= _SIMILAR and best[i][j] == score[i][j] + best[i + 1][j + 1]:
            yield a0 + i, b0 + j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            yield a0 + i, None
            i += 1
        else:
            yield None, b0 + j
            j += 1
    yield from ((a0 + k, None) for k in range(i, m))
    yield from ((None, b0 + k) for k in range(j, n))


def _bag(text: str) -> Counter[str]:
    return Counter(token for token in _TOKEN.findall(text) if not token.isspace())


def _similarity(one: Counter[str], other: Counter[str]) -> float:
    size = one.total() + other.total()
    return 2 * (one & other).total() / size if size else 1.0


def _word_marks(old: str, new: str) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
    """The character ranges of each line that the other does not have, by whole tokens."""
    one, other = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [0]
    for token in one:
        starts.append(starts[-1] + len(token))
    ends = [0]
    for token in other:
        ends.append(ends[-1] + len(token))
    left: list[Mark] = []
    right: list[Mark] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            left.append((starts[a0], starts[a1]))
            right.append((ends[b0], ends[b1]))
    return _join(left, old), _join(right, new)


def _join(marks: list[Mark], text: str) -> tuple[Mark, ...]:
    """Drops empty marks and joins those with nothing but white space between them."""
    joined: list[Mark] = []
    for start, end in marks:
        if start == end:
            continue
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)


def _group(rows: list[Row], old: Sequence[str], new: Sequence[str], head: int) -> list[Hunk]:
    """Collects neighbouring rows that differ into hunks and drops the rows that are equal."""
    hunks: list[Hunk] = []
    open_rows: list[Row] = []
    a = b = head
    start = (a, b)
    for row in rows:
        if row.old is not None and row.new is not None and old[row.old] == new[row.new]:
            if open_rows:
                hunks.append(Hunk((start[0], a), (start[1], b), tuple(open_rows)))
                open_rows = []
            a, b = row.old + 1, row.new + 1
            continue
        if not open_rows:
            start = (a, b)
        open_rows.append(row)
        a += row.old is not None
        b += row.new is not None
    if open_rows:
        hunks.append(Hunk((start[0], a), (start[1], b), tuple(open_rows)))
    return hunks


def _mark_noise(hunks: list[Hunk], old: Sequence[str], new: Sequence[str]) -> tuple[Hunk, ...]:
    """Marks the rows that differ only by names, when one renaming explains all of them."""
    forward: dict[str, set[str]] = {}
    back: dict[str, set[str]] = {}
    candidates: dict[int, list[tuple[str, str]]] = {}
    for hunk in hunks:
        for row in hunk.rows:
            if row.old is None or row.new is None or row.noise:
                continue
            names = _renames(old[row.old], new[row.new])
            if names is not None:
                candidates[id(row)] = names
                for one, other in names:
                    forward.setdefault(one, set()).add(other)
                    back.setdefault(other, set()).add(one)

    def is_noise(row: Row) -> bool:
        names = candidates.get(id(row))
        if names is None:
            return row.noise
        return all(len(forward[one]) == 1 and len(back[other]) == 1 for one, other in names)

    return tuple(replace(h, rows=tuple(replace(r, noise=is_noise(r)) for r in h.rows)) for h in hunks)


def _renames(old: str, new: str) -> list[tuple[str, str]] | None:
    """The pairs of names at which two lines differ, or None when they differ in anything else."""
    one = [t for t in _TOKEN.findall(old) if not t.isspace()]
    other = [t for t in _TOKEN.findall(new) if not t.isspace()]
    if len(one) != len(other):
        return None
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if _NAME.fullmatch(a) and _NAME.fullmatch(b)]
    plain = [
        (a, b) for a, b in zip(one, other, strict=True) if not (_NAME.fullmatch(a) and _NAME.fullmatch(b))
    ]
    if any(a != b for a, b in plain):
        return None
    return pairs
