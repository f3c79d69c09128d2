"""Turn copies into each thread's loads and stores, or into asynchronous instructions.

Copies between memories go in chunks of `vector` elements, neighbouring chunks to neighbouring threads;
asynchronous ones issue `cp.async` for each chunk. The tensor memory accelerator takes whole boxes from one
elected thread: a load lands in the slot of its channel, a store is waited for until its shared memory has
been read. Copies from and to fragments follow the fragment's layout, and copies between fragments stay within
each thread where its layouts agree, and go through a shared tile where they do not.

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
from tilelab.hardware import Completes, bits, row
from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Region, SeqStmt, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.statements import each_statement, flatten
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, crosswise_tile, parse
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, slow, threads_of
from tilelab.passes.nests import register_index
from tilelab.passes.share_out import (
    chunk_loops,
    elected,
    first_copy,
    fragment_loops,
    thread_number,
    tile_axes,
)

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


def _in_boxes(call: TileCall, f: PrimFunc, scope: Scope, slot: Region | None) -> Stmt:
    """A copy by the tensor memory accelerator: the boxes of the tile, all issued by one thread."""
    src, dst = operand(call, "src"), operand(call, "dst")
    instruction = row(str(b.plain(call.config)["row"]))
    is_load = instruction.completes is Completes.MBARRIER
    box = (instruction.d if is_load else instruction.a).tile
    if is_load and slot is None:
        raise InternalError(f"a load by {instruction.name} outside of any acquire and commit: {call}")
    axes = tile_axes(src, dst)
    extents = [b.as_int(dst.region[axis].extent) or 1 for axis in axes[1]]
    if len(extents) != 2 or any(n % size for n, size in zip(extents, box, strict=True)):
        raise InternalError(f"a tile of {extents} does not consist of boxes of {box}: {call}")
    counts = [n // size for n, size in zip(extents, box, strict=True)]
    number = [b.var(name) if count > 1 else 0 for name, count in zip("ij", counts, strict=True)]

    def part(region: Region, used: list[int]) -> Region:
        ranges = [(r.min, 1) for r in region.region]
        for axis, index, size in zip(used, number, box, strict=True):
            start = region.region[axis].min
            ranges[axis] = (
                scope.bounds.simplify(start + index * size) if not isinstance(index, int) else start,
                size,
            )
        return b.region(region.source, ranges)

    body: Stmt = b.tile(
        "issue", part(dst, axes[1]), part(src, axes[0]), *([slot] if is_load else []), row=instruction.name
    )
    for index, count in reversed(list(zip(number, counts, strict=True))):
        if not isinstance(index, int):
            body = b.for_(index, count, body, b.UNROLLED)
    if not is_load:
        done = b.tile("wait_group", kind="bulk.read", pending=0)
        body = b.seq(body, b.tile("commit_group", kind="bulk"), done)
    return b.if_(elected(f, scope), body)


def _slots(f: PrimFunc) -> dict[TileCall, Region]:
    """For each copy of a channel the slot that it fills: that of the acquire before it in its sequence."""
    found: dict[TileCall, Region] = {}
    for node in each_statement(f.body):
        if not isinstance(node, SeqStmt):
            continue
        slots: dict[str, Region] = {}
        for part in flatten(node):
            if not isinstance(part, TileCall):
                continue
            if op_of(part).name == "acquire":
                slots[str(operand(part, "channel").source.name)] = operand(part, "channel")
            elif op_of(part).name == "copy" and (name := b.plain(part.config).get("channel")) in slots:
                found[part] = slots[name]
    return found


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
    slow(
        f"{src.name} to {dst.name} goes through shared memory: "
        f"{held} holds its elements in other threads than {share}",
        call.span,
    )
    space = b.buffer(f"{dst.name}_exchange", share.tile, dtype_of(dst), "shared.dyn")

    def give(point: list[Any], value: Any, base: list[Any]) -> Stmt:
        return b.store(space, b.load(src, [value]), point)

    def take(point: list[Any], value: Any, base: list[Any]) -> Stmt:
        return b.store(dst, b.load(space, point), [value])

    writing = fragment_loops(held, 1, thread, scope.bounds, give)
    owner = first_copy(held, thread)
    return b.seq(
        b.alloc(space, layout=str(crosswise_tile(share.tile, bits(dtype_of(dst))))),
        writing if owner is None else b.if_(owner, writing),
        fragment_loops(share, 1, thread, scope.bounds, take),
    )


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []
    slots = _slots(f)

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "copy":
            return None
        found.append(node)
        if str(b.plain(node.config).get("row", "")).startswith("tma."):
            return _in_boxes(node, f, scope, slots.get(node))
        local = [r for r in (operand(node, "src"), operand(node, "dst")) if str(r.source.scope()) == "local"]
        if len(local) == 2:
            return _between_fragments(node, layouts, f, scope)
        return _with_fragment(node, f, scope, layouts) if local else _between_memories(node, f, scope)

    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no copy")
    return new


lower_copy = Pass("lower_copy", run, needs="threaded", gives="threaded")
