"""Give copies the buffers they need on their way: the last pass that creates a buffer of tiles.

A load that a pipeline carries in registers (`transport` `registers`) becomes two copies: global memory to a
fragment, which will be issued before the iteration's computation, and fragment to shared memory, after it
(`order`). A copy that touches only part of a fragment becomes a nest of parallel loops, so that each thread
can find its elements.

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
from tilelab.ir.nodes import For, ForKind, PrimFunc, Region, Stmt, TileCall, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.scoped import block_body, with_block_body
from tilelab.ir.spans import at
from tilelab.ir.statements import flatten, seq, with_children
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because
from tilelab.passes.plan_pipeline import pipeline_of

__all__ = ["stage_copies"]


def _is_partial(region: Region) -> bool:
    if str(region.source.scope()) != "local.fragment":
        return False
    pairs = zip(region.region, region.source.shape, strict=True)
    return not all(b.as_int(r.min) == 0 and b.as_int(r.extent) == b.as_int(n) for r, n in pairs)


def squeezed(region: Region, rank: int) -> list[int]:
    """The axes of a region that stand for `rank` tile axes: leading ones of extent 1 are left out first."""
    axes = list(range(len(region.region)))
    for axis in list(axes):
        if len(axes) == rank:
            break
        if b.as_int(region.region[axis].extent) == 1:
            axes.remove(axis)
    return axes


def element_loops(call: TileCall) -> Stmt:
    """The copy as a nest of parallel loops over its elements."""
    src, dst = operand(call, "src"), operand(call, "dst")
    rank = min(len(squeezed(src, 0)), len(squeezed(dst, 0))) or 1
    axes = (squeezed(src, rank), squeezed(dst, rank))
    extents = [dst.region[axis].extent for axis in axes[1]]
    loop_vars = [b.var(f"i{n}") for n in range(len(extents))]

    def indices(region: Region, used: list[int]) -> list[object]:
        out = []
        for axis, part in enumerate(region.region):
            out.append(part.min + loop_vars[used.index(axis)] if axis in used else part.min)
        return out

    body: Stmt = b.store(dst.source, b.load(src.source, indices(src, axes[0])), indices(dst, axes[1]))
    for loop_var, extent in reversed(list(zip(loop_vars, extents, strict=True))):
        body = b.for_(loop_var, extent, body, ForKind.PARALLEL)
    return body


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

    def part_by_elements(call: TileCall) -> Stmt | None:
        if op_of(call).name != "copy":
            return None
        if not (_is_partial(operand(call, "src")) or _is_partial(operand(call, "dst"))):
            return None
        return element_loops(call)

    new = rewrite(f, (For, through_registers), (TileCall, part_by_elements))
    if not staged:
        if new is f or new.same_as(f):
            because("every copy goes straight to where it is needed")
        return new
    return with_block_body(new, seq(*staged, block_body(new)))


stage_copies = Pass("stage_copies", run, needs="tile", gives="tile")
