"""Digits: the terms that coordinates and thread numbers are sums of, and how two lists of them compare."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["AxisDigit", "Piece", "PlaceDigit", "refine", "starts_with"]

Piece = tuple[str, int, int, int]  # (source, size, stride along the axis, axis)
Placed = tuple[int, int, int, int]  # (divisor, size, stride along the axis, axis)


@dataclass(frozen=True)
class AxisDigit:
    """One term of a coordinate: (source // divisor % size) · stride, source being the thread or the value."""

    source: str
    divisor: int
    size: int
    stride: int

    def __iter__(self) -> Iterator[str | int]:
        return iter((self.source, self.divisor, self.size, self.stride))


@dataclass(frozen=True)
class PlaceDigit:
    """One term of a thread or value number: (coordinate[axis] // divisor % size) · weight."""

    axis: int
    divisor: int
    size: int
    weight: int

    def __iter__(self) -> Iterator[int]:
        return iter((self.axis, self.divisor, self.size, self.weight))


def refine(digits: Iterable[tuple[int, int, int]], cuts: set[int]) -> dict[int, tuple[int, int]] | None:
    """Digits (divisor, size, stride) cut at given divisors: divisor → (size, stride); None if a cut is
    uneven.
    """
    out: dict[int, tuple[int, int]] = {}
    for divisor, size, stride in digits:
        end = divisor * size
        marks = sorted({divisor, end} | {c for c in cuts if divisor < c < end})
        for low, high in itertools.pairwise(marks):
            if low % divisor or high % low:
                return None
            out[low] = (high // low, stride * (low // divisor))
    return out


def starts_with(whole: list[Placed], atom: list[Placed], limit: int, extents: tuple[int, ...]) -> bool:
    """Whether the digits of `whole` below `limit` are the atom's, and those above move by whole atoms."""
    cuts = {limit} | {divisor for divisor, *_ in (*whole, *atom)}
    first, second = _refine_placed(whole, cuts), _refine_placed(atom, cuts)
    if first is None or second is None:
        return False
    low = {divisor: digit for divisor, digit in first.items() if divisor < limit}
    high = [digit for divisor, digit in first.items() if divisor >= limit]
    return low == second and all(step % extents[axis] == 0 for _, step, axis in high)


def _refine_placed(digits: list[Placed], cuts: set[int]) -> dict[int, tuple[int, int, int]] | None:
    out: dict[int, tuple[int, int, int]] = {}
    for divisor, size, step, axis in digits:
        cut = refine([(divisor, size, step)], cuts)
        if cut is None:
            return None
        out |= {low: (n, stride, axis) for low, (n, stride) in cut.items()}
    return out
