"""Turn each planned loop into its pipelined form: a ring of slots, a prologue that fills it, and guarded
loads ahead.

In iteration k the statements with `ahead` a work for iteration k + a; tile buffers that they fill get `depth`
slots, and iteration j uses slot j mod depth. `order` says which statements of an iteration's work come first.
With transport `cp.async` a channel says when a slot's data was committed and waits for it; the barrier that
makes other threads' copies visible is put in later, where the accesses are known.

Before (cuda:sm_80):

    S = T.alloc_buffer((32,), scope="shared.dyn", annotations={"tl.layout": "32:1"})
    F = T.alloc_buffer((32,), scope="local.fragment", annotations={"tl.layout": "(32,)@(32,1):(1,0)"})
    for k in T.serial(4, annotations={"tl.num_stages": 2, "tl.pipeline": {"ahead": [1, 0], "depth": 2, "transport": "cp.async"}}):
        T.copy(A[k * 32:k * 32 + 32], S[0:32])
        T.copy(S[0:32], F[0:32])

After:

    k_loads = T.alloc_buffer((2,), "uint64", scope="shared.barrier", annotations={"tl.transport": "cp.async"})
    S = T.alloc_buffer((2, 32), scope="shared.dyn", annotations={"tl.layout": "(2,32):(32,1)"})
    F = T.alloc_buffer((32,), scope="local.fragment", annotations={"tl.layout": "(32,)@(32,1):(1,0)"})
    for k_ahead in T.unroll(1):
        T.copy(A[k_ahead * 32:k_ahead * 32 + 32], S[k_ahead % 2, 0:32])
        T.commit(k_loads[k_ahead % 2])
    for k in T.serial(4, annotations={"tl.num_stages": 2, "tl.pipelined": 2}):
        T.wait(k_loads[k % 2], k // 2 % 2, pending=0)
        if k + 1 < 4:
            T.copy(A[(k + 1) * 32:(k + 1) * 32 + 32], S[(k + 1) % 2, 0:32])
        T.commit(k_loads[(k + 1) % 2])
        T.copy(S[k % 2, 0:32], F[0:32])
"""  # noqa: E501

from __future__ import annotations

from itertools import groupby
from math import prod
from typing import Any

from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, For, Load, PrimFunc, Region, Stmt, TileCall, Var, dtype_of
from tilelab.ir.rewrite import rewrite, substitute
from tilelab.ir.scoped import block_body, with_block_body
from tilelab.ir.spans import at
from tilelab.ir.statements import each_statement, flatten, seq
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Composed, Layout, concat
from tilelab.passes.annotations import memory_layout_of
from tilelab.passes.base import Pass, because, decide
from tilelab.passes.plan_pipeline import pipeline_of

__all__ = ["expand_pipeline", "ring_layout"]


def ring_layout(tile: Layout | Composed, depth: int) -> Layout | Composed:
    """The layout of `depth` tiles one after another, the slot as first axis."""
    inner = tile.layout if isinstance(tile, Composed) else tile
    step = prod(mode.size for mode in inner.modes)
    ring = concat(Layout(depth, step), *inner.modes)
    return Composed(tile.swizzle, tile.offset, ring) if isinstance(tile, Composed) else ring


class _Loop:
    """One loop being expanded: its plan, its rings, and its statements sorted by how far ahead they run."""

    def __init__(self, loop: For, rings: dict[Var, Var]) -> None:
        plan = pipeline_of(loop)
        assert plan is not None
        self.loop, self.rings = loop, rings
        self.depth, self.transport = int(plan["depth"]), str(plan["transport"])
        body = list(zip(flatten(loop.body), plan["ahead"], strict=True))
        places = plan.get("order") or [0] * len(body)
        self.steps = [step for _, step in sorted(zip(places, body, strict=True), key=lambda pair: pair[0])]
        self.distance = max(plan["ahead"])
        self.channel = b.buffer(f"{loop.loop_var.name}_loads", (self.depth,), "uint64", "shared.barrier")

    def count(self, index: Any) -> Any:
        """The iteration's number, counted from 0."""
        start = b.as_int(self.loop.min)
        return index if start == 0 else index - self.loop.min

    def slot(self, index: Any) -> Any:
        return b.floormod(self.count(index), self.depth)

    def at_iteration(self, node: Stmt, index: Any) -> Stmt:
        """The statement working for an iteration: loop variable replaced, tiles taken from the iteration's
        slot.
        """
        with at(node.span):
            return _in_slot(substitute(node, {self.loop.loop_var: index}), self.rings, self.slot(index))

    def loads(self, index: Any) -> list[Stmt]:
        return [self.at_iteration(node, index) for node, distance in self.steps if distance]

    def commit(self, index: Any) -> list[Stmt]:
        if self.transport != "cp.async":
            return []
        return [b.tile("commit", b.region(self.channel, [(self.slot(index), 1)]))]

    def wait(self, index: Any) -> list[Stmt]:
        if self.transport != "cp.async":
            return []
        parity = b.floormod(b.floordiv(self.count(index), self.depth), 2)
        slot = b.region(self.channel, [(self.slot(index), 1)])
        return [b.tile("wait", slot, parity, pending=self.distance - 1)]

    def guarded(self, index: Any, body: list[Stmt]) -> Stmt:
        """The body, if the iteration exists."""
        end = self.loop.min + self.loop.extent
        known, last = b.as_int(end), b.as_int(index)
        if known is not None and last is not None:
            return seq(*body) if last < known else seq()
        return b.if_(index < end, seq(*body))

    def prologue(self) -> Stmt:
        name = b.var(f"{self.loop.loop_var.name}_ahead")
        index = name if b.as_int(self.loop.min) == 0 else name + self.loop.min
        trips = b.as_int(self.loop.extent)
        body = self.loads(index)
        if trips is None or trips < self.distance:
            body = [b.if_(index < self.loop.min + self.loop.extent, seq(*body))]
        return b.for_(name, self.distance, seq(*body, *self.commit(index)), b.UNROLLED)

    def steady(self) -> Stmt:
        k = self.loop.loop_var
        later = k + self.distance
        body: list[Stmt] = self.wait(k)
        if self.transport == "cp.async":
            body += [self.guarded(later, self.loads(later)), *self.commit(later)]
            body += [self.at_iteration(node, k) for node, distance in self.steps if not distance]
        else:
            for is_ahead, steps in groupby(self.steps, key=lambda step: bool(step[1])):
                if is_ahead:
                    body.append(self.guarded(later, [self.at_iteration(node, later) for node, _ in steps]))
                else:
                    body += [self.at_iteration(node, k) for node, _ in steps]
        new = b.annotated(self.loop, pipeline=None, pipelined=self.depth)
        return For(
            new.loop_var,
            new.min,
            new.extent,
            new.kind,
            seq(*body),
            new.thread_binding,
            new.annotations,
            new.step,
            new.span,
        )


def _in_slot(node: Stmt, rings: dict[Var, Var], slot: Any) -> Stmt:
    """The statement with each ringed tile replaced by its slot in the ring."""

    def region(old: Region) -> Region | None:
        ring = rings.get(old.source)
        if ring is None:
            return None
        return b.region(ring, [(slot, 1), *((r.min, r.extent) for r in old.region)])

    def load(old: Any) -> Any:
        ring = rings.get(old.source)
        return None if ring is None else b.load(ring, [slot, *old.indices])

    def axis_from_the_end(old: TileCall) -> TileCall | None:
        # The slot stands in front of the other axes, so an axis of the tile keeps its number from the end
        # only.
        source = old.args[0].source if op_of(old).name in ("reduce", "cumsum") else None
        if not any(source is not None and source.same_as(ring) for ring in rings.values()):
            return None
        axes, dim = len(old.args[0].region) - 1, int(b.plain(old.config).get("dim", 0))
        return b.tile_with(old, dim=dim % axes - axes)

    return rewrite(node, (Region, region), (Load, load), (TileCall, axis_from_the_end))


def _ringed(f: PrimFunc) -> dict[Var, int]:
    """The tiles that pipelined loops fill, with the slots that each gets."""
    out: dict[Var, int] = {}
    for node in each_statement(f.body):
        if isinstance(node, For) and (plan := pipeline_of(node)) is not None:
            for step, distance in zip(flatten(node.body), plan["ahead"], strict=True):
                if distance and isinstance(step, TileCall) and op_of(step).name == "copy":
                    target = operand(step, "dst").source
                    if str(target.scope()) == "shared.dyn":
                        out[target] = int(plan["depth"])
    return out


def run(f: PrimFunc) -> PrimFunc:
    loops = [n for n in each_statement(f.body) if isinstance(n, For) and pipeline_of(n) is not None]
    if not loops:
        because("no loop was planned as a pipeline")
        return f
    slots = _ringed(f)
    rings = {
        old: b.buffer(str(old.name), (depth, *old.shape), dtype_of(old), "shared.dyn")
        for old, depth in slots.items()
    }
    channels: list[Stmt] = []

    def expand(loop: For) -> Stmt | None:
        if pipeline_of(loop) is None:
            return None
        one = _Loop(loop, rings)
        if one.transport == "cp.async":
            channels.append(b.alloc(one.channel, transport="cp.async"))
        decide(
            f"{one.distance} iterations ahead, {one.depth} slots: iteration k loads for k + {one.distance}",
            loop.span,
        )
        return seq(one.prologue(), one.steady())

    def widen(node: AllocBuffer) -> AllocBuffer | None:
        ring = rings.get(node.buffer)
        if ring is None:
            return None
        merged = {key.removeprefix("tl."): value for key, value in b.plain(node.annotations).items()}
        merged["layout"] = str(ring_layout(memory_layout_of(node), slots[node.buffer]))
        with at(node.span):
            return b.alloc(ring, **merged)

    new = rewrite(f, (For, expand), (AllocBuffer, widen))
    return with_block_body(new, seq(*channels, block_body(new)))


expand_pipeline = Pass("expand_pipeline", run, needs="laid_out", gives="laid_out")
