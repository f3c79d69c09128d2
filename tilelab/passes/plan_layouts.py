"""Give every shared tile and every fragment a layout, and every parallel nest a share for each thread.

A gemm fixes its accumulator (and A, when that is in registers) by the instruction's register map; shared
operands get the widest swizzle that their rows fill. From there layouts flow: a reduction keeps the rows
where they are, an element-wise nest keeps each element with its thread, a copy between fragments moves
nothing. What nothing reaches starts a flow of its own with the plain coalesced layout. Two demands that one
buffer cannot meet are an error that names both.

Annotates allocations and the outermost loop of each nest with `tl.layout`.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((64,), scope="local.fragment")
    for i in T.parallel(64):
        F[i] = A[i]

After:

    F = T.alloc_buffer((64,), scope="local.fragment", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    for i in T.parallel(64, annotations={"tl.layout": "(64,)@(32,2):(2,1)"}):
        F[i] = A[i]
"""

from __future__ import annotations

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, For, PrimFunc, Stmt, TileCall
from tilelab.ir.rewrite import rewrite
from tilelab.ir.spans import place_of
from tilelab.ir.statements import children
from tilelab.layout import linear, row_major
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass
from tilelab.passes.layout_flow import LayoutFlow, constant_shape, is_fragment
from tilelab.passes.nests import (
    accesses,
    is_nest,
)

__all__ = ["plan_layouts"]


def _refuse_stray_accesses(f: PrimFunc) -> None:
    def visit(node: Stmt) -> None:
        if is_nest(node):
            return
        if not children(node) and not isinstance(node, AllocBuffer | TileCall):
            for access in accesses(node):
                if is_fragment(access.buffer):
                    where = place_of(node.span)
                    raise TileError(
                        "TL205",
                        f"an element of the fragment {access.buffer.name} is used outside T.Parallel",
                        places=(where,) if where else (),
                        help="put the statement into a T.Parallel loop over the fragment's elements",
                    )
        for child in children(node):
            visit(child)

    visit(f.body)


def run(f: PrimFunc) -> PrimFunc:
    _refuse_stray_accesses(f)
    solver = LayoutFlow(f)
    solver.from_gemms()
    solver.from_crosswise_nests()
    while solver.flow() or solver.start_somewhere():
        continue

    def annotate_allocation(node: AllocBuffer) -> AllocBuffer | None:
        scope = str(node.buffer.scope())
        if scope == "local.fragment":
            found = solver.known.get(node.buffer) or linear(constant_shape(node.buffer), solver.threads, 1)
            return b.annotated(node, layout=str(found))
        if scope == "shared.dyn" and layout_text(node) is None:
            return b.annotated(
                node, layout=solver.shared.get(node.buffer) or str(row_major(constant_shape(node.buffer)))
            )
        return None

    # Inner loops are rebuilt before outer ones, so nests are found again by their loop variable.
    shares = {loop.loop_var: share for loop, share in solver.shares.items()}

    def annotate_nest(node: For) -> For | None:
        share = shares.get(node.loop_var)
        return b.annotated(node, layout=str(share)) if share is not None else None

    return rewrite(f, (AllocBuffer, annotate_allocation), (For, annotate_nest))


plan_layouts = Pass("plan_layouts", run, needs="tile", gives="tile")
