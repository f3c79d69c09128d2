"""Nests of parallel loops: what they access, and how each thread does its share of them.

A nest's share is described by a fragment over its loop variables: (thread, value) → point of the nest. A
fragment buffer used in the nest must keep the elements of a thread's points in that thread's registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.indices import add
from tilelab.ir.nodes import For, ForKind, Load, Region, Stmt, Store, TileCall, Var
from tilelab.ir.rewrite import walk
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement
from tilelab.layout import Fragment, from_digits

__all__ = [
    "Access", "Nest", "accesses", "axes_of", "carried_to_buffer", "carried_to_nest", "is_nest", "nest_of",
    "register_index",
]  # fmt: skip


@dataclass(frozen=True)
class Nest:
    """A nest: its loop variables, their extents, and the body."""

    loop_vars: tuple[Var, ...]
    extents: tuple[int, ...]
    body: Stmt
    loop: For


@dataclass(frozen=True)
class Access:
    """One access inside a nest: buffer, indices, whether it writes, and the node."""

    buffer: Var
    indices: tuple[Any, ...]
    is_write: bool
    node: Any


def is_nest(node: Any) -> bool:
    """Whether the statement is the outermost loop of a nest."""
    return isinstance(node, For) and node.kind == ForKind.PARALLEL


def nest_of(loop: For) -> Nest:
    """The nest that starts at `loop`. Raises TL205 when an extent is not known."""
    loop_vars, extents = [], []
    node: Stmt = loop
    while is_nest(node):
        extent = b.as_int(node.extent)
        if extent is None:
            raise TileError(
                "TL205",
                f"the extent {node.extent} of a parallel loop is not known when the kernel is compiled",
                places=tuple(p for p in (place_of(loop.span),) if p),
                help="give T.Parallel constant extents and guard the body with an if",
            )
        loop_vars.append(node.loop_var)
        extents.append(extent)
        node = node.body
    return Nest(tuple(loop_vars), tuple(extents), node, loop)


def accesses(body: Stmt) -> list[Access]:
    """Every element access of loads, stores and one-element regions of tile operations."""
    found: list[Access] = []
    for statement in each_statement(body):
        if isinstance(statement, Store):
            found.append(Access(statement.buffer, tuple(statement.indices), True, statement))
        if isinstance(statement, TileCall):
            regions = [arg for arg in statement.args if isinstance(arg, Region)]
            found += [Access(a.source, tuple(r.min for r in a.region), True, statement) for a in regions]

    def note(load: Load) -> None:
        found.append(Access(load.source, tuple(load.indices), False, load))

    walk(body, (Load, note))
    return found


def axes_of(access: Access, nest: Nest) -> tuple[tuple[str, Any], ...] | None:
    """How each index of a fragment access follows the nest: ("nest", axis), ("inner", extent) or ("zero", 0).

    An inner index is the variable of a serial loop inside the nest. None when an index is anything else, or
    when two indices follow the same loop.
    """
    inner = {
        node.loop_var: b.as_int(node.extent)
        for node in each_statement(nest.body)
        if isinstance(node, For) and b.as_int(node.min) == 0
    }
    out: list[tuple[str, Any]] = []
    for index in access.indices:
        if b.as_int(index) == 0:
            out.append(("zero", 0))
            continue
        axis = next((i for i, v in enumerate(nest.loop_vars) if index.same_as(v)), None)
        if axis is not None:
            out.append(("nest", axis))
            continue
        extent = next((n for v, n in inner.items() if index.same_as(v)), None)
        if extent is None:
            return None
        out.append(("inner", extent))
    used = [at for kind, at in out if kind == "nest"]
    return tuple(out) if len(set(used)) == len(used) else None


def carried_to_buffer(share: Fragment, axes: Sequence[tuple[str, Any]], shape: tuple[int, ...]) -> Fragment:
    """The fragment of a buffer whose elements stay with the threads of the nest's share.

    Nest axes that the buffer lacks become replication; axes walked by inner loops are held whole by each
    thread.
    """
    where = {at: axis for axis, (kind, at) in enumerate(axes) if kind == "nest"}
    pieces = []
    for source, size, stride, axis in share.pieces():
        if stride and axis in where:
            pieces.append((source, size, stride, where[axis]))
        elif source == "thread":
            pieces.append(("thread", size, 0, 0))
    pieces += [("value", shape[axis], 1, axis) for axis, (kind, _) in enumerate(axes) if kind == "inner"]
    return from_digits(shape, pieces)


def carried_to_nest(
    fragment: Fragment, axes: Sequence[tuple[str, Any]], extents: tuple[int, ...]
) -> Fragment | None:
    """A share of the nest under which the buffer's elements are with the threads that need them.

    Nest axes that the buffer lacks are spread over threads that hold copies where those divide the extent,
    and otherwise walked by each thread. None when an axis of the buffer is walked by an inner loop but spread
    over threads.
    """
    where = {axis: at for axis, (kind, at) in enumerate(axes) if kind == "nest"}
    free = {axis: 1 for axis in range(len(extents)) if axis not in where.values()}
    pieces = []
    for source, size, stride, axis in fragment.pieces():
        if stride and axis in where:
            pieces.append((source, size, stride, where[axis]))
        elif stride and source == "thread":
            return None
        elif source == "thread":
            axis, size_here = _spread(free, extents, size)
            pieces.append((source, size, size_here, axis) if axis >= 0 else (source, size, 0, 0))
    for axis, done in free.items():
        pieces.append(("value", extents[axis] // done, done, axis))
    return from_digits(extents, pieces)


def _spread(free: dict[int, int], extents: tuple[int, ...], size: int) -> tuple[int, int]:
    """Take a replicated thread digit for a free axis, the last first: (axis, stride), or (-1, 0) if none
    fits.
    """
    for axis in sorted(free, reverse=True):
        done = free[axis]
        if extents[axis] % (done * size) == 0:
            free[axis] = done * size
            return axis, done
    return -1, 0


def register_index(
    fragment: Fragment,
    axes: Sequence[tuple[str, Any]],
    share: Fragment,
    value: Any,
    inner: Sequence[Any],
) -> Any:
    """The register of a thread that holds the accessed element, from the nest's value number and inner
    indices.

    `inner[axis]` is the index expression of an axis walked by an inner loop. Raises ValueError when a
    register number would depend on the thread, that is when the element lies with another thread.
    """
    terms = []
    for digit in fragment.place_digits("value"):
        kind, at = axes[digit.axis]
        if kind == "inner":
            part = b.floormod(b.floordiv(inner[digit.axis], digit.divisor), digit.size)
            terms.append(part * digit.weight)
        elif kind == "nest":
            terms += _register_terms(digit, share.axis_digits(at), value, share.values)
    return add(*terms)


def _register_terms(digit: Any, digits: Any, value: Any, values: int) -> list[Any]:
    terms = []
    low, high = digit.divisor, digit.divisor * digit.size
    for source, divisor, size, stride in digits:
        first, last = max(stride, low), min(stride * size, high)
        if first >= last:
            continue
        if first % stride or last % first or first % low:
            raise ValueError(f"digits {stride}x{size} and {low}x{digit.size} do not meet")
        if source == "thread":
            raise ValueError("the element lies in another thread's registers")
        count = last // first
        part = b.floordiv(value, divisor * (first // stride))
        if divisor * (first // stride) * count < values:
            part = b.floormod(part, count)
        terms.append(part * (first // low * digit.weight))
    return terms
