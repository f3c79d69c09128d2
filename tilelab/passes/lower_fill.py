"""Turn fills into stores: each thread sets its own registers, or its chunks of a shared or global tile.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    T.fill(F[0:2], T.float32(0))

After:

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    for v in T.unroll(2):
        F[v] = T.float32(0)
"""

from __future__ import annotations

from typing import Any

from tilelab.hardware import bits
from tilelab.ir import build as b
from tilelab.ir.indices import add
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import parse
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, threads_of
from tilelab.passes.plan_copies import alignment_of
from tilelab.passes.share_out import chunk_loops, thread_number, tile_axes

__all__ = ["lower_fill"]


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "fill":
            return None
        found.append(node)
        dst, value = (
            operand(node, "dst"),
            b.cast(dtype_of(operand(node, "dst").source), operand(node, "value")),
        )
        if str(dst.source.scope()).startswith("local"):
            return _registers(dst, value)
        threads = scope.group[2] if scope.group else threads_of(f)
        (axes,) = tile_axes(dst)
        extents = [b.as_int(dst.region[axis].extent) or 1 for axis in axes]
        size = max(bits(dtype_of(dst.source)) // 8, 1)
        vector = max(1, alignment_of(dst, scope.bounds, layouts.get(dst.source)) // size)
        while extents[-1] % vector:
            vector //= 2

        def make(point: list[Any]) -> Stmt:
            lane = b.var("lane")
            where = [r.min for r in dst.region]
            for axis, index in zip(axes, point, strict=True):
                where[axis] = where[axis] + index
            if vector == 1:
                return b.store(dst.source, value, where)
            where[-1] = where[-1] + lane
            return b.for_(lane, vector, b.store(dst.source, value, where), b.VECTORIZED)

        return chunk_loops(extents, vector, threads, thread_number(f, scope), scope.bounds, make)

    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no fill")
    return new


def _registers(part: Region, value: Any) -> Stmt:
    """A thread's own registers set one by one."""
    loops: list[tuple[Any, int]] = []
    where = []
    for number, r in enumerate(part.region):
        extent = b.as_int(r.extent) or 1
        index = b.var("v" if len(part.region) == 1 else f"v{number}")
        where.append(add(*([index] if extent > 1 else []), *([] if b.as_int(r.min) == 0 else [r.min])))
        if extent > 1:
            loops.append((index, extent))
    body: Stmt = b.store(part.source, value, where)
    for index, extent in reversed(loops):
        body = b.for_(index, extent, body, b.UNROLLED)
    return body


lower_fill = Pass("lower_fill", run, needs="threaded", gives="threaded")
