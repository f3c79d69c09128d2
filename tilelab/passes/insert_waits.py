"""Make the completion of asynchronous copies explicit: channels carried by `cp.async` become commit and wait
groups.

A commit closes a group of the copies issued since the last; a wait lets `pending` newer groups stay open. A
block's single group of threads needs no more than that from a channel: the barrier after a wait comes from
`insert_barriers`.

Before (cuda:sm_80):

    loads = T.alloc_buffer((2,), "uint64", scope="shared.barrier", annotations={"tl.transport": "cp.async"})
    for k in T.serial(4):
        T.commit(loads[k % 2])
        T.wait(loads[k % 2], k // 2 % 2, pending=1)

After:

    for k in T.serial(4):
        T.commit_group(kind="cp.async")
        T.wait_group(kind="cp.async", pending=1)
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, PrimFunc, Region, Stmt, TileCall, Var
from tilelab.ir.rewrite import rewrite
from tilelab.ir.scoped import allocations
from tilelab.ir.tile_ops import op_of
from tilelab.passes.base import Pass, because

__all__ = ["insert_waits"]


def run(f: PrimFunc) -> PrimFunc:
    transports = {
        a.buffer: str(b.plain(a.annotations)["tl.transport"])
        for a in allocations(f)
        if "tl.transport" in b.plain(a.annotations)
    }
    if not transports:
        because("no copy is asynchronous")
        return f

    def transport(call: TileCall) -> str | None:
        first = call.args[0] if call.args else None
        if not isinstance(first, Region):
            return None
        source: Var = first.source
        return transports.get(source)

    def as_group(call: TileCall) -> Stmt | None:
        if transport(call) != "cp.async":
            return None
        name = op_of(call).name
        if name == "commit":
            return b.tile("commit_group", kind="cp.async")
        if name == "wait":
            return b.tile("wait_group", kind="cp.async", pending=int(b.plain(call.config).get("pending", 0)))
        return b.seq()

    def without_memory(node: AllocBuffer) -> Stmt | None:
        return b.seq() if transports.get(node.buffer) == "cp.async" else None

    return rewrite(f, (TileCall, as_group), (AllocBuffer, without_memory))


insert_waits = Pass("insert_waits", run, needs="threaded", gives="threaded")
