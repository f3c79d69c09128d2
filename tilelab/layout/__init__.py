"""Integers in, integers out: layouts, swizzles and fragments, with their laws and their strings.

A worked example: where thread 5 of a warp finds its second accumulator element of mma.m16n8k16.

    >>> from tilelab.layout import parse
    >>> accumulator = parse("(16,8)@((4,8),(2,2)):((32,1),(16,8))")
    >>> accumulator.coords(5, 1)
    (1, 3)
    >>> accumulator.owner((3, 5))
    [(14, 1)]
"""

from __future__ import annotations

from tilelab.layout.digits import AxisDigit, PlaceDigit
from tilelab.layout.fragment import Fragment, from_digits
from tilelab.layout.layout import Layout, column_major, concat, row_major, split_digit
from tilelab.layout.measure import Banks, Coverage, coverage, is_bijective, sectors, vector_width, wavefronts
from tilelab.layout.swizzle import (
    SWIZZLE_BYTES,
    Composed,
    Swizzle,
    blocked,
    crosswise_tile,
    make_swizzled_layout,
    shared_tile,
    swizzle_for,
    widest_swizzle,
)
from tilelab.layout.text import parse
from tilelab.layout.tiling import block, linear, tile
from tilelab.layout.tuples import IntTuple

__all__ = [
    "SWIZZLE_BYTES",
    "AxisDigit",
    "Banks",
    "Composed",
    "Coverage",
    "Fragment",
    "IntTuple",
    "Layout",
    "PlaceDigit",
    "Swizzle",
    "block",
    "blocked",
    "column_major",
    "concat",
    "coverage",
    "crosswise_tile",
    "from_digits",
    "is_bijective",
    "linear",
    "make_swizzled_layout",
    "parse",
    "row_major",
    "sectors",
    "shared_tile",
    "split_digit",
    "swizzle_for",
    "tile",
    "vector_width",
    "wavefronts",
    "widest_swizzle",
]
