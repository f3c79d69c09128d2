"""Let each role take or give up registers, as many as its scope `tl.registers` says, at its very start.

A block's threads start with equal shares of the multiprocessor's registers; a role that only issues loads
needs few, one that holds an accumulator many.

Before (cuda:sm_90a, threads=384):

    with T.attr({"tl.group": "producer:0:128"}):
        with T.attr({"tl.registers": 40}):
            A[0] = T.float32(0)
    with T.attr({"tl.group": "consumers:128:256"}):
        with T.attr({"tl.registers": 232}):
            B[tx - 128] = T.float32(0)

After:

    with T.attr({"tl.group": "producer:0:128"}):
        with T.attr({"tl.registers": 40}):
            T.set_max_registers(count=40, increase=False)
            A[0] = T.float32(0)
    with T.attr({"tl.group": "consumers:128:256"}):
        with T.attr({"tl.registers": 232}):
            T.set_max_registers(count=232, increase=True)
            B[tx - 128] = T.float32(0)
"""

from __future__ import annotations

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AttrStmt, PrimFunc, Stmt
from tilelab.ir.scoped import Scope, map_inside, map_scoped
from tilelab.ir.spans import at
from tilelab.ir.statements import seq, with_children
from tilelab.passes.base import Pass, because, decide, threads_of

__all__ = ["insert_register_limits"]

REGISTERS = 65536  # of a multiprocessor of sm_90; a block that moves registers has it to itself
STEP = 8  # counts that setmaxnreg takes are multiples of this, from 24 to 240


def run(f: PrimFunc) -> PrimFunc:
    threads = threads_of(f)
    share = REGISTERS // threads // STEP * STEP
    wanted: list[tuple[str, int, int]] = []

    def limit(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, AttrStmt) or str(node.attr_key) != "tl.registers" or scope.group is None:
            return None
        name, _, count = scope.group
        registers = b.as_int(node.value) or 0
        if registers % STEP or not 24 <= registers <= 240 or count % 128:
            raise TileError(
                "TL302",
                f"{name}: {count} threads of {registers} registers; warpgroups take 24 to 240 by {STEP}s",
            )
        wanted.append((name, count, registers))
        with at(None):
            first = b.tile("set_max_registers", count=registers, increase=registers > share)
        return with_children(node, (seq(first, map_inside(node.body, scope, limit)),))

    new = map_scoped(f, limit)
    if not wanted:
        because("no role asks for registers of its own")
        return f
    total = sum(count * registers for _, count, registers in wanted)
    listed = ", ".join(f"{name} {registers}" for name, _, registers in wanted)
    if total > REGISTERS or sum(count for _, count, _ in wanted) != threads:
        raise TileError(
            "TL302",
            f"roles of {threads} threads in all ask for {total} of {REGISTERS} registers: {listed} a thread",
            help="let every role say how many it needs, and let them add up to no more",
        )
    decide(f"registers a thread: {listed}; {share} at the start")
    return new


insert_register_limits = Pass("insert_register_limits", run, needs="threaded", gives="threaded")
