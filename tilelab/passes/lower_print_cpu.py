"""Turn the printing of a tile into a loop that prints its elements; an element is printed by the C library.

Before:

    F = T.alloc_buffer((4,), scope="local.fragment")
    T.print(F[0:4], message="F")

After:

    F = T.alloc_buffer((4,), scope="local.fragment")
    for i in range(4):
        T.print(F[i], message="F")
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Region, Stmt, TileCall
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because
from tilelab.passes.cpu_tiles import scalar_nest, tile_of


def print_elements(call: TileCall) -> Stmt | None:
    if op_of(call).name != "print" or not isinstance(operand(call, "value"), Region):
        return None
    tile = tile_of(operand(call, "value"))
    return scalar_nest(tile.shape, lambda at: b.tile_with(call, tile.load(at)))


def run(f: PrimFunc) -> PrimFunc:
    if not any(op_of(call).name == "print" for call in collect(f.body, TileCall)):
        because("nothing is printed")
        return f
    return rewrite(f, (TileCall, print_elements))


lower_print_cpu = Pass("lower_print_cpu", run, needs="laid_out", gives="laid_out")
