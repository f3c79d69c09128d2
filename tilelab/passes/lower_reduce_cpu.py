"""Turn reductions of a CPU kernel into loops, with vectors of partial results along a contiguous axis.

Before (llvm, cpu=cpu-avx512):

    F = T.alloc_buffer((4, 32), scope="local.fragment")
    R = T.alloc_buffer((4,), scope="local.fragment")
    T.reduce(F[0:4, 0:32], R[0:4], kind="sum", dim=1, clear=True)

After:

    F = T.alloc_buffer((4, 32), scope="local.fragment")
    R = T.alloc_buffer((4,), scope="local.fragment")
    for i in range(4):
        part = T.alloc_buffer((16,), scope="local")
        for v in T.vectorized(16):
            part[v] = T.float32(0)
        for k in range(2):
            for v in T.vectorized(16):
                part[v] = part[v] + F[i, k * 16 + v]
        R[i] = T.float32(0)
        for v in T.unroll(16):
            R[i] = R[i] + part[v]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import Expr, PrimFunc, Stmt, TileCall, Var, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Layout
from tilelab.passes.base import Pass
from tilelab.passes.cpu_tiles import (
    Tile,
    contiguous,
    cpu_chip,
    element_nest,
    lanes_of,
    layouts_of,
    scalar_nest,
    tile_of,
)
from tilelab.passes.reductions import Reduction, reduction


@dataclass(frozen=True)
class Work:
    """One reduction: source with all its axes, destination, the axis, and how two values become one."""

    src: Tile
    dst: Tile
    dim: int
    how: Reduction
    dtype: str
    clear: bool
    nan_propagate: bool

    def value(self, at: list[Any], k: Any) -> Expr:
        """The source element at the destination's coordinates and `k` along the axis, as a term."""
        place = [*at[: self.dim], k, *at[self.dim :]]
        return self.how.prepare(b.cast(self.dtype, self.src.load(place)))

    def joined(self, old: Expr, new: Expr) -> Expr:
        """Two values as one; with `nan_propagate` a NaN on either side wins."""
        value = self.how.combine(old, new)
        if not self.nan_propagate or "float" not in self.dtype:
            return value
        return _or_nan(new, _or_nan(old, value))

    @property
    def start(self) -> Expr:
        return self.how.identity(self.dtype)


def _or_nan(value: Expr, otherwise: Expr) -> Expr:
    return b.select(b.call("tirx.isnan", value, dtype="bool"), value, otherwise)


def _all_axes(tile: Tile) -> Tile:
    return tile.with_axes(range(len(tile.lows)))


def _read(call: TileCall) -> Work:
    config = b.plain(call.config)
    src, dst = _all_axes(tile_of(operand(call, "src"))), _all_axes(tile_of(operand(call, "dst")))
    dim = int(config["dim"]) % len(src.axes)
    if len(dst.axes) == len(src.axes):
        dst = dst.with_axes([axis for axis in dst.axes if axis != dim])
    kept = [extent for axis, extent in enumerate(src.shape) if axis != dim]
    while len(dst.axes) > len(kept) and dst.extents[dst.axes[-1]] == 1:
        dst = dst.with_axes(dst.axes[:-1])
    if [b.as_int(x) for x in kept] != [b.as_int(x) for x in dst.shape]:
        raise TileError(
            "TL201",
            f"{src.buffer.name} without axis {dim} has shape {kept}, {dst.buffer.name} {list(dst.shape)}",
        )
    return Work(
        src, dst, dim, reduction(config["kind"]), dtype_of(dst.buffer), bool(config.get("clear", True)),
        bool(config.get("nan_propagate", False)),
    )  # fmt: skip


def _along_vectors(w: Work, lanes: int) -> Stmt:
    """Each element of dst from `lanes` partial results, for an axis that is contiguous."""

    def element(at: list[Any]) -> Stmt:
        part, k = b.buffer("part", (lanes,), w.dtype, "local"), b.var("k")
        extent = b.as_int(w.src.shape[w.dim])
        assert extent is not None

        def each(body: Callable[[Var], Stmt], kind: Any = b.VECTORIZED) -> Stmt:
            v = b.var("v")
            return b.for_(v, lanes, body(v), kind=kind)

        step = each(lambda v: b.store(part, w.joined(b.load(part, [v]), w.value(at, k * lanes + v)), [v]))
        return b.seq(
            b.alloc(part),
            each(lambda v: b.store(part, w.start, [v])),
            b.for_(k, extent // lanes, step),
            *([w.dst.store(w.start, at)] if w.clear else []),
            each(lambda v: w.dst.store(w.joined(w.dst.load(at), b.load(part, [v])), at), b.UNROLLED),
        )

    return scalar_nest(w.dst.shape, element)


def _across(w: Work, lanes: int, layouts: dict[Var, Layout]) -> Stmt:
    """All elements of dst side by side, one step along the axis after another."""
    first = element_nest(w.dst, lambda at: w.dst.store(w.start, at), lanes, layouts)
    k = b.var("k")
    fits = all(contiguous(t.buffer, t.axes[-1], layouts) == -1 for t in (w.src, w.dst) if t.axes)
    step = element_nest(
        w.dst,
        lambda at: w.dst.store(w.joined(w.dst.load(at), w.value(at, k)), at),
        lanes if fits else 1,
        layouts,
    )
    return b.seq(*([first] if w.clear else []), b.for_(k, w.src.shape[w.dim], step))


def run(f: PrimFunc) -> PrimFunc:
    cpu, layouts = cpu_chip(f), layouts_of(f)

    def lower_reduce(call: TileCall) -> Stmt | None:
        if op_of(call).name != "reduce":
            return None
        w = _read(call)
        lanes = lanes_of(cpu, w.dtype, dtype_of(w.src.buffer))
        extent = b.as_int(w.src.shape[w.dim])
        inner = contiguous(w.src.buffer, w.src.axes[w.dim], layouts)
        if inner == -1 and extent is not None and extent % lanes == 0 and lanes > 1 and w.src.inside:
            return _along_vectors(w, lanes)
        return _across(w, lanes, layouts)

    return rewrite(f, (TileCall, lower_reduce))


lower_reduce_cpu = Pass("lower_reduce_cpu", run, needs="laid_out", gives="laid_out")
