"""Cost model of memory accesses: LDS cycles under the bank rule, and 128-byte lines of global memory.

LDS has 32 banks of 4 bytes. A wave's access is served in phases of at most 128 bytes; a phase takes as many
cycles as its fullest bank has distinct words (equal words are broadcast). The phases of 16-byte accesses
are those of AMD's Composable Kernel documentation; that narrower accesses go by 16 or 32 neighbouring lanes
is an assumption.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tilelab.emulate.gfx942.formats import Array

__all__ = ["ideal_cycles", "lds_cycles", "lines_touched", "phases"]

_LANES, _BANKS, _WORD, _LINE = 64, 32, 4, 128
_WIDE_READ_STARTS = ((0, 20), (4, 16), (8, 28), (12, 24), (32, 52), (36, 48), (40, 60), (44, 56))


@lru_cache(maxsize=16)
def phases(size: int, is_write: bool) -> tuple[tuple[int, ...], ...]:
    """The lanes that are served together, for an access of `size` bytes a lane."""
    if size > 8 and not is_write:
        return tuple((*range(a, a + 4), *range(b, b + 4)) for a, b in _WIDE_READ_STARTS)
    together = 8 if size > 8 else 16 if size > 4 else 32
    return tuple(tuple(range(start, start + together)) for start in range(0, _LANES, together))


def lds_cycles(addresses: Array, mask: Array, size: int, is_write: bool) -> int:
    """Cycles of one wave's access; addresses in bytes and mask are [64]."""
    words_per_lane = max(1, size // _WORD)
    total = 0
    for lanes in phases(size, is_write):
        on = [lane for lane in lanes if mask[lane]]
        if on:
            words = np.unique((addresses[on] // _WORD)[:, None] + np.arange(words_per_lane))
            total += int(np.bincount(words % _BANKS).max())
    return total


def ideal_cycles(mask: Array, size: int, is_write: bool) -> int:
    """Cycles of that access without any bank conflict: one for each phase with an active lane."""
    if mask.all():
        return len(phases(size, is_write))
    return sum(bool(mask[list(lanes)].any()) for lanes in phases(size, is_write))


def lines_touched(addresses: Array, size: int) -> int:
    """Number of 128-byte lines that hold the bytes of the accesses."""
    lines = np.concatenate([addresses // _LINE, (addresses + size - 1) // _LINE])
    return len(np.unique(lines))
