"""What a layout costs: elements missed or held twice, bank conflicts, memory sectors, vector widths."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.layout.fragment import Fragment
from tilelab.layout.layout import Layout
from tilelab.layout.swizzle import Composed

__all__ = ["Banks", "Coverage", "coverage", "is_bijective", "sectors", "vector_width", "wavefronts"]


@dataclass(frozen=True)
class Banks:
    """A chip's shared memory as its conflicts see it.

    `phases` lists (bytes per lane, groups of lanes): the lanes of a group are served together, groups one
    after another. A group costs as many cycles as its busiest bank has different words.
    """

    count: int
    bytes: int
    phases: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]

    def groups(self, width: int) -> tuple[tuple[int, ...], ...]:
        """The groups of lanes for an access of `width` bytes a lane: those of the next listed width."""
        for listed, groups in self.phases:
            if width <= listed:
                return groups
        raise ValueError(f"no access of {width} bytes a lane: at most {self.phases[-1][0]}")


@dataclass(frozen=True)
class Coverage:
    """How a layout covers 0 … total − 1: offsets reached, and the most often that one is reached."""

    total: int
    reached: int
    most: int


def is_bijective(layout: Layout | Composed) -> bool:
    """Whether a layout is one-to-one onto 0 … size − 1."""
    if isinstance(layout, Layout):
        return layout.right_inverse().size == layout.size
    return sorted(layout.offsets()) == list(range(layout.size))


def coverage(layout: Layout | Composed | Fragment) -> Coverage:
    """Which part of its tile (for a fragment) or of its cosize a layout reaches; enumerates, so not for hot
    paths.
    """
    total = math.prod(layout.tile) if isinstance(layout, Fragment) else layout.cosize
    counts = Counter(layout.layout.offsets() if isinstance(layout, Fragment) else layout.offsets())
    return Coverage(total, len(counts), max(counts.values()))


def wavefronts(addresses: Sequence[int | None], width: int, banks: Banks) -> tuple[int, int]:
    """Cycles that shared memory needs for one access of all lanes, and the least for that many words.

    `addresses` are in bytes, one a lane (None: inactive), each aligned to `width` bytes. Lanes that read the
    same word share it. More cycles than the least means bank conflicts.
    """
    taken = least = 0
    for group in banks.groups(width):
        active = [a for lane in group if lane < len(addresses) and (a := addresses[lane]) is not None]
        words = {word for a in active for word in range(a // banks.bytes, -(-(a + width) // banks.bytes))}
        if words:
            taken += max(Counter(word % banks.count for word in words).values())
            least += -(-len(words) // banks.count)
    return taken, least


def sectors(addresses: Sequence[int | None], width: int, sector: int = 32) -> tuple[int, int]:
    """Sectors of global memory that one access of all lanes touches, and the least for that many bytes."""
    touched: set[int] = set()
    count: set[int] = set()
    for address in addresses:
        if address is not None:
            touched.update(range(address // sector, (address + width - 1) // sector + 1))
            count.update(range(address, address + width))
    return len(touched), -(-len(count) // sector)


def vector_width(layout: Layout | Composed, mode: int, limit: int, alignment: int = 0) -> int:
    """The most elements, a divisor of `limit`, that can be moved at once along a mode from any multiple of
    it.

    `alignment` is that of the tile's start, in elements (0: as aligned as needed).
    """
    plain = layout.layout if isinstance(layout, Composed) else layout
    run = 1
    digits = list(plain.digits(mode))
    while digits and (digits[0][1] == run or digits[0][0] == 1):
        run *= digits.pop(0)[0]
    width = math.gcd(run, limit)
    rest = [step for _, step in digits]
    rest += [
        step for m in range(plain.rank) if m != mode % plain.rank for n, step in plain.digits(m) if n > 1
    ]
    if isinstance(layout, Composed):
        rest += [1 << layout.swizzle.base, layout.offset]
    for step in (*rest, alignment):
        width = math.gcd(width, step)
    return width
