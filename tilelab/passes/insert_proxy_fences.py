"""Make what threads did to shared memory visible to the asynchronous proxy, before they hand it over.

Tensor memory copies and warpgroup matrix instructions reach shared memory through a proxy of their own. A
fence stands after the threads' last access of a tile that such an instruction reads (or, for reads,
overwrites) and before the barrier or arrival by which they hand it over; every thread that made such accesses
executes it.

Before (cuda:sm_90a, threads=128):

    S = T.alloc_buffer((2, 64), scope="shared.dyn", annotations={"tl.layout": "(2,64):(64,1)"})
    S[tx // 64, tx % 64] = A[tx]
    T.barrier()
    if tx == 0:
        T.issue(B[0:64], S[1, 0:64], row="tma.store.2d.1x64.float32.s0")

After:

    S = T.alloc_buffer((2, 64), scope="shared.dyn", annotations={"tl.layout": "(2,64):(64,1)"})
    S[tx // 64, tx % 64] = A[tx]
    T.fence(kind="proxy.async", why="S: written by threads, then used by tma.store.2d.1x64.float32.s0")
    T.barrier()
    if tx == 0:
        T.issue(B[0:64], S[1, 0:64], row="tma.store.2d.1x64.float32.s0")
"""

from __future__ import annotations

from typing import Any

from tilelab.hardware import row
from tilelab.ir import build as b
from tilelab.ir.nodes import (
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Region,
    SeqStmt,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
)
from tilelab.ir.rewrite import collect
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, flatten, seq, with_children
from tilelab.ir.tile_ops import op_of, reads, writes
from tilelab.passes.base import Pass, because, decide
from tilelab.passes.plan_shared_memory import bytes_of_tiles

__all__ = ["insert_proxy_fences"]

_MEETINGS = ("barrier", "mbarrier_arrive")
# What threads did to which tile, in words, since their last fence.
Pending = dict[Var, str]


def _row_of(node: TileCall) -> Any:
    return row(str(b.plain(node.config)["row"])) if op_of(node).name == "issue" else None


def _shared(regions: list[Any]) -> list[Var]:
    return [r.source for r in regions if isinstance(r, Region) and str(r.source.scope()) == "shared.dyn"]


class _Fences:
    """The tiles that asynchronous rows use, and the walk that puts fences before the meetings of threads."""

    def __init__(self, f: PrimFunc) -> None:
        self.read_by: dict[Var, str] = {}
        self.written_by: dict[Var, str] = {}
        for node in each_statement(f.body):
            if not isinstance(node, TileCall) or (instruction := _row_of(node)) is None:
                continue
            if instruction.proxy == "async":
                self.written_by |= dict.fromkeys(_shared(node.args[:1]), instruction.name)
                self.read_by |= dict.fromkeys(_shared(node.args[1:]), instruction.name)
        self.bytes = bytes_of_tiles(f)
        self.count = 0

    def _user(self, tile: Var, table: dict[Var, str]) -> str | None:
        """The asynchronous row of the table that uses bytes of a tile, or None."""
        first, end = self.bytes.get(tile, (0, 0))
        for other, name in table.items():
            low, high = self.bytes.get(other, (0, 0))
            if other.same_as(tile) or (first < high and low < end):
                return name
        return None

    def accesses(self, node: Stmt) -> Pending:
        """The accesses by threads, in one statement, of tiles that asynchronous rows use."""
        done, seen = [], [x.source for x in collect(node, Load)]
        if isinstance(node, Store):
            done.append(node.buffer)
        if isinstance(node, TileCall):
            instruction = _row_of(node)
            if instruction is None:
                done += [r.source for r in writes(node)]
                seen += [r.source for r in reads(node)]
            elif instruction.proxy != "async":
                done += _shared(node.args[:1])
                seen += _shared(node.args[1:])
        found: Pending = {}
        for tile in seen:
            if (name := self._user(tile, self.written_by)) is not None:
                found[tile] = f"{tile.name}: read by threads, then overwritten by {name}"
        for tile in done:
            name = self._user(tile, self.read_by) or self._user(tile, self.written_by)
            if name is not None:
                found[tile] = f"{tile.name}: written by threads, then used by {name}"
        return found

    def walk(self, node: Stmt, pending: Pending) -> tuple[Stmt, Pending]:
        """The statement with fences, and what is left to be fenced after it."""
        if isinstance(node, SeqStmt):
            parts: list[Stmt] = []
            after: Pending = {}
            for part in flatten(node):
                if b.group_of(part) is None:
                    new, pending = self.walk(part, pending)
                else:
                    new, left = self.walk(part, {})
                    after |= left
                parts.append(new)
            return seq(*parts, span=node.span), pending | after
        if self._is_meeting(node) and pending:
            return seq(self._fence(pending), *self.walk(node, {})[:1]), {}
        if isinstance(node, For | While):
            return self._loop(node, pending)
        if isinstance(node, IfThenElse):
            walked = [self.walk(kid, pending) for kid in children(node)]
            left = {} if node.else_case is not None else dict(pending)
            for _, more in walked:
                left |= more
            return with_children(node, tuple(new for new, _ in walked)), left
        if children(node):
            new, left = self.walk(children(node)[0], pending)
            return with_children(node, (new,)), left
        return self._leaf(node, pending)

    def _leaf(self, node: Stmt, pending: Pending) -> tuple[Stmt, Pending]:
        if isinstance(node, TileCall):
            if op_of(node).name == "fence" and b.plain(node.config).get("kind") == "proxy.async":
                return node, {}
            instruction = _row_of(node)
            if instruction is not None and instruction.proxy == "async":
                used = {t for t in _shared(list(node.args)) if t in pending}
                if used:
                    return seq(self._fence({t: pending[t] for t in used}), node), {}
        return node, pending | self.accesses(node)

    def _loop(self, node: For | While, pending: Pending) -> tuple[Stmt, Pending]:
        """A loop's body also follows itself: what its end leaves is pending at its start."""
        before = self.count
        body, left = self.walk(node.body, pending)
        if not set(left) <= set(pending):
            self.count = before
            body, left = self.walk(node.body, pending | left)
        return with_children(node, (body,)), pending | left

    def _is_meeting(self, node: Stmt) -> bool:
        """A barrier or an arrival, also one that only some threads make."""
        if isinstance(node, TileCall):
            return op_of(node).name in _MEETINGS
        if isinstance(node, IfThenElse):
            inner = [s for s in each_statement(node) if not children(s)]
            return any(isinstance(s, TileCall) and op_of(s).name in _MEETINGS for s in inner)
        return False

    def _fence(self, pending: Pending) -> Stmt:
        self.count += 1
        why = "; ".join(pending.values())
        decide(f"a proxy fence for {why}")
        with at(None):
            return b.tile("fence", kind="proxy.async", why=why)


def run(f: PrimFunc) -> PrimFunc:
    fences = _Fences(f)
    if not (fences.read_by or fences.written_by):
        because("nothing reaches shared memory through the asynchronous proxy")
        return f
    body, _ = fences.walk(f.body, {})
    if not fences.count:
        because("threads themselves touch no tile that the asynchronous proxy uses")
        return f
    return f.with_body(body)


insert_proxy_fences = Pass("insert_proxy_fences", run, needs="synced", gives="synced")
