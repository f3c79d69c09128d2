"""Give copies the buffers they need on their way: the last pass that creates a buffer of tiles.

A load that a pipeline carries in registers (`transport` `registers`) becomes two copies: global memory to a
fragment, which will be issued before the iteration's computation, and fragment to shared memory, after it
(`order`).

Before (hip:gfx942):

    S = T.alloc_buffer((32,), scope="shared.dyn")
    F = T.alloc_buffer((32,), scope="local.fragment")
    for k in T.serial(4, annotations={"tl.pipeline": {"ahead": [1, 0], "depth": 2, "transport": "registers"}}):
        T.copy(A[k * 32:k * 32 + 32], S[0:32])
        T.copy(S[0:32], F[0:32])

After:

    S_staged = T.alloc_buffer((32,), scope="local.fragment")
    S = T.alloc_buffer((32,), scope="shared.dyn")
    F = T.alloc_buffer((32,), scope="local.fragment")
    for k in T.serial(4, annotations={"tl.pipeline": {"ahead": [1, 1, 0], "depth": 2, "order": [0, 2, 1], "transport": "registers"}}):
        T.copy(A[k * 32:k * 32 + 32], S_staged[0:32])
        T.copy(S_staged[0:32], S[0:32])
        T.copy(S[0:32], F[0:32])
"""  # noqa: E501

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import For, PrimFunc, Stmt, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.scoped import block_body, with_block_body
from tilelab.ir.spans import at
from tilelab.ir.statements import flatten, seq, with_children
from tilelab.ir.tile_ops import operand
from tilelab.passes.base import Pass, because
from tilelab.passes.plan_pipeline import pipeline_of

__all__ = ["stage_copies"]


def run(f: PrimFunc) -> PrimFunc:
    staged: list[Stmt] = []

    def through_registers(loop: For) -> For | None:
        plan = pipeline_of(loop)
        if plan is None or plan["transport"] != "registers":
            return None
        body: list[Stmt] = []
        ahead: list[int] = []
        order: list[
            int
        ] = []  # loads first, then what stays in its iteration, then the stores into shared memory
        for node, distance in zip(flatten(loop.body), plan["ahead"], strict=True):
            if not distance:
                body.append(node)
                ahead.append(0)
                order.append(1)
                continue
            src, dst = operand(node, "src"), operand(node, "dst")
            with at(node.span):
                fragment = b.buffer(
                    f"{dst.source.name}_staged", dst.source.shape, dtype_of(dst.source), "local.fragment"
                )
                staged.append(b.alloc(fragment))
                body += [b.tile_with(node, src, b.whole(fragment)), b.tile_with(node, b.whole(fragment), dst)]
            ahead += [distance, distance]
            order += [0, 2]
        return with_children(
            b.annotated(loop, pipeline={**plan, "ahead": ahead, "order": order}), (seq(*body),)
        )

    new = rewrite(f, (For, through_registers))
    if not staged:
        because("every copy goes straight to where it is needed")
        return f
    return with_block_body(new, seq(*staged, block_body(new)))


stage_copies = Pass("stage_copies", run, needs="tile", gives="tile")
