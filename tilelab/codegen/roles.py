"""Roles: which threads a group is, as a condition on an index that all threads of a warp agree on."""

from __future__ import annotations

import math
from typing import Any

from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir.statements import each_statement

__all__ = ["condition_of", "role_index"]


def _spans(printer: Any) -> list[tuple[int, int]]:
    found = [b.group_of(s) for s in each_statement(printer.frame.body)]
    return [(first, count) for _, first, count in (g for g in found if g is not None)]


def _unit(first: int, count: int, warp: int) -> int:
    """The largest of a warpgroup, a warp and a thread in which the group can be counted."""
    step = math.gcd(first, count)
    return 128 if step % 128 == 0 else warp if step % warp == 0 else 1


def role_index(printer: Any) -> str:
    """The declarations of the indices that the kernel's roles need, or nothing."""
    units = {_unit(first, count, printer.dialect.warp) for first, count in _spans(printer)}
    lines = []
    for word, unit in (("warpgroup", 128), ("warp", printer.dialect.warp)):
        if unit in units:
            value = printer.dialect.uniform(f"{thread(printer)} / {unit}", printer.use)
            lines.append(f"const int {word} = {value};")
            printer.expressions.uniform[thread(printer), unit] = word
    return "\n  ".join(lines)


def thread(printer: Any) -> str:
    """The thread's number in its block."""
    names = {launch.tag: launch.name for launch in printer.frame.launches}
    if any(f"threadIdx.{axis}" in names for axis in "yz"):
        raise InternalError("roles need a one-dimensional block")
    return names["threadIdx.x"]


def condition_of(printer: Any, first: int, count: int, after: int | None) -> str:
    """The test for a group; `after` is where the group printed just before it ends, which its `else` has
    excluded.

    Empty when the test would always hold.
    """
    _, outer_first, outer_count = printer.group
    end = first + count
    unit = _unit(first, count, printer.dialect.warp)
    index = {128: "warpgroup", printer.dialect.warp: "warp"}.get(unit) or thread(printer)
    low_known = first <= outer_first or after == first
    high_known = end >= outer_first + outer_count
    if count == unit and not (low_known and high_known):
        return f"{index} == {first // unit}"
    low = "" if low_known else f"{index} >= {first // unit}"
    high = "" if high_known else f"{index} < {end // unit}"
    return " && ".join(part for part in (low, high) if part)
