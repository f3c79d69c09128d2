"""Reading layouts back from their strings; `parse(str(x)) == x` for every layout, swizzled layout and
fragment.

((4,8),(2,2)):((32,1),(16,8))                       Layout
S<3,3,3>o(64,(64,4)):(64,(1,4096))                  Composed (with an offset: S<3,3,3>o128o…)
(16,8)@((4,8),(2,2)):((32,1),(16,8))                Fragment
"""

from __future__ import annotations

import re
from functools import cache

from tilelab.layout.fragment import Fragment
from tilelab.layout.layout import Layout
from tilelab.layout.swizzle import Composed, Swizzle
from tilelab.layout.tuples import IntTuple, leaves

__all__ = ["parse"]

_SWIZZLED = re.compile(r"S<(\d+),(\d+),(\d+)>(?:o(\d+))?o(.*)")
_BLANK = re.compile(r"\s*([(),:@])\s*")
_TOKEN = re.compile(r"\d+|[(),]")


@cache
def parse(text: str) -> Layout | Composed | Fragment:
    """The layout, swizzled layout or fragment that a string describes. Raises ValueError if it is none."""
    squeezed = _BLANK.sub(r"\1", text.strip())
    if "@" in squeezed:
        shape, _, rest = squeezed.partition("@")
        extents = _tuple(shape)
        layout = _layout(rest)
        if isinstance(extents, int) or any(isinstance(extent, tuple) for extent in extents):
            raise ValueError(f"a fragment's tile is a flat tuple, not {shape!r}")
        return Fragment(tuple(leaves(extents)), layout)
    if match := _SWIZZLED.fullmatch(squeezed):
        bits, base, shift = (int(match[i]) for i in (1, 2, 3))
        return Composed(Swizzle(bits, base, shift), int(match[4] or 0), _layout(match[5]))
    return _layout(squeezed)


def _layout(text: str) -> Layout:
    shape, colon, stride = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is no layout: there is no ':' between shape and stride")
    return Layout(_tuple(shape), _tuple(stride))


def _tuple(text: str) -> IntTuple:
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text or not tokens:
        raise ValueError(f"{text!r} is no nested tuple of integers")
    value, end = _read(tokens, 0)
    if end != len(tokens):
        raise ValueError(f"{text!r} goes on after its end")
    return value


def _read(tokens: list[str], at: int) -> tuple[IntTuple, int]:
    if at < len(tokens) and tokens[at].isdigit():
        return int(tokens[at]), at + 1
    if at >= len(tokens) or tokens[at] != "(":
        raise ValueError(f"expected a number or '(' in {''.join(tokens)!r}")
    at += 1
    out: list[IntTuple] = []
    while at < len(tokens) and tokens[at] != ")":
        value, at = _read(tokens, at)
        out.append(value)
        if at < len(tokens) and tokens[at] == ",":
            at += 1
        elif at >= len(tokens) or tokens[at] != ")":
            raise ValueError(f"expected ',' or ')' in {''.join(tokens)!r}")
    if at >= len(tokens) or not out:
        raise ValueError(f"unfinished or empty tuple in {''.join(tokens)!r}")
    return tuple(out), at + 1
