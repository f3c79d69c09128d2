"""Make the grid of a CPU kernel one parallel loop, whose iterations the threads of the machine share in order.

The x index runs fastest, so neighboring iterations of one thread read the same rows of A. A kernel that adds to global
memory atomically runs its blocks one after another instead.

Before:

    with T.launch_thread("blockIdx.x", 4) as bx:
        with T.launch_thread("blockIdx.y", 2) as by:
            B[by * 4 + bx] = A[by * 4 + bx]

After:

    for block in T.parallel(8):
        B[block // 4 * 4 + block % 4] = A[block // 4 * 4 + block % 4]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import product
from tilelab.ir.nodes import AttrStmt, Load, PrimFunc, Region, Stmt, Store, TileCall, Var
from tilelab.ir.rewrite import substitute
from tilelab.ir.scoped import block_body
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because, decide, slow

__all__ = ["lower_blocks_cpu"]


def _bindings(f: PrimFunc) -> list[tuple[str, Var, Any]]:
    """(tag, variable, extent) of the launch bindings, outermost first."""
    found, node = [], f.body
    while isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
        found.append((str(node.node.thread_tag), node.node.var, node.value))
        node = node.body
    return found


def _adds_atomically(body: Stmt) -> TileCall | None:
    for node in each_statement(body):
        if isinstance(node, TileCall) and op_of(node).name == "atomic_add":
            dst = operand(node, "dst")
            buffer = dst.source if isinstance(dst, Region | Load) else None
            if buffer is None or str(buffer.scope()) == "global":
                return node
    return None


def run(f: PrimFunc) -> PrimFunc:
    blocks = sorted((tag, v, n) for tag, v, n in _bindings(f) if tag.startswith("blockIdx"))
    if not blocks:
        because("there is no blockIdx")
        return f
    body, atomic = block_body(f), _adds_atomically(block_body(f))
    known = [(tag, v, b.as_int(n) or n) for tag, v, n in blocks]
    total, below, indices = product(n for _, _, n in known), 1, {}
    block = b.var("block")
    for at, (_, variable, extent) in enumerate(known):
        rest = block if b.as_int(below) == 1 else block // below
        indices[variable] = rest if at == len(known) - 1 else rest % extent
        below = below * extent
    if atomic is not None:
        slow(
            "blocks run one after another on the CPU, since they add to global memory atomically", atomic.span
        )
    else:
        decide(f"a parallel loop over {total} blocks, {blocks[0][0]} fastest")
    kind = b.SERIAL if atomic is not None else b.PARALLEL
    return f.with_body(b.for_(block, total, substitute(body, indices), kind=kind))


lower_blocks_cpu = Pass("lower_blocks_cpu", run, needs="laid_out", gives="threaded")
