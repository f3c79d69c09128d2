"""Sharing work out over the threads of a block: the loops by which each thread does its part of a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, add, digit_sum
from tilelab.ir.nodes import AttrStmt, PrimFunc, Region, Stmt
from tilelab.ir.scoped import Scope
from tilelab.ir.statements import each_statement
from tilelab.layout import Fragment

__all__ = ["chunk_loops", "elected", "first_copy", "fragment_loops", "thread_number", "tile_axes", "warp_of"]

Make = Callable[[list[Any], Any, Any], Stmt]


def thread_number(f: PrimFunc, scope: Scope | None = None) -> Any:
    """The thread's number within its block, or within its group: x fastest, then y, then z."""
    total: Any = None
    step = 1
    for node in each_statement(f.body):
        if not isinstance(node, AttrStmt) or str(node.attr_key) != "thread_extent":
            continue
        if not str(node.node.thread_tag).startswith("threadIdx"):
            continue
        extent = b.as_int(node.value)
        if total is None:
            total = node.node.var
        elif extent != 1:
            total = total + node.node.var * step
        step *= extent or 1
    if scope is not None and scope.group is not None and scope.group[1]:
        total = total - scope.group[1]
    return 0 if total is None else total


def elected(f: PrimFunc, scope: Scope) -> Any:
    """The condition that this is the first thread of its group: the one that speaks for all of them."""
    return scope.bounds.simplify(thread_number(f, scope) == 0)


def tile_axes(*regions: Region) -> tuple[list[int], ...]:
    """For each region the axes that make up the common tile: leading axes of extent 1 are left out first."""
    rank = max(1, *(sum(b.as_int(r.extent) != 1 for r in region.region) for region in regions))
    out = []
    for region in regions:
        axes = list(range(len(region.region)))
        for axis in list(axes):
            if len(axes) == rank:
                break
            if b.as_int(region.region[axis].extent) == 1:
                axes.remove(axis)
        out.append(axes)
    return tuple(out)


def first_copy(share: Fragment, thread: Any) -> Any:
    """The condition that this thread is the first of those that hold the same points; None when none do."""
    conditions = []
    divisor = 1
    for source, size, stride, _ in share.pieces():
        if source != "thread":
            continue
        if stride == 0 and size > 1:
            digit = b.floormod(b.floordiv(thread, divisor), size)
            conditions.append(digit == 0)
        divisor *= size
    return b.all_of(conditions)


def fragment_loops(
    share: Fragment, vector: int, thread: Any, bounds: Bounds, make: Make, name: str = "v"
) -> Stmt:
    """Loops over a thread's points of a tile, `vector` of them at a time.

    `make(point, value, base)` gives the statement for a point: its coordinates and value number, and the
    coordinates of the vector's first point, from which alignment is judged.
    """
    count = share.values // vector
    outer, lane = b.var(name), b.var(f"{name}_lane")
    known = []
    if count > 1:
        known.append((outer, 0, count))
    if vector > 1:
        known.append((lane, 0, vector))
    inner = bounds.with_variables(known)
    first = outer * vector if vector > 1 and count > 1 else (outer if count > 1 else 0)
    value = add(first, lane) if vector > 1 else first

    def point(number: Any) -> list[Any]:
        return [
            inner.simplify(digit_sum(share.axis_digits(axis), thread, number, share.threads, share.values))
            for axis in range(len(share.tile))
        ]

    body = make(point(value), value, point(first))
    if vector > 1:
        body = b.for_(lane, vector, body, b.VECTORIZED)
    return b.for_(outer, count, body, b.UNROLLED) if count > 1 else body


def chunk_loops(
    extents: Sequence[int],
    vector: int,
    threads: int,
    thread: Any,
    bounds: Bounds,
    make: Callable[[list[Any]], Stmt],
    name: str = "c",
) -> Stmt:
    """Loops over a tile in chunks of `vector` elements along its last axis, neighbours to neighbouring
    threads.

    `make(point)` gives the statement for a chunk from its first point. Threads beyond the last chunk do
    nothing.
    """
    sizes = [*extents[:-1], extents[-1] // vector]
    total = prod(sizes)
    rounds = -(-total // threads)
    step = b.var(name)
    inner = bounds.with_variables([(step, 0, rounds)])
    number: Any = add(step * threads if rounds > 1 else 0, thread)
    point: list[Any] = []
    rest = number
    for axis in range(len(sizes) - 1, 0, -1):
        digit = b.floormod(rest, sizes[axis])
        point.append(digit * vector if axis == len(sizes) - 1 else digit)
        rest = b.floordiv(rest, sizes[axis])
    point.append(rest * vector if len(sizes) == 1 else rest)
    simple = [inner.simplify(p) for p in reversed(point)]
    body = make(simple)
    if total % threads:
        body = b.if_(inner.simplify(number) < total, body)
    if rounds > 1:
        return b.for_(step, rounds, body, b.UNROLLED if rounds <= 16 else b.SERIAL)
    return body


def warp_of(thread: Any, width: int) -> tuple[Any, Any]:
    """(warp number, lane) of a thread, for warps of `width` threads."""
    return b.floordiv(thread, width), b.floormod(thread, width)
