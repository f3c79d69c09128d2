"""Turn copies into each thread's loads and stores, or into asynchronous instructions.

Copies between memories go in chunks of `vector` elements, neighbouring chunks to neighbouring threads; asynchronous
ones issue `cp.async` for each chunk. Copies from and to fragments follow the fragment's layout, and copies between
fragments stay within each thread where its layouts agree, and go through a shared tile where they do not.

Before (cuda:sm_80, threads=32):

    S = T.alloc_buffer((128,), scope="shared.dyn", annotations={"tl.layout": "128:1"})
    T.copy(A[0:128], S[0:128], row="cp.async.16", vector=4)

After:

    S = T.alloc_buffer((128,), scope="shared.dyn", annotations={"tl.layout": "128:1"})
    T.issue(S[tx * 4:tx * 4 + 4], A[tx * 4:tx * 4 + 4], row="cp.async.16")
"""

from __future__ import annotations

from typing import Any

from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, parse, row_major
from tilelab.passes.base import Pass, because, slow, threads_of
from tilelab.passes.nests import register_index
from tilelab.passes.plan_layouts import layout_text
from tilelab.passes.share_out import chunk_loops, first_copy, fragment_loops, thread_number, tile_axes

__all__ = ["lower_copy"]


def _at(region: Region, axes: list[int], point: list[Any], lane: Any = None) -> list[Any]:
    where = [r.min for r in region.region]
    for axis, index in zip(axes, point, strict=True):
        where[axis] = where[axis] + index
    if lane is not None:
        where[-1] = where[-1] + lane
    return where


def _between_memories(call: TileCall, f: PrimFunc, scope: Scope) -> Stmt:
    src, dst = operand(call, "src"), operand(call, "dst")
    config = b.plain(call.config)
    vector, row = int(config["vector"]), str(config["row"])
    axes = tile_axes(src, dst)
    extents = [b.as_int(dst.region[axis].extent) or 1 for axis in axes[1]]
    threads = scope.group[2] if scope.group else threads_of(f)

    def make(point: list[Any]) -> Stmt:
        if row.startswith("cp.async"):
            parts = []
            for region, used in ((dst, axes[1]), (src, axes[0])):
                where = _at(region, used, point)
                parts.append(b.region(region.source, [*((w, 1) for w in where[:-1]), (where[-1], vector)]))
            return b.tile("issue", *parts, row=row)
        lane = b.var("lane") if vector > 1 else None
        value = b.load(src.source, _at(src, axes[0], point, lane))
        body: Stmt = b.store(dst.source, value, _at(dst, axes[1], point, lane))
        return body if lane is None else b.for_(lane, vector, body, b.VECTORIZED)

    return chunk_loops(extents, vector, threads, thread_number(f, scope), scope.bounds, make)


def _with_fragment(call: TileCall, f: PrimFunc, scope: Scope, layouts: dict[Var, Any]) -> Stmt:
    src, dst = operand(call, "src"), operand(call, "dst")
    is_source = isinstance(layouts.get(src.source), Fragment) and str(src.source.scope()) == "local"
    array, memory = (src.source, dst) if is_source else (dst.source, src)
    share = layouts[array]
    vector = int(b.plain(call.config)["vector"])
    used = [axis for axis, r in enumerate(memory.region) if b.as_int(r.extent) != 1]
    kept = [axis for axis, n in enumerate(share.tile) if n != 1]
    if len(used) != len(kept):
        raise InternalError(f"a copy between a fragment {share.tile} and {memory}")

    def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
        where = _at(memory, used, [point[axis] for axis in kept])
        if is_source:
            return b.store(memory.source, b.load(array, [value]), where)
        return b.store(array, b.load(memory.source, where), [value])

    thread = thread_number(f, scope)
    body = fragment_loops(share, vector, thread, scope.bounds, make)
    owner = first_copy(share, thread) if is_source else None
    return body if owner is None else b.if_(owner, body)


def _between_fragments(call: TileCall, layouts: dict[Var, Any], f: PrimFunc, scope: Scope) -> Stmt:
    src, dst = operand(call, "src").source, operand(call, "dst").source
    share, held = layouts[dst], layouts[src]
    axes = tuple(("nest", axis) for axis in range(len(share.tile)))

    thread = thread_number(f, scope)
    if not held.holds(share):
        return _through_shared(call, held, share, thread, scope)

    def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
        index = register_index(held, axes, share, value, point)
        return b.store(dst, b.load(src, [index]), [value])

    return fragment_loops(share, 1, thread, scope.bounds, make)


def _through_shared(call: TileCall, held: Fragment, share: Fragment, thread: Any, scope: Scope) -> Stmt:
    """A copy between fragments whose elements lie with other threads: written to a shared tile, read back."""
    src, dst = operand(call, "src").source, operand(call, "dst").source
    slow(f"{src.name} to {dst.name} goes through shared memory: {held} holds its elements in other threads than {share}",
         call.span)  # fmt: skip
    space = b.buffer(f"{dst.name}_exchange", share.tile, dtype_of(dst), "shared.dyn")

    def give(point: list[Any], value: Any, base: list[Any]) -> Stmt:
        return b.store(space, b.load(src, [value]), point)

    def take(point: list[Any], value: Any, base: list[Any]) -> Stmt:
        return b.store(dst, b.load(space, point), [value])

    writing = fragment_loops(held, 1, thread, scope.bounds, give)
    owner = first_copy(held, thread)
    return b.seq(
        b.alloc(space, layout=str(row_major(share.tile))),
        writing if owner is None else b.if_(owner, writing),
        fragment_loops(share, 1, thread, scope.bounds, take),
    )


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "copy":
            return None
        found.append(node)
        local = [r for r in (operand(node, "src"), operand(node, "dst")) if str(r.source.scope()) == "local"]
        if len(local) == 2:
            return _between_fragments(node, layouts, f, scope)
        return _with_fragment(node, f, scope, layouts) if local else _between_memories(node, f, scope)

    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no copy")
    return new


lower_copy = Pass("lower_copy", run, needs="threaded", gives="threaded")
