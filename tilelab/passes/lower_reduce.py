"""Turn reductions into each thread's own sums, shuffles between the lanes of a warp, and a shared workspace
between warps.

A reduction of a fragment first combines what a thread holds along the reduced axis, then exchanges with the
lanes that hold the rest of it; afterwards all of them hold the result. Only digits of the layout that leave
the warp go through shared memory.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(16,4)@((2,16),2):((16,1),32)"})
    R = T.alloc_buffer((1,), scope="local", annotations={"tl.layout": "(16,)@((2,16),1):((0,1),0)"})
    T.reduce(F[0:2], R[0:1], clear=True, dim=1, kind="sum")

After:

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(16,4)@((2,16),2):((16,1),32)"})
    R = T.alloc_buffer((1,), scope="local", annotations={"tl.layout": "(16,)@((2,16),1):((0,1),0)"})
    R[0] = T.float32(0)
    for r in T.unroll(2):
        R[0] = R[0] + F[r]
    R[0] = R[0] + T.tl.shuffle_xor(R[0], 1)
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import add
from tilelab.ir.nodes import PrimFunc, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.statements import seq
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, linear, parse, row_major
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, chip_of, slow, threads_of
from tilelab.passes.reductions import Reduction, propagating, reduction
from tilelab.passes.share_out import first_copy, fragment_loops, thread_number

__all__ = ["lower_reduce"]


class _Reduce:
    """One reduction being lowered."""

    def __init__(self, call: TileCall, f: PrimFunc, scope: Scope, layouts: dict[Var, Any]) -> None:
        self.call, self.layouts, self.scope = call, layouts, scope
        self.src, self.dst = operand(call, "src"), operand(call, "dst")
        config = b.plain(call.config)
        self.clear = bool(config.get("clear", True))
        self.dtype = dtype_of(self.dst.source)
        self.how: Reduction = reduction(str(config["kind"]))
        self.propagates = bool(config.get("nan_propagate")) and "float" in self.dtype
        if self.propagates:
            self.how = propagating(self.how)
        self.thread = thread_number(f, scope)
        self.threads = scope.group[2] if scope.group else threads_of(f)
        self.warp = chip_of(f).warp
        source = layouts.get(self.src.source)
        self.source: Fragment | None = None
        if isinstance(source, Fragment) and str(self.src.source.scope()) == "local":
            self.source = source
        rank = len(self.source.tile) if self.source else len(self.src.region)
        self.axis = int(config["dim"]) % rank

    def run(self) -> Stmt:
        to_registers = str(self.dst.source.scope()) == "local"
        if to_registers:
            result, share, made, after = self.dst.source, self.layouts[self.dst.source], [], []
        else:
            share = self._share_of_result()
            result = b.buffer(f"{self.dst.source.name}_part", (share.values,), self.dtype, "local")
            made = [b.alloc(result, layout=str(share))]
            if not self.clear:
                made.append(self._from_memory(result, share))
            after = [self._to_memory(result, share)]
        body = self._of_fragment(result, share) if self.source is not None else self._of_memory(result, share)
        return seq(*made, body, *after)

    def _share_of_result(self) -> Fragment:
        if self.source is not None:
            keep = len(self.source.tile) == len(self.dst.region)
            return self.source.reduce(self.axis, keep)
        return linear(tuple(b.as_int(r.extent) or 1 for r in self.dst.region), self.threads, 1)

    def _value(self, element: Any) -> Any:
        return self.how.prepare(b.cast(self.dtype, element))

    # ---- of registers

    def _of_fragment(self, result: Var, share: Fragment) -> Stmt:
        source = self.source
        assert source is not None
        within = prod(n for s, n, d, a in source.pieces() if s == "value" and d and a == self.axis)
        # An accumulating reduction must not count the old value once for each lane, so it sums apart.
        part = result if self.clear else b.buffer(f"{result.name}_part", (share.values,), self.dtype, "local")
        own = [] if self.clear else [b.alloc(part, layout=str(share))]
        v, r = b.var("v"), b.var("r")
        value = v if share.values > 1 else 0
        known = [(x, 0, n) for x, n in ((v, share.values), (r, within)) if n > 1]
        index = self.scope.bounds.with_variables(known).simplify(
            self._source_value(value, r if within > 1 else 0)
        )
        step: Stmt = b.store(
            part,
            self.how.combine(b.load(part, [value]), self._value(b.load(self.src.source, [index]))),
            [value],
        )
        if within > 1:
            step = b.for_(r, within, step, b.UNROLLED)
        body: list[Stmt] = [b.store(part, self.how.identity(self.dtype), [value]), step]
        body += [self._exchange(part, value, mask) for mask in self._masks()]
        each = seq(*body)
        local = b.for_(v, share.values, each, b.UNROLLED) if share.values > 1 else each
        across = self._across_warps(part, share)
        if self.clear:
            return seq(local, across)
        total = b.store(result, self.how.combine(b.load(result, [value]), b.load(part, [value])), [value])
        final = b.for_(v, share.values, total, b.UNROLLED) if share.values > 1 else total
        return seq(*own, local, across, final)

    def _exchange(self, part: Var, value: Any, mask: int) -> Stmt:
        """The result so far combined with that of the lane whose number differs in the mask's bit."""
        mine, theirs = b.load(part, [value]), b.shuffle_xor(b.load(part, [value]), mask)
        if not self.propagates:
            return b.store(part, self.how.combine(mine, theirs), [value])
        # All lanes take part in the exchange, which therefore stands apart from the choice between the
        # operands.
        other = b.var("other", self.dtype)
        return seq(b.bind(other, theirs), b.store(part, self.how.combine(mine, other), [value]))

    def _source_value(self, value: Any, inner: Any) -> Any:
        """The source register of result value `value` and number `inner` along the reduced axis."""
        assert self.source is not None
        terms = []
        place = kept = gone = 1
        for source, size, stride, axis in self.source.pieces():
            if source != "value":
                continue
            is_reduced = bool(stride) and axis == self.axis
            number, divisor = (inner, gone) if is_reduced else (value, kept)
            if size > 1:
                digit = b.floormod(b.floordiv(number, divisor), size)
                terms.append(digit * place)
            place *= size
            gone, kept = (gone * size, kept) if is_reduced else (gone, kept * size)
        return add(*terms)

    def _thread_digits(self) -> list[tuple[int, int]]:
        """(divisor, size) of the thread digits along the reduced axis."""
        assert self.source is not None
        out, divisor = [], 1
        for source, size, stride, axis in self.source.pieces():
            if source == "thread":
                if stride and axis == self.axis:
                    out.append((divisor, size))
                divisor *= size
        return out

    def _in_warp(self, divisor: int, size: int) -> bool:
        return divisor * size <= self.warp and size & (size - 1) == 0 and divisor & (divisor - 1) == 0

    def _masks(self) -> list[int]:
        masks = []
        for divisor, size in self._thread_digits():
            if self._in_warp(divisor, size):
                masks += [divisor << bit for bit in range(size.bit_length() - 1)]
            elif divisor < self.warp and self.warp % divisor == 0 and size % (self.warp // divisor) == 0:
                masks += [divisor << bit for bit in range((self.warp // divisor).bit_length() - 1)]
        return masks

    def _far_digits(self) -> list[tuple[int, int]]:
        """(divisor, size) of what is left after the shuffles: digits that leave the warp."""
        out = []
        for divisor, size in self._thread_digits():
            if self._in_warp(divisor, size):
                continue
            if divisor < self.warp and self.warp % divisor == 0 and size % (self.warp // divisor) == 0:
                size //= self.warp // divisor
                divisor = self.warp
            out.append((divisor, size))
        return out

    def _across_warps(self, part: Var, share: Fragment) -> Stmt:
        far = self._far_digits()
        if not far:
            return seq()
        count = prod(size for _, size in far)
        slow(
            f"the reduction of {self.src.source.name} crosses warps: "
            f"{count} partial results go through shared memory",
            self.call.span,
        )
        shape = (count, *share.tile)
        space = b.buffer(f"{self.dst.source.name}_exchange", shape, self.dtype, "shared.dyn")
        number, scale = 0, 1
        for divisor, size in far:
            digit = b.floormod(b.floordiv(self.thread, divisor), size)
            number, scale = add(number, digit * scale), scale * size
        owner = self._first_of_equals(share, far)

        def give(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            return b.store(space, b.load(part, [value]), [number, *point])

        q = b.var("q")

        def take(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            start = b.store(part, b.load(space, [0, *point]), [value])
            more = self.how.combine(b.load(part, [value]), b.load(space, [q, *point]))
            return seq(start, b.for_(q, count - 1, b.store(part, more, [value]), b.UNROLLED, start=1))

        bounds = self.scope.bounds
        writing = fragment_loops(share, 1, self.thread, bounds, give)
        writing = writing if owner is None else b.if_(owner, writing)
        # All must have read before the exchange is written again, and have written before it is read.
        return seq(b.alloc(space, layout=str(row_major(shape))), writing,
                   fragment_loops(share, 1, self.thread, bounds, take))  # fmt: skip

    def _first_of_equals(self, share: Fragment, far: list[tuple[int, int]]) -> Any:
        """The condition that this thread is the first of those with the same partial result."""
        conditions, divisor = [], 1
        for source, size, stride, _ in share.pieces():
            if source != "thread":
                continue
            if stride == 0:
                left = size
                at = divisor
                for start, extent in far:
                    if divisor <= start < divisor * size:
                        left = start // divisor
                        rest = divisor * size // (start * extent)
                        if rest > 1:
                            conditions.append(b.floormod(b.floordiv(self.thread, start * extent), rest) == 0)
                if left > 1:
                    conditions.append(b.floormod(b.floordiv(self.thread, at), left) == 0)
            divisor *= size
        return b.all_of(conditions)

    # ---- of memory

    def _of_memory(self, result: Var, share: Fragment) -> Stmt:
        extent = b.as_int(self.src.region[self.axis].extent) or 1
        # Axes of extent one (the slot of a ring, an axis that is kept) have no part in which point is meant.
        wide = [n for n, x in enumerate(self.src.region) if n != self.axis and b.as_int(x.extent) != 1]
        r = b.var("r")

        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            where = [x.min for x in self.src.region]
            where[self.axis] = add(where[self.axis], r)
            kept = [p for p, n in zip(point, share.tile, strict=True) if n != 1]
            for axis, p in zip(wide, kept, strict=True):
                where[axis] = add(where[axis], p)
            element = b.load(self.src.source, where)
            combined = self.how.combine(b.load(result, [value]), self._value(element))
            start = [b.store(result, self.how.identity(self.dtype), [value])] if self.clear else []
            return seq(*start, b.for_(r, extent, b.store(result, combined, [value])))

        return fragment_loops(share, 1, self.thread, self.scope.bounds, make)

    def _point_in_result(self, point: list[Any]) -> list[Any]:
        used = [i for i, x in enumerate(self.dst.region) if b.as_int(x.extent) != 1]
        wide = [p for p, n in zip(point, self._tile(), strict=True) if n != 1]
        where = [x.min for x in self.dst.region]
        for axis, p in zip(used, wide, strict=True):
            where[axis] = add(where[axis], p)
        return where

    def _tile(self) -> tuple[int, ...]:
        return self._share_of_result().tile

    def _to_memory(self, result: Var, share: Fragment) -> Stmt:
        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            return b.store(self.dst.source, b.load(result, [value]), self._point_in_result(point))

        body = fragment_loops(share, 1, self.thread, self.scope.bounds, make)
        owner = first_copy(share, self.thread)
        return body if owner is None else b.if_(owner, body)

    def _from_memory(self, result: Var, share: Fragment) -> Stmt:
        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            return b.store(result, b.load(self.dst.source, self._point_in_result(point)), [value])

        return fragment_loops(share, 1, self.thread, self.scope.bounds, make)


def run(f: PrimFunc) -> PrimFunc:
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if not isinstance(node, TileCall) or op_of(node).name != "reduce":
            return None
        found.append(node)
        return _Reduce(node, f, scope, layouts).run()

    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no reduction")
    return new


lower_reduce = Pass("lower_reduce", run, needs="threaded", gives="threaded")
