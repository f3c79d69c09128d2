"""Trees of integers, as the shapes, strides and coordinates of layouts are."""

from __future__ import annotations

import math
from collections.abc import Iterator

__all__ = ["IntTuple", "congruent", "format_tuple", "leaves", "offset_of", "tuple_size"]

IntTuple = int | tuple["IntTuple", ...]


def leaves(tree: IntTuple) -> Iterator[int]:
    """The integers of a nested tuple, left to right."""
    if isinstance(tree, int):
        yield tree
    else:
        for branch in tree:
            yield from leaves(branch)


def tuple_size(tree: IntTuple) -> int:
    """The product of the integers of a nested tuple."""
    return math.prod(leaves(tree))


def format_tuple(tree: IntTuple) -> str:
    """A nested tuple as text without blanks; a tuple of one keeps its comma: `(4,)`."""
    if isinstance(tree, int):
        return str(tree)
    inner = ",".join(map(format_tuple, tree))
    return f"({inner},)" if len(tree) == 1 else f"({inner})"


def congruent(shape: IntTuple, stride: IntTuple) -> bool:
    """Whether two trees branch alike."""
    if isinstance(shape, int) or isinstance(stride, int):
        return isinstance(shape, int) and isinstance(stride, int)
    return len(shape) == len(stride) and all(map(congruent, shape, stride))


def offset_of(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """The offset of a coordinate; an integer is split over the digits of a mode, the leftmost fastest."""
    if not isinstance(coordinate, int):
        if isinstance(shape, int) or isinstance(stride, int) or len(coordinate) != len(shape):
            raise ValueError(f"coordinate {coordinate} does not fit shape {format_tuple(shape)}")
        return sum(map(offset_of, coordinate, shape, stride))
    total = 0
    digits = list(zip(leaves(shape), leaves(stride), strict=True))
    for position, (size, step) in enumerate(digits):
        # The last digit takes what is left, so an index past the end continues the pattern.
        digit = coordinate if position == len(digits) - 1 else coordinate % size
        total += digit * step
        coordinate //= size
    return total
