"""Fragments: which thread holds which element of a tile, in which of its registers.

A fragment's layout has two modes, (thread, value), and gives the tile's column-major linear index (leftmost
axis fastest). The accumulator of mma.m16n8k16 is `(16,8)@((4,8),(2,2)):((32,1),(16,8))`: thread 5 = (1, 1),
value 1 = (1, 0) is at 32 + 1 + 16 = 49 = row 1, column 3. A thread digit of stride 0 means that several
threads hold the same element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tilelab.layout.digits import AxisDigit, Piece, PlaceDigit, refine, starts_with
from tilelab.layout.layout import Layout, split_digit
from tilelab.layout.tuples import format_tuple

__all__ = ["Fragment", "from_digits"]

_SOURCES = ("thread", "value")


@dataclass(frozen=True)
class Fragment:
    """A tile spread over threads: `layout` maps (thread, value) to the tile's column-major linear index."""

    tile: tuple[int, ...]
    layout: Layout

    def __post_init__(self) -> None:
        if self.layout.rank != 2:
            raise ValueError(f"a fragment's layout has the modes (thread, value), not {self.layout}")
        if self.layout.cosize > math.prod(self.tile):
            raise ValueError(f"{self.layout} leaves the tile {format_tuple(self.tile)}")

    def __str__(self) -> str:
        return f"{format_tuple(self.tile)}@{self.layout}"

    @property
    def threads(self) -> int:
        """The number of threads."""
        return self.layout[0].size

    @property
    def values(self) -> int:
        """The number of elements that each thread holds."""
        return self.layout[1].size

    @property
    def replication(self) -> int:
        """How many threads hold each element, as far as stride-0 thread digits say."""
        return math.prod(size for size, step in self.layout.digits(0) if step == 0)

    def coords(self, thread: int, value: int) -> tuple[int, ...]:
        """The element that a thread holds in a value slot."""
        index = self.layout(thread, value)
        out: list[int] = []
        for extent in self.tile:
            out.append(index % extent)
            index //= extent
        return tuple(out)

    def owner(self, coords: tuple[int, ...]) -> list[tuple[int, int]]:
        """Every (thread, value) that holds an element, threads in increasing order."""
        number = {
            source: sum(coords[d.axis] // d.divisor % d.size * d.weight for d in self.place_digits(source))
            for source in _SOURCES
        }
        free = [(source, n, w) for source, w, n, step in _source_digits(self) if step == 0 and n > 1]
        out: set[tuple[int, int]] = set()
        for choice in itertools.product(*(range(size) for _, size, _ in free)):
            place = dict(number)
            for (source, _, weight), digit in zip(free, choice, strict=True):
                place[source] += weight * digit
            out.add((place["thread"], place["value"]))
        return sorted(out)

    def axis_digits(self, axis: int) -> tuple[AxisDigit, ...]:
        """The digits of a coordinate: coords(t, v)[axis] = Σ (source // divisor % size) · stride.

        Raises ValueError if the layout carries from one axis into the next, so that no such sum exists.
        """
        return _axis_digits(self)[axis]

    def place_digits(self, source: str) -> tuple[PlaceDigit, ...]:
        """The inverse: thread (or value) = Σ (coords[axis] // divisor % size) · weight, stride-0 digits being
        0.

        Raises ValueError if the elements do not determine it (something is held twice or not at all).
        """
        return _place_digits(self)[_SOURCES.index(source)]

    def pieces(self) -> tuple[Piece, ...]:
        """The digits as `from_digits` takes them: (source, size, stride along axis, axis), fastest first."""
        return _pieces(self)

    def vector(self, axis: int) -> int:
        """How many consecutive values of a thread are consecutive along an axis, from an aligned start."""
        run = 1
        for divisor, size, step in _value_run(self, axis):
            if divisor != run or step != run:
                break
            run *= size
        for digit in self.axis_digits(axis):
            if not (digit.source == "value" and digit.divisor < run):
                run = math.gcd(run, digit.stride) if digit.stride else run
        return run

    def reduce(self, axis: int, keep: bool = False) -> Fragment:
        """The fragment of the tile reduced over an axis: its thread digits become replication, its values
        merge.

        The axis disappears (a rank-1 tile becomes `(1,)`), or stays with extent 1 if `keep`.
        """
        return _reduce(self, axis % len(self.tile), keep)

    def broadcast(self, axis: int, extent: int) -> Fragment:
        """A new axis before `axis`, along which each thread holds all `extent` elements, as its slowest
        values.
        """
        pieces = _pieces(self)
        moved = [(s, n, d, a + (a >= axis)) for s, n, d, a in pieces]
        shape = (*self.tile[:axis], extent, *self.tile[axis:])
        return from_digits(shape, [*moved, ("value", extent, 1, axis)])

    def transpose(self) -> Fragment:
        """The fragment of the transposed tile (rank 2): the same registers, the axes swapped."""
        if len(self.tile) != 2:
            raise ValueError(f"only a tile of two axes has a transpose, not {format_tuple(self.tile)}")
        return from_digits(self.tile[::-1], [(s, n, d, 1 - a) for s, n, d, a in _pieces(self)])

    def coalesce(self) -> Fragment:
        """The same fragment with the fewest digits a mode; equal functions have equal coalesced forms."""
        return from_digits(self.tile, _pieces(self))

    def divides(self, atom: Fragment) -> bool:
        """Whether this is a block of `atom`s: its fastest threads and values form the atom, the rest moves it
        whole.

        This is what an instruction asks of an operand's layout (tilus's test).
        """
        return _divides(self, atom)

    def holds(self, other: Fragment) -> bool:
        """Whether every thread of `other` has all its elements in its own registers here (same tile and
        threads).
        """
        return _holds(self, other)


def from_digits(shape: tuple[int, ...], pieces: Iterable[Piece]) -> Fragment:
    """A fragment from (source, size, stride along the axis, axis), the fastest digit of each source first."""
    steps = [math.prod(shape[:axis]) for axis in range(len(shape))]
    modes: dict[str, list[tuple[int, int]]] = {"thread": [], "value": []}
    for source, size, stride, axis in pieces:
        modes[source].append((size, stride * steps[axis]))
    parts: list[Layout] = []
    for source in _SOURCES:
        digits = modes[source] or [(1, 0)]
        parts.append(Layout(tuple(n for n, _ in digits), tuple(d for _, d in digits)).coalesce())
    return Fragment(
        tuple(shape), Layout((parts[0].shape, parts[1].shape), (parts[0].stride, parts[1].stride))
    )


def _source_digits(fragment: Fragment) -> list[tuple[str, int, int, int]]:
    """(source, divisor, size, stride in the linear index) of every digit."""
    out: list[tuple[str, int, int, int]] = []
    for mode, source in enumerate(_SOURCES):
        divisor = 1
        for size, step in fragment.layout.digits(mode):
            out.append((source, divisor, size, step))
            divisor *= size
    return out


@cache
def _pieces(fragment: Fragment) -> tuple[Piece, ...]:
    out: list[Piece] = []
    for source, _, size, step in _source_digits(fragment):
        out += [(source, n, d, axis) for n, d, axis in split_digit(size, step, fragment.tile)]
    return tuple(out)


@cache
def _axis_digits(fragment: Fragment) -> tuple[tuple[AxisDigit, ...], ...]:
    axes: list[list[AxisDigit]] = [[] for _ in fragment.tile]
    divisor = {"thread": 1, "value": 1}
    for source, size, step, axis in _pieces(fragment):
        if step:
            axes[axis].append(AxisDigit(source, divisor[source], size, step))
        divisor[source] *= size
    for extent, digits in zip(fragment.tile, axes, strict=True):
        if sum((d.size - 1) * d.stride for d in digits) >= extent:
            raise ValueError(f"{fragment} carries from one axis into the next")
    return tuple(map(tuple, axes))


@cache
def _place_digits(fragment: Fragment) -> tuple[tuple[PlaceDigit, ...], tuple[PlaceDigit, ...]]:
    places: dict[str, list[PlaceDigit]] = {"thread": [], "value": []}
    for axis, (extent, digits) in enumerate(zip(fragment.tile, _axis_digits(fragment), strict=True)):
        reached = 1
        for digit in sorted(digits, key=lambda d: d.stride):
            if digit.stride != reached:
                raise ValueError(f"{fragment}: axis {axis} does not determine who holds it")
            places[digit.source].append(PlaceDigit(axis, digit.stride, digit.size, digit.divisor))
            reached *= digit.size
        if reached != extent:
            raise ValueError(f"{fragment}: {reached} of {extent} positions of axis {axis} are held")
    return tuple(places["thread"]), tuple(places["value"])


def _value_run(fragment: Fragment, axis: int) -> list[tuple[int, int, int]]:
    return [(d.divisor, d.size, d.stride) for d in fragment.axis_digits(axis) if d.source == "value"]


@cache
def _reduce(fragment: Fragment, axis: int, keep: bool) -> Fragment:
    _axis_digits(fragment)
    out: list[Piece] = []
    gone = 0 if keep or len(fragment.tile) == 1 else 1
    for source, size, step, at in _pieces(fragment):
        if step == 0 or at != axis:
            out.append((source, size, step, at - gone if at > axis else at))
        elif source == "thread":
            out.append((source, size, 0, 0))
    shape = list(fragment.tile)
    shape[axis : axis + 1] = [] if gone else [1]
    return from_digits(tuple(shape), out)


def _thread_digits(fragment: Fragment) -> list[tuple[int, int, int]]:
    return [(d, n, s) for source, d, n, s in _source_digits(fragment) if source == "thread" and n > 1]


@cache
def _holds(here: Fragment, other: Fragment) -> bool:
    if here.tile != other.tile or here.threads != other.threads:
        return False
    if _is_invertible(here):
        # `here` holds the whole tile, each element wherever its non-zero thread digits say: a thread of
        # `other` that agrees in those digits finds its elements in its own registers.
        mine, theirs = _thread_digits(here), _thread_digits(other)
        cuts = {end for d, n, _ in (*mine, *theirs) for end in (d, d * n)}
        first, second = refine(mine, cuts), refine(theirs, cuts)
        if first is not None and second is not None:
            agrees = all(s == 0 or second.get(d) == (n, s) for d, (n, s) in first.items())
            if agrees or _is_invertible(other):
                return agrees
    sets = [{here.layout(t, v) for v in range(here.values)} for t in range(here.threads)]
    return all(other.layout(t, v) in sets[t] for t in range(other.threads) for v in range(other.values))


def _is_invertible(fragment: Fragment) -> bool:
    try:
        _place_digits(fragment)
    except ValueError:
        return False
    return True


@cache
def _divides(whole: Fragment, atom: Fragment) -> bool:
    if len(whole.tile) != len(atom.tile) or any(w % a for w, a in zip(whole.tile, atom.tile, strict=True)):
        return False
    if whole.threads % atom.threads or whole.values % atom.values:
        return False
    for source, limit in (("thread", atom.threads), ("value", atom.values)):
        placed = (_placed(whole, source), _placed(atom, source))
        if not starts_with(*placed, limit, atom.tile):
            return False
    return True


def _placed(fragment: Fragment, wanted: str) -> list[tuple[int, int, int, int]]:
    divisor = 1
    out: list[tuple[int, int, int, int]] = []
    for source, size, step, axis in _pieces(fragment):
        if source == wanted:
            out.append((divisor, size, step, axis))
            divisor *= size
    return out
