"""Choose the instruction and vector width of every copy, from what is contiguous and aligned on both sides.

A load that a pipeline runs ahead by `cp.async` takes that instruction when its alignment allows; otherwise it
goes through registers, still ahead, and the trace says why. Annotates `row` and `vector` (elements of one
access).

Before (cuda:sm_80, threads=32):

    S = T.alloc_buffer((128,), scope="shared.dyn", annotations={"tl.layout": "128:1"})
    T.copy(A[0:128], S[0:128])

After:

    S = T.alloc_buffer((128,), scope="shared.dyn", annotations={"tl.layout": "128:1"})
    T.copy(A[0:128], S[0:128], row="ld.global.b128+st.shared.b128", vector=4)
"""

from __future__ import annotations

from math import gcd
from typing import Any

from tilelab.hardware import CopyChoice, bits, select_copy
from tilelab.ir import build as b
from tilelab.ir.alignment import base_alignment
from tilelab.ir.indices import Bounds
from tilelab.ir.nodes import For, PrimFunc, Region, Stmt, TileCall, Var, dtype_of
from tilelab.ir.scoped import Scope, allocations, map_inside, map_scoped
from tilelab.ir.statements import flatten, seq, with_children
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Composed, Fragment, Layout, parse
from tilelab.passes.annotations import layout_text
from tilelab.passes.base import Pass, because, chip_of, decide, slow, target_of
from tilelab.passes.plan_pipeline import pipeline_of

__all__ = ["alignment_of", "plan_copies", "strides_of"]

BASE_ALIGNMENT = 16  # bytes; what the launch plan checks of every tensor before it takes this variant


def strides_of(buffer: Var) -> list[Any]:
    """The strides of a global buffer in elements: its own, or those of a contiguous one."""
    own = list(buffer.ty.strides)
    if own:
        return own
    out: list[Any] = []
    step: Any = 1
    for extent in reversed(list(buffer.shape)):
        out.append(step)
        known = b.as_int(extent)
        step = step * (known if known is not None else extent)
    return out[::-1]


def alignment_of(region: Region, bounds: Bounds, layout: Layout | Composed | Fragment | None = None) -> int:
    """Bytes (at most 16) that surely divide the address of each row of the region, and its room along the
    last axis.

    Global tensors start where their buffer says, usually at a multiple of 16 bytes; shared tiles are aligned
    by their layout.
    """
    assert not isinstance(layout, Fragment), f"{region} is in registers"
    buffer = region.source
    size = bits(dtype_of(buffer))
    last = region.region[-1]
    if layout is not None:
        span = layout.swizzle.base if isinstance(layout, Composed) else 30
        parts = [bounds.divisor(last.min), 1 << span]
        inner = layout.layout if isinstance(layout, Composed) else layout
        for mode in range(inner.rank):
            digits = inner.digits(mode)
            parts += [s for i, (_, s) in enumerate(digits) if s and not (mode == inner.rank - 1 and i == 0)]
            if mode == inner.rank - 1 and len(digits) > 1:
                parts.append(digits[0][0])
    else:
        strides = strides_of(buffer)
        if b.as_int(strides[-1]) != 1:
            return size // 8
        extents = [buffer.shape[-1]]
        parts = [bounds.divisor(x) for x in [last.min, *strides[:-1], *extents]]
    elements = 0
    for part in parts:
        elements = gcd(elements, part)
    base = BASE_ALIGNMENT if layout is not None else gcd(BASE_ALIGNMENT, base_alignment(buffer))
    total = gcd(elements * size, 8 * base)
    return max(total // 8, 1)


def _place(buffer: Var) -> str:
    return str(buffer.scope())


def _aligned(region: Region, bounds: Bounds, layout: Layout | Composed | Fragment | None) -> int:
    """As alignment_of; registers are never what limits a copy."""
    return BASE_ALIGNMENT if isinstance(layout, Fragment) else alignment_of(region, bounds, layout)


def run(f: PrimFunc) -> PrimFunc:
    chip = chip_of(f)
    layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
    found: list[TileCall] = []

    def planned(call: TileCall, scope: Scope, is_ahead: bool) -> TileCall:
        src, dst = operand(call, "src"), operand(call, "dst")
        held = [layouts[r.source] for r in (src, dst) if _place(r.source) == "local.fragment"]
        fragments = [layout for layout in held if isinstance(layout, Fragment)]
        found.append(call)
        if len(fragments) == 2:
            return b.tile_with(call, row="registers", vector=1)
        dtype = max((dtype_of(src.source), dtype_of(dst.source)), key=bits)
        rows = [_aligned(r, scope.bounds, layouts.get(r.source)) for r in (src, dst)]
        sizes = [bits(dtype_of(r.source)) for r in (src, dst)]
        alignment = gcd(*(a * bits(dtype) // n for a, n in zip(rows, sizes, strict=True)), BASE_ALIGNMENT)
        elements = b.as_int(dst.region[-1].extent) or 1
        elements = gcd(elements, b.as_int(src.region[-1].extent) or 1)
        if fragments:
            elements = fragments[0].vector(len(fragments[0].tile) - 1)
        converts = dtype_of(src.source) != dtype_of(dst.source)
        choice = select_copy(
            chip, _place(src.source), _place(dst.source), dtype, elements, alignment,
            is_ahead and not converts and not fragments,
        )  # fmt: skip
        _tell(call, choice, is_ahead, converts, bool(fragments), alignment)
        return b.tile_with(call, row="+".join(r.name for r in choice.rows), vector=choice.vector)

    def rule(node: Stmt, scope: Scope) -> Stmt | None:
        if isinstance(node, For) and (plan := pipeline_of(node)) is not None:
            inner = scope.inside(node)
            body = [
                planned(s, inner, bool(distance) and plan["transport"] == "cp.async")
                if _is_copy(s)
                else map_inside(s, inner, rule)
                for s, distance in zip(flatten(node.body), plan["ahead"], strict=True)
            ]
            return with_children(node, (seq(*body),))
        return planned(node, scope, False) if _is_copy(node) else None

    if target_of(f).kind == "llvm":
        because("a CPU's copies are shaped when they are lowered")
        return f
    new = map_scoped(f, rule)
    if not found:
        because("the kernel has no copy")
    return new


def _is_copy(node: Stmt) -> bool:
    return isinstance(node, TileCall) and op_of(node).name == "copy"


def _tell(
    call: TileCall, choice: CopyChoice, is_ahead: bool, converts: bool, fragment: bool, alignment: int
) -> None:
    src, dst = operand(call, "src").source.name, operand(call, "dst").source.name
    names = " and ".join(r.name for r in choice.rows)
    refused = {r.name: r.reason for r in choice.refusals}
    decide(f"{src} to {dst}: {choice.vector} elements at a time by {names}", call.span, refused=refused)
    if is_ahead and not choice.is_async:
        unaligned = f"the rows are aligned to {alignment} bytes only, it needs 4"
        why = "it converts the elements" if converts else unaligned
        slow(f"the load of {dst} goes through registers instead of cp.async: {why}", call.span)
    elif choice.bytes < 4 and (not fragment or alignment < 4):
        slow(
            f"{src} to {dst} moves {choice.bytes} bytes at a time: "
            f"rows are aligned to {alignment} bytes only",
            call.span,
        )


plan_copies = Pass("plan_copies", run, needs="tile", gives="laid_out")
