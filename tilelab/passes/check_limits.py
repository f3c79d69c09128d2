"""Refuse kernels whose blocks ask for more threads than the chip has, or for a number that its warps do not
divide.

Before (cuda:sm_80, threads=2048):

    B[tx % 128] = A[tx % 128]

Refused: TL302
"""

from __future__ import annotations

from tilelab.errors import TileError
from tilelab.ir.nodes import AttrStmt, PrimFunc
from tilelab.ir.spans import place_of, span_of
from tilelab.passes.base import Pass, chip_of, target_of, threads_of


def run(f: PrimFunc) -> PrimFunc:
    chip, threads = chip_of(f), threads_of(f)
    if target_of(f).kind == "llvm" or threads <= chip.threads_per_block:
        return f
    where = place_of(f.body.span or span_of(f.body)) if isinstance(f.body, AttrStmt) else None
    raise TileError(
        "TL302",
        f"a block asks for {threads} threads; {chip.product} has at most {chip.threads_per_block} a block",
        places=(where,) if where else (),
        help=f"use threads={chip.threads_per_block} or fewer",
    )


check_limits = Pass("check_limits", run, needs="tile", gives="tile")
