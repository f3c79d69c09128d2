"""Refuse kernels that read a tile before anything was written to it, such as a gemm whose accumulator was not
cleared.

Stands first, on the user's own statements, so that the message can speak of them. A write anywhere before the
read in program order counts, also in a branch or a loop; what the emulator checks byte by byte is not proved
here.

Before:

    acc = T.alloc_buffer((16,), scope="local.fragment")
    T.copy(acc[0:16], A[0:16])

Refused: TL204
"""

from __future__ import annotations

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, For, Load, PrimFunc, Region, Stmt, Store, TileCall, Var
from tilelab.ir.rewrite import walk
from tilelab.ir.scoped import block_body
from tilelab.ir.spans import place_of
from tilelab.ir.statements import children
from tilelab.ir.tile_ops import op_of, operand, reads, writes
from tilelab.passes.base import Pass

_TILES = ("shared.dyn", "local.fragment", "local")


def _reads_of(node: Stmt) -> list[Var]:
    found: list[Var] = []
    if isinstance(node, TileCall):
        found += [r.source for r in reads(node) if not _is_overwritten(node, r)]
    if not children(node):
        walk(node, (Load, lambda load: found.append(load.source)))
    return found


def _is_overwritten(node: TileCall, region: Region) -> bool:
    """Whether an updated operand's old value does not matter."""
    name = op_of(node).name
    if name == "gemm":
        return bool(b.plain(node.config).get("clear_accum")) and region.same_as(operand(node, "C"))
    if name == "reduce":
        return bool(b.plain(node.config).get("clear", True)) and region.same_as(operand(node, "dst"))
    return name not in ("copy", "fill", "cumsum", "atomic_add")


def _refuse(buffer: Var, node: Stmt, allocation: AllocBuffer) -> None:
    places = [p for p in (place_of(node.span), place_of(allocation.span, f"{buffer.name} is made here")) if p]
    is_gemm = isinstance(node, TileCall) and op_of(node).name == "gemm"
    hint = f"T.clear({buffer.name})" + (
        " before the loop, or clear_accum=True" if is_gemm else " or write it first"
    )
    raise TileError(
        "TL204", f"{buffer.name} is read before it was given a value", places=tuple(places), help=hint
    )


def run(f: PrimFunc) -> PrimFunc:
    waiting: list[AllocBuffer] = []

    def visit(node: Stmt) -> None:
        if isinstance(node, AllocBuffer) and str(node.buffer.scope()) in _TILES:
            waiting.append(node)
            return
        for buffer in _reads_of(node):
            for allocation in waiting:
                if allocation.buffer.same_as(buffer):
                    _refuse(buffer, node, allocation)
        written = [r.source for r in writes(node)] if isinstance(node, TileCall) else []
        if isinstance(node, Store):
            written.append(node.buffer)
        waiting[:] = [a for a in waiting if not any(a.buffer.same_as(w) for w in written)]
        if isinstance(node, For) and b.as_int(node.extent) == 0:
            return
        for child in children(node):
            visit(child)

    visit(block_body(f))
    return f


check_initialized = Pass("check_initialized", run, needs="tile", gives="tile")
