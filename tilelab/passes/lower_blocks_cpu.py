"""Make the grid of a CPU kernel one parallel loop, whose iterations the machine's threads share in order.

The x index runs fastest, so neighboring iterations of one thread read the same rows of A. The blocks of a
kernel marked `tl.blocks_in_order` run one after another instead.

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
from tilelab.ir.nodes import AttrStmt, PrimFunc, Var
from tilelab.ir.rewrite import substitute
from tilelab.ir.scoped import block_body
from tilelab.ir.spans import at
from tilelab.passes.base import Pass, because, decide

__all__ = ["lower_blocks_cpu"]


def _bindings(f: PrimFunc) -> list[tuple[str, Var, Any]]:
    """(tag, variable, extent) of the launch bindings, outermost first."""
    found, node = [], f.body
    while isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
        found.append((str(node.node.thread_tag), node.node.var, node.value))
        node = node.body
    return found


def run(f: PrimFunc) -> PrimFunc:
    blocks = sorted((tag, v, n) for tag, v, n in _bindings(f) if tag.startswith("blockIdx"))
    if not blocks:
        because("there is no blockIdx")
        return f
    in_order = bool(f.attrs.get("tl.blocks_in_order", False))
    known = [(tag, v, b.as_int(n) or n) for tag, v, n in blocks]
    total, below, indices = product(n for _, _, n in known), 1, {}
    block = b.var("block")
    for number, (_, variable, extent) in enumerate(known):
        rest = block if b.as_int(below) == 1 else block // below
        indices[variable] = rest if number == len(known) - 1 else rest % extent
        below = below * extent
    kind = b.SERIAL if in_order else b.PARALLEL
    decide(f"{'a loop' if in_order else 'a parallel loop'} over {total} blocks, {blocks[0][0]} fastest")
    body = substitute(block_body(f), indices)
    with at(f.body.span):
        return f.with_body(b.for_(block, total, body, kind=kind))


lower_blocks_cpu = Pass("lower_blocks_cpu", run, needs="synced", gives="device")
