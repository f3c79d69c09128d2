"""Decide how each pipelined loop overlaps its copies with its computation: how deep, which statements run
ahead, and by what.

Annotates a loop with `tl.pipeline`: `depth` slots of each shared buffer, `ahead` (for each statement of the
body, how many iterations before its own it runs) and `transport`: `cp.async` where the chip copies
asynchronously, `registers` where data waits in registers between its load and its store. A loop that cannot
be pipelined keeps its order, and the reason is recorded.

Before (cuda:sm_80):

    S = T.alloc_buffer((32,), scope="shared.dyn")
    F = T.alloc_buffer((32,), scope="local.fragment")
    for k in T.serial(4, annotations={"tl.num_stages": 2}):
        T.copy(A[k * 32:k * 32 + 32], S[0:32])
        T.copy(S[0:32], F[0:32])

After:

    S = T.alloc_buffer((32,), scope="shared.dyn")
    F = T.alloc_buffer((32,), scope="local.fragment")
    for k in T.serial(4, annotations={"tl.num_stages": 2, "tl.pipeline": {"ahead": [1, 0], "depth": 2, "transport": "cp.async"}}):
        T.copy(A[k * 32:k * 32 + 32], S[0:32])
        T.copy(S[0:32], F[0:32])
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilelab.hardware import bits
from tilelab.hardware.model import Chip
from tilelab.ir import build as b
from tilelab.ir.nodes import (
    AllocBuffer,
    Bind,
    For,
    PrimFunc,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    dtype_of,
    is_buffer,
)
from tilelab.ir.rewrite import collect, rewrite, walk
from tilelab.ir.scoped import block_body
from tilelab.ir.statements import children, each_statement, flatten
from tilelab.ir.tile_ops import op_of, operand, writes
from tilelab.passes.base import Pass, because, chip_of, decide, refuse, slow, target_of
from tilelab.passes.plan_shared_memory import pool_bytes

__all__ = ["pipeline_of", "plan_pipeline"]


def pipeline_of(loop: For) -> dict[str, Any] | None:
    """The plan of a loop, or None."""
    return b.plain(loop.annotations).get("tl.pipeline")


def _stages(loop: For) -> int:
    return int(b.plain(loop.annotations).get("tl.num_stages", 0) or 0)


def _is_load(node: Stmt) -> bool:
    if not isinstance(node, TileCall) or op_of(node).name != "copy":
        return False
    src, dst = operand(node, "src"), operand(node, "dst")
    return str(src.source.scope()) == "global" and str(dst.source.scope()) == "shared.dyn"


def _mentions(node: Any, variables: list[Var]) -> bool:
    return any(v.same_as(found) for found in collect(node, Var) for v in variables)


def _written(node: Stmt) -> list[Var]:
    found: list[Var] = []
    for inner in each_statement(node):
        if isinstance(inner, TileCall):
            found += [r.source for r in writes(inner)]
        if isinstance(inner, Store):
            found.append(inner.buffer)
        if isinstance(inner, Bind):
            found.append(inner.var)
    return found


def _uses(node: Any, buffer: Var) -> bool:
    found: list[Var] = []
    walk(node, (Var, lambda v: found.append(v) if is_buffer(v) else None))
    return any(v.same_as(buffer) for v in found)


def _covers(region: Region) -> bool:
    pairs = zip(region.region, region.source.shape, strict=True)
    return all(b.as_int(r.min) == 0 and b.as_int(r.extent) == b.as_int(n) for r, n in pairs)


def _why_not(node: TileCall, index: int, body: list[Stmt], outside: list[Stmt]) -> str | None:
    """Why this load cannot run ahead of its iteration, or None when it can."""
    dst = operand(node, "dst")
    buffer = dst.source
    if not _covers(dst):
        return f"it fills only a part of {buffer.name}"
    changed = [v for i, s in enumerate(body) if i != index for v in _written(s)]
    if any(v.same_as(buffer) for v in changed):
        return f"{buffer.name} is also written elsewhere in the loop"
    if any(_uses(s, buffer) for s in body[:index]):
        return f"{buffer.name} is used before it is loaded"
    if _mentions(operand(node, "src"), changed):
        return "its source depends on values computed in the loop"
    if any(_uses(s, buffer) for s in outside):
        return f"{buffer.name} is also used outside the loop"
    return None


def _bytes(buffer: Var) -> int:
    return prod(b.as_int(n) or 1 for n in buffer.shape) * bits(dtype_of(buffer)) // 8


def _outside(f: PrimFunc, loop: For) -> list[Stmt]:
    """The leaves of the kernel that stand outside the loop, allocations apart."""
    out: list[Stmt] = []

    def visit(node: Stmt) -> None:
        if node.same_as(loop):
            return
        kids = children(node)
        if not kids and not isinstance(node, AllocBuffer):
            out.append(node)
        for kid in kids:
            visit(kid)

    visit(block_body(f))
    return out


@dataclass(frozen=True)
class _Candidate:
    """A loop that can be pipelined: the loads that run ahead, their tiles, and the slots wanted."""

    loop: For
    body: tuple[Stmt, ...]
    loads: tuple[int, ...]
    rings: tuple[Var, ...]
    wanted: int


def run(f: PrimFunc) -> PrimFunc:
    target, chip = target_of(f), chip_of(f)
    marked = [s for s in each_statement(f.body) if isinstance(s, For) and _stages(s)]
    if not marked:
        because("no loop is marked T.Pipelined with num_stages")
        return f
    if target.kind == "llvm":
        for loop in marked:
            decide("the loop stays in order: a CPU's caches prefetch by themselves", loop.span)
        return f
    transport = "cp.async" if chip.has("sm_80") else "registers"
    found = [c for loop in marked if (c := _candidate(f, loop, transport)) is not None]
    most = _fitting_depth(f, found, chip.shared_per_block)
    plans: dict[Var, dict[str, Any]] = {}
    for one in found:
        depth = min(one.wanted, most)
        _tell_depth(f, one, depth, chip, transport)
        if depth < 2:
            continue
        ahead = [depth - 1 if i in one.loads else 0 for i in range(len(one.body))]
        names = ", ".join(str(r.name) for r in one.rings)
        decide(
            f"{names} loaded {depth - 1} iterations ahead into {depth} slots by {transport}",
            one.loop.span,
            depth=depth,
            ahead=ahead,
            transport=transport,
        )
        plans[one.loop.loop_var] = {"depth": depth, "ahead": ahead, "transport": transport}

    def plan(loop: For) -> For | None:
        chosen = plans.get(loop.loop_var)
        return b.annotated(loop, pipeline=chosen) if chosen is not None else None

    return rewrite(f, (For, plan))


def _candidate(f: PrimFunc, loop: For, transport: str) -> _Candidate | None:
    """The loop with its loads that can run ahead; None, and a reason in the trace, where there are none."""
    stages = _stages(loop)
    if stages == 1:
        refuse(
            "not pipelined: num_stages=1 leaves one slot, so nothing can overlap; use 2 or more", loop.span
        )
        return None
    body: list[Any] = flatten(loop.body)
    outside = _outside(f, loop)
    loads = []
    for index, node in enumerate(body):
        if not _is_load(node):
            continue
        reason = _why_not(node, index, body, outside)
        if reason is None:
            loads.append(index)
        else:
            name = operand(node, "dst").source.name
            refuse(f"the load of {name} stays in its iteration: {reason}", node.span)
    if not loads:
        refuse(
            "not pipelined: the loop's own statements hold no copy from global to shared memory "
            "that can run ahead",
            loop.span,
        )
        return None
    rings = tuple(operand(body[i], "dst").source for i in loads)
    return _Candidate(loop, tuple(body), tuple(loads), rings, stages if transport == "cp.async" else 2)


def _fitting_depth(f: PrimFunc, found: list[_Candidate], limit: int) -> int:
    """The most slots a loop may have so that all tiles fit; tiles never alive together share their bytes."""
    most = max((c.wanted for c in found), default=1)
    while most > 1 and pool_bytes(f, {r: min(c.wanted, most) for c in found for r in c.rings}) > limit:
        most -= 1
    return most


def _tell_depth(f: PrimFunc, one: _Candidate, depth: int, chip: Chip, transport: str) -> None:
    stages = _stages(one.loop)
    if depth < one.wanted:
        slow(
            f"{depth} slots instead of {one.wanted}: a slot takes {sum(map(_bytes, one.rings))} bytes, "
            f"the block has {chip.shared_per_block} bytes of shared memory and {pool_bytes(f, {})} are used "
            "without slots",
            one.loop.span,
        )
    elif transport == "registers" and stages > 2:
        decide(
            f"two slots instead of {stages}: {chip.product} copies through registers, one iteration ahead",
            one.loop.span,
        )


plan_pipeline = Pass("plan_pipeline", run, needs="tile", gives="tile", off="disable_pipelining")
