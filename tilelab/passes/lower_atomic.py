"""Turn atomic additions of whole tiles into one addition an element, each made by the thread that holds it.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    T.atomic_add(A[0:64], F[0:2])

After:

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    for v in T.unroll(2):
        T.atomic_add(A[tx * 2 + v], F[v])
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, parse
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, threads_of
from tilelab.passes.share_out import chunk_loops, first_copy, fragment_loops, thread_number, tile_axes

__all__ = ["lower_atomic"]


def _is_tile(call: TileCall) -> bool:
    value = operand(call, "value")
    return isinstance(value, Region) or any(b.as_int(r.extent) != 1 for r in operand(call, "dst").region)


def _element(call: TileCall, where: list[Any], value: Any) -> Stmt:
    dst = operand(call, "dst").source
    config = b.plain(call.config)
    return b.tile(
        "atomic_add", b.region(dst, [(w, 1) for w in where]), b.cast(dtype_of(dst), value), **config
    )


def _from_memory(f: PrimFunc, call: TileCall, scope: Scope) -> Stmt:
    """Each thread adds its chunks of a tile in memory, or of one value."""
    dst, value = operand(call, "dst"), operand(call, "value")
    regions = (dst, value) if isinstance(value, Region) else (dst,)
    axes = tile_axes(*regions)
    extents = [b.as_int(dst.region[axis].extent) or 1 for axis in axes[0]]

    def make(point: list[Any]) -> Stmt:
        places = []
        for region, used in zip(regions, axes, strict=True):
            where = [r.min for r in region.region]
            for axis, index in zip(used, point, strict=True):
                where[axis] = where[axis] + index
            places.append(where)
        element = b.load(value.source, places[1]) if len(places) > 1 else value
        return _element(call, places[0], element)

    threads = scope.group[2] if scope.group else threads_of(f)
    return chunk_loops(extents, 1, threads, thread_number(f, scope), scope.bounds, make)


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def from_registers(call: TileCall, share: Fragment, scope: Scope) -> Stmt:
        dst, array = operand(call, "dst"), operand(call, "value").source
        used = [axis for axis, r in enumerate(dst.region) if b.as_int(r.extent) != 1]
        kept = [axis for axis, n in enumerate(share.tile) if n != 1]
        thread = thread_number(f, scope)

        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            where = [r.min for r in dst.region]
            for axis, coordinate in zip(used, kept, strict=True):
                where[axis] = where[axis] + point[coordinate]
            return _element(call, where, b.load(array, [value]))

        body = fragment_loops(share, 1, thread, scope.bounds, make)
        owner = first_copy(share, thread)
        return body if owner is None else b.if_(owner, body)

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "atomic_add" or not _is_tile(node):
            return None
        found.append(node)
        value = operand(node, "value")
        share = layouts.get(value.source) if isinstance(value, Region) else None
        if isinstance(share, Fragment) and str(value.source.scope()) == "local":
            return from_registers(node, share, scope)
        return _from_memory(f, node, scope)

    new = map_scoped(f, rule)
    if not found:
        because("the kernel adds no whole tile atomically")
    return new


lower_atomic = Pass("lower_atomic", run, needs="threaded", gives="threaded")
