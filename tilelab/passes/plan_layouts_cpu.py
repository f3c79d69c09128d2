"""Give every tile of a CPU kernel its order in memory: panels for the B of a gemm, rows for all others.

A panel holds the columns that one block of C needs, step by step along k, so the innermost loop reads B from
one end to the other; for a transposed B the copy that fills the tile transposes it. A stays in rows: its
elements are broadcast one at a time. A fragment is an array of the single thread that runs a block.

Before (llvm, cpu=cpu-avx512):

    As = T.alloc_buffer((8, 32), scope="shared.dyn")
    Bs = T.alloc_buffer((32, 64), scope="shared.dyn")
    C = T.alloc_buffer((8, 64), scope="shared.dyn")
    T.gemm(As[0:8, 0:32], Bs[0:32, 0:64], C[0:8, 0:64], repeats=[8, 2, 1], row="vector.fma.f32x16")

After:

    As = T.alloc_buffer((8, 32), scope="shared.dyn", annotations={"tl.layout": "(8,32):(32,1)"})
    Bs = T.alloc_buffer((32, 64), scope="shared.dyn", annotations={"tl.layout": "(32,(32,2)):(32,(1,1024))"})
    C = T.alloc_buffer((8, 64), scope="shared.dyn", annotations={"tl.layout": "(8,64):(64,1)"})
    T.gemm(As[0:8, 0:32], Bs[0:32, 0:64], C[0:8, 0:64], repeats=[8, 2, 1], row="vector.fma.f32x16")
"""

from __future__ import annotations

from math import prod

from tilelab.hardware import row
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, PrimFunc, TileCall, Var
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, Layout, row_major
from tilelab.passes.base import Pass, decide, slow
from tilelab.passes.layout_flow import constant_shape

__all__ = ["panel_columns", "plan_layouts_cpu"]


def panel_columns(call: TileCall) -> int:
    """Columns of C that one block of registers covers."""
    config = b.plain(call.config)
    return int(config["repeats"][1]) * row(config["row"]).d.tile[1]


def _panels(shape: tuple[int, ...], columns: int, transposed: bool) -> Layout:
    """A tile (…, k, n), or (…, n, k) if transposed, as panels of `columns` columns, k slower than columns."""
    k, n = (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])
    if n % columns or n == columns:
        n_shape, n_stride, k_stride = n, 1, n
    else:
        n_shape, n_stride, k_stride = (columns, n // columns), (1, columns * k), columns
    shapes, strides = (
        ((n_shape, k), (n_stride, k_stride)) if transposed else ((k, n_shape), (k_stride, n_stride))
    )
    step, outer = k * n, []
    for extent in reversed(shape[:-2]):
        outer.insert(0, step)
        step *= extent
    return Layout((*shape[:-2], *shapes), (*outer, *strides))


def _register_tile(shape: tuple[int, ...]) -> Fragment:
    """A fragment that one thread holds alone, in row-major order."""
    strides = [prod(shape[:axis]) for axis in range(len(shape))]
    if len(shape) == 1:
        return Fragment(shape, Layout((1, shape[0]), (0, 1)))
    return Fragment(shape, Layout((1, tuple(reversed(shape))), (0, tuple(reversed(strides)))))


def _wanted(f: PrimFunc) -> dict[Var, tuple[int, bool]]:
    """For the B of each gemm in shared memory: columns of a panel, and whether B is transposed."""
    wanted: dict[Var, tuple[int, bool]] = {}
    for call in collect(f.body, TileCall):
        if op_of(call).name != "gemm":
            continue
        buffer = operand(call, "B").source
        want = (panel_columns(call), bool(b.plain(call.config).get("transpose_B")))
        if str(buffer.scope()) != "shared.dyn" or len(buffer.shape) < 2:
            if want[1]:
                slow(
                    f"{buffer.name} is read column by column: only a shared tile can be kept in panels",
                    call.span,
                )
        elif wanted.setdefault(buffer, want) != want:
            slow(
                f"{buffer.name} keeps the panels of an earlier gemm, which this one reads out of order",
                call.span,
            )
    return wanted


def run(f: PrimFunc) -> PrimFunc:
    wanted = _wanted(f)

    def give_layout(node: AllocBuffer) -> AllocBuffer | None:
        buffer, scope = node.buffer, str(node.buffer.scope())
        if scope not in ("shared.dyn", "local.fragment"):
            return None
        shape = constant_shape(buffer)
        if scope == "local.fragment":
            return b.annotated(node, layout=str(_register_tile(shape)))
        if buffer in wanted:
            columns, transposed = wanted[buffer]
            layout = _panels(shape, columns, transposed)
            decide(
                f"{buffer.name} lies in panels of {columns} columns: {layout}", node.span, layout=str(layout)
            )
        else:
            layout = row_major(shape)
        return b.annotated(node, layout=str(layout))

    return rewrite(f, (AllocBuffer, give_layout))


plan_layouts_cpu = Pass("plan_layouts_cpu", run, needs="tile", gives="laid_out")
