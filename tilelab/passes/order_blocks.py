"""Let blocks that run at the same time share what they load: walk the grid in panels of rows, as
T.use_swizzle asks.

Blocks are numbered as the hardware starts them. Within a panel of `panel` rows of the grid the numbers go
down the rows first, so that the blocks in flight read few rows of A and few columns of B, which the L2 cache
then holds. Stands last, where every bound has been proved from the grid's own indices.

Before (cuda:sm_80, swizzle=row:2):

    with T.launch_thread("blockIdx.x", 4) as bx:
        with T.launch_thread("blockIdx.y", 4) as by:
            A[by * 4 + bx] = B[bx]

After:

    with T.launch_thread("blockIdx.x", 4) as bx_started:
        with T.launch_thread("blockIdx.y", 4) as by_started:
            bx: T.let[T.int32] = by_started % 2 * 2 + bx_started // 2
            by: T.let[T.int32] = by_started // 2 * 2 + bx_started % 2
            A[by * 4 + bx] = B[bx]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import Bounds
from tilelab.ir.nodes import AttrStmt, PrimFunc, Stmt
from tilelab.ir.spans import at
from tilelab.ir.statements import each_statement, seq
from tilelab.passes.base import Pass, because, decide, refuse

__all__ = ["order_blocks"]


def _launches(f: PrimFunc) -> dict[str, AttrStmt]:
    return {
        str(s.node.thread_tag): s
        for s in each_statement(f.body)
        if isinstance(s, AttrStmt) and str(s.attr_key) == "thread_extent"
    }


def _places(block: Any, along: Any, across: Any, panel: int) -> tuple[Any, Any]:
    """(index along, index across) of the block with this number, panels being `panel` indices across."""
    size = along * panel
    number = b.remainder(block, size)
    first = b.quotient(block, size) * panel
    whole = b.as_int(across)
    rows: Any = panel if whole is not None and whole % panel == 0 else b.minimum(across - first, panel)
    return b.quotient(number, rows), first + b.remainder(number, rows)


def run(f: PrimFunc) -> PrimFunc:
    wish = b.plain(f.attrs).get("tl.swizzle") if f.attrs else None
    if not wish:
        because("the kernel asks for no order of its blocks")
        return f
    order, panel = str(wish).split(":")[0], int(str(wish).split(":")[1])
    launches = _launches(f)
    if "blockIdx.y" not in launches or "blockIdx.z" in launches:
        refuse("T.use_swizzle orders grids of two dimensions; this one keeps the hardware's order")
        return f
    x, y = launches["blockIdx.x"], launches["blockIdx.y"]
    columns, rows = (n if (n := b.as_int(s.value)) is not None else s.value for s in (x, y))
    started = [b.var(f"{s.node.var.name}_started") for s in (x, y)]
    block = started[1] * columns + started[0]
    bx, by = x.node.var, y.node.var
    if order == "row":
        at_x, at_y = _places(block, columns, rows, panel)
    else:
        at_y, at_x = _places(block, rows, columns, panel)
    bounds = Bounds([(started[0], 0, columns), (started[1], 0, rows)])
    with at(f.body.span):
        binds = [b.bind(bx, bounds.simplify(at_x)), b.bind(by, bounds.simplify(at_y))]
    lines = "rows" if order == "row" else "columns"
    decide(
        f"blocks go through panels of {panel} {lines} of the grid, for the L2 cache", panel=panel, order=order
    )

    def go(node: Stmt) -> Stmt:
        if not (isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent"):
            return seq(*binds, node)
        tag = str(node.node.thread_tag)
        index = {"blockIdx.x": started[0], "blockIdx.y": started[1]}.get(tag, node.node.var)
        with at(node.span):
            return b.launch(tag, index, node.value, go(node.body))

    return f.with_body(go(f.body))


order_blocks = Pass("order_blocks", run, needs="device", gives="device")
