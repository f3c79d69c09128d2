"""Turn running sums into one thread a line, which carries the sum along the axis.

A fragment's lines are spread over threads, so it goes through a shared tile first and comes back from there.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((8, 16), scope="shared.dyn", annotations={"tl.layout": "(8,16):(16,1)"})
    T.cumsum(F[0:8, 0:16], F[0:8, 0:16], dim=1, reverse=False)

After:

    F = T.alloc_buffer((8, 16), scope="shared.dyn", annotations={"tl.layout": "(8,16):(16,1)"})
    if tx < 8:
        total = T.alloc_buffer((1,), scope="local")
        total[0] = T.float32(0)
        for k in range(16):
            total[0] = total[0] + F[tx, k]
            F[tx, k] = total[0]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import add
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.statements import seq
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, parse, row_major
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, slow, threads_of
from tilelab.passes.share_out import chunk_loops, first_copy, fragment_loops, thread_number

__all__ = ["lower_cumsum"]


class _Scan:
    """One running sum being lowered."""

    def __init__(self, call: TileCall, f: PrimFunc, scope: Scope, layouts: dict[Var, Any]) -> None:
        self.call, self.layouts, self.scope = call, layouts, scope
        self.src, self.dst = operand(call, "src"), operand(call, "dst")
        config = b.plain(call.config)
        self.reverse = bool(config.get("reverse", False))
        self.thread = thread_number(f, scope)
        self.threads = scope.group[2] if scope.group else threads_of(f)
        self.dtype = dtype_of(self.dst.source)
        self.shape = self._shape()
        self.axis = int(config.get("dim", 0)) % len(self.shape)

    def _fragment(self, region: Region) -> Fragment | None:
        share = self.layouts.get(region.source)
        return share if isinstance(share, Fragment) and str(region.source.scope()) == "local" else None

    def _shape(self) -> tuple[int, ...]:
        share = self._fragment(self.src)
        return share.tile if share else tuple(b.as_int(r.extent) or 1 for r in self.src.region)

    def _in(self, region: tuple[Var, list[Any]], at: list[Any]) -> list[Any]:
        """The indices of a point of the source's shape; axes that only one side has (a ring's slot) stay
        where they are.
        """
        _, start = region
        extra = len(at) - len(start)
        at = at[extra:] if extra >= 0 else [*[0] * -extra, *at]
        return [add(s, i) for s, i in zip(start, at, strict=True)]

    def run(self) -> Stmt:
        source, target = self._fragment(self.src), self._fragment(self.dst)
        if source is None and target is None:
            return self._lines(self._place(self.src), self._place(self.dst))
        slow(
            f"the running sum of {self.src.source.name} goes through shared memory: "
            "its lines are spread over threads",
            self.call.span,
        )
        space = b.buffer(f"{self.dst.source.name}_lines", self.shape, self.dtype, "shared.dyn")
        start = [r.min for r in b.whole(space).region]
        here = (space, start)
        before = self._give(space, source) if source else seq()
        after = self._take(space, target) if target else seq()
        return seq(
            b.alloc(space, layout=str(row_major(self.shape))),
            before,
            self._lines(here if source else self._place(self.src), here if target else self._place(self.dst)),
            after,
        )

    def _place(self, region: Region) -> tuple[Var, list[Any]]:
        return region.source, [r.min for r in region.region]

    def _give(self, space: Var, share: Fragment) -> Stmt:
        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            return b.store(space, b.load(self.src.source, [value]), point)

        body = fragment_loops(share, 1, self.thread, self.scope.bounds, make)
        owner = first_copy(share, self.thread)
        return body if owner is None else b.if_(owner, body)

    def _take(self, space: Var, share: Fragment) -> Stmt:
        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            return b.store(self.dst.source, b.load(space, point), [value])

        return fragment_loops(share, 1, self.thread, self.scope.bounds, make)

    def _lines(self, source: tuple[Var, list[Any]], target: tuple[Var, list[Any]]) -> Stmt:
        extents = [n for axis, n in enumerate(self.shape) if axis != self.axis] or [1]
        length = self.shape[self.axis]

        def make(point: list[Any]) -> Stmt:
            total, k = b.buffer("total", (1,), self.dtype, "local"), b.var("k")
            along = (length - 1) - k if self.reverse else k
            line = point if len(self.shape) > 1 else []
            at = [*line[: self.axis], along, *line[self.axis :]]
            read, write = self._in(source, at), self._in(target, at)
            value = b.cast(self.dtype, b.load(source[0], read))
            step = seq(
                b.store(total, b.load(total, [0]) + value, [0]), b.store(target[0], b.load(total, [0]), write)
            )
            return seq(b.alloc(total), b.store(total, 0, [0]), b.for_(k, length, step))

        return chunk_loops(extents, 1, self.threads, self.thread, self.scope.bounds, make)


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "cumsum":
            return None
        found.append(node)
        return _Scan(node, f, scope, layouts).run()

    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no running sum")
    return new


lower_cumsum = Pass("lower_cumsum", run, needs="threaded", gives="threaded")
