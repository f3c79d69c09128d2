"""Whole-number arithmetic for sizes, under TileLang's name for it: `tilelang.math.next_power_of_2(n)`."""

from __future__ import annotations

from tilelab.errors import TileError

__all__ = ["cdiv", "next_power_of_2"]


def cdiv(a: int, b: int) -> int:
    """⌈a / b⌉ of whole numbers."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least `n`; TL103 where `n` is no whole number above zero."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise TileError("TL103", f"next_power_of_2({n!r}): a whole number above zero is needed")
    return 1 << (n - 1).bit_length()
