"""Fragments made of smaller ones: blocks of an instruction's atom, and the plain coalesced fragment."""

from __future__ import annotations

import math
from functools import cache

from tilelab.layout.digits import Piece
from tilelab.layout.fragment import Fragment, from_digits
from tilelab.layout.tuples import format_tuple

__all__ = ["block", "linear", "tile"]


@cache
def block(
    atom: Fragment,
    warps: tuple[tuple[int | None, int], ...] = (),
    repeats: tuple[tuple[int, int], ...] = (),
    order: str = "repeats",
) -> Fragment:
    """Many copies of an atom: over groups of its threads (`warps`) and over further registers (`repeats`).

    Both list (axis, count), the fastest first; axis None among the warps means that these groups hold the
    same elements. With order "repeats" each warp owns one contiguous region (repeats adjacent); with "warps"
    the warps' atoms are adjacent and the repeats lie a whole round apart.
    """
    if order not in ("repeats", "warps"):
        raise ValueError(f"order must be 'repeats' or 'warps', not {order!r}")
    scale = list(atom.tile)
    made: dict[str, list[Piece]] = {"thread": [], "value": []}
    for source, groups in (
        (("value", repeats), ("thread", warps))
        if order == "repeats"
        else (
            ("thread", warps),
            ("value", repeats),
        )
    ):
        for axis, count in groups:
            if axis is None:
                made[source].append((source, count, 0, 0))
            else:
                made[source].append((source, count, scale[axis], axis))
                scale[axis] *= count
    return from_digits(tuple(scale), [*atom.pieces(), *made["thread"], *made["value"]])


def tile(
    atom: Fragment, warps: tuple[int, ...] = (), repeats: tuple[int, ...] = (), order: str = "repeats"
) -> Fragment:
    """`block` with one count an axis: `tile(mma_accumulator, warps=(2, 2), repeats=(4, 8))` is 128 × 128."""
    return block(atom, tuple(enumerate(warps)), tuple(enumerate(repeats)), order)


@cache
def linear(shape: tuple[int, ...], threads: int, vector: int = 1) -> Fragment:
    """The plain coalesced fragment: `vector` elements along the last axis, then threads, then repeats.

    Axis by axis from the last, as many threads are used as divide the extent; threads that find no place hold
    copies (see `replication`). Raises ValueError if `vector` does not divide the last extent.
    """
    if shape[-1] % vector:
        raise ValueError(f"vectors of {vector} do not divide the last extent of {format_tuple(shape)}")
    left = threads
    out: list[Piece] = [("value", vector, 1, len(shape) - 1)]
    repeats: list[Piece] = []
    for axis in range(len(shape) - 1, -1, -1):
        start = vector if axis == len(shape) - 1 else 1
        extent = shape[axis] // start
        across = math.gcd(left, extent)
        out.append(("thread", across, start, axis))
        repeats.append(("value", extent // across, start * across, axis))
        left //= across
    return from_digits(shape, [*out, ("thread", left, 0, 0), *repeats])
