"""Turn each copy of a CPU kernel into loops: vectors where both sides are contiguous, elements at the edge.

A tile that lies wholly inside its tensor takes loops without conditions; at the edge single elements are
copied, and `guard_bounds` gives them their conditions. Which path is taken is asked once a tile.

Before (llvm, cpu=cpu-avx512):

    S = T.alloc_buffer((4, 32), scope="shared.dyn", annotations={"tl.layout": "(4,32):(32,1)"})
    for t in range(2):
        T.copy(A[t * 4:t * 4 + 4, 0:32], S[0:4, 0:32])

After:

    S = T.alloc_buffer((4, 32), scope="shared.dyn", annotations={"tl.layout": "(4,32):(32,1)"})
    for t in range(2):
        for i in range(4):
            for j in range(2):
                for v in T.vectorized(16):
                    S[i, j * 16 + v] = A[t * 4 + i, j * 16 + v]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, in_bounds
from tilelab.ir.nodes import Expr, PrimFunc, Stmt, TileCall, Var, dtype_of
from tilelab.ir.rewrite import record_hit
from tilelab.ir.scoped import Scope, map_scoped
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Layout
from tilelab.passes.base import Pass, slow
from tilelab.passes.cpu_tiles import Tile, contiguous, cpu_chip, lanes_of, layouts_of, paired, scalar_nest


def lies_inside(tiles: Sequence[Tile], bounds: Bounds) -> Expr | None:
    """The condition that the tiles lie inside their buffers, less what is known; None if it surely holds."""
    conditions: list[Expr] = []
    for tile in tiles:
        for low, extent, size in zip(tile.lows, tile.extents, tile.buffer.shape, strict=True):
            for index in (low,) if extent == 1 else (low, low + extent - 1):
                condition = in_bounds(bounds.simplify(index), size, bounds)
                if condition is not None:
                    conditions.append(condition)
    whole = b.all_of(conditions)
    return None if whole is None else bounds.simplify(whole)


def _run(tile: Tile, axis: int, layouts: dict[Var, Layout]) -> int:
    return contiguous(tile.buffer, tile.axes[axis], layouts)


def _vector(src: Tile, dst: Tile, lanes: int, layouts: dict[Var, Layout]) -> tuple[int, int]:
    """(axis of the arrays, elements of a vector) that both sides hold side by side; (0, 1) if none."""
    for axis in reversed(range(len(dst.axes))):
        runs = [_run(tile, axis, layouts) for tile in (src, dst)]
        extent = b.as_int(dst.shape[axis])
        if 0 in runs or extent is None:
            continue
        width = lanes
        while width > 1 and (extent % width or any(run > 0 and run % width for run in runs)):
            width //= 2
        if width > 1:
            return axis, width
    return 0, 1


def _vector_nest(src: Tile, dst: Tile, axis: int, width: int) -> Stmt:
    """All elements, vectors of `width` along the array axis, which runs innermost."""
    outer, extent = [i for i in range(len(dst.axes)) if i != axis], dst.shape[axis]
    steps = [] if extent == width else [extent // width]

    def body(loops: list[Var]) -> Stmt:
        v = b.var("v")
        at = dict(zip(outer, loops, strict=False)) | {axis: loops[-1] * width + v if steps else v}
        place = [at[i] for i in range(len(dst.axes))]
        return b.for_(v, width, dst.store(src.load(place), place), kind=b.VECTORIZED)

    return scalar_nest([*(dst.shape[i] for i in outer), *steps], body)


def _scalar_nest(src: Tile, dst: Tile, layouts: dict[Var, Layout]) -> Stmt:
    """All elements one at a time, the axis along which dst is contiguous innermost."""
    axes = list(range(len(dst.axes)))
    inner = next((axis for axis in reversed(axes) if _run(dst, axis, layouts)), None)
    order = [axis for axis in axes if axis != inner] + ([] if inner is None else [inner])

    def body(loops: list[Var]) -> Stmt:
        at = dict(zip(order, loops, strict=True))
        place = [at[i] for i in axes]
        return dst.store(src.load(place), place)

    return scalar_nest([dst.shape[i] for i in order], body)


def _copy(src: Tile, dst: Tile, lanes: int, layouts: dict[Var, Layout], bounds: Bounds) -> Stmt:
    axis, width = _vector(src, dst, lanes, layouts)
    condition = lies_inside((src, dst), bounds)
    if width == 1 or b.as_int(condition) == 0:
        return _scalar_nest(src, dst, layouts)
    inside = _vector_nest(src, dst, axis, width)
    return inside if condition is None else b.if_(condition, inside, _scalar_nest(src, dst, layouts))


def run(f: PrimFunc) -> PrimFunc:
    cpu, layouts = cpu_chip(f), layouts_of(f)

    def lower_copy(call: Any, scope: Scope) -> Stmt | None:
        if not isinstance(call, TileCall) or op_of(call).name != "copy":
            return None
        src, dst = paired(operand(call, "src"), operand(call, "dst"))
        lanes = lanes_of(cpu, dtype_of(src.buffer), dtype_of(dst.buffer))
        if dst.axes and _vector(src, dst, lanes, layouts)[1] == 1:
            slow(
                f"{src.buffer.name} to {dst.buffer.name} one by one: no axis is contiguous in both",
                call.span,
            )
        new = _copy(src, dst, lanes, layouts, scope.bounds)
        record_hit("lower_copy", call, new)
        return new

    return map_scoped(f, lower_copy)


lower_copy_cpu = Pass("lower_copy_cpu", run, needs="laid_out", gives="laid_out")
