"""Refuse kernels whose blocks ask for more threads than the chip has, or for 8-bit floats that it lacks.

Before (cuda:sm_80, threads=2048):

    B[tx % 128] = A[tx % 128]

Refused: TL302
"""

from __future__ import annotations

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AttrStmt, PrimFunc, dtype_of, is_buffer
from tilelab.ir.scoped import allocations
from tilelab.ir.spans import place_of, span_of
from tilelab.language.kernel import MOST_THREADS
from tilelab.passes.base import Pass, chip_of, target_of, threads_of
from tilelab.passes.plan_copies import strides_of

LONGEST = 2**31  # elements; offsets are int32

# The chip computes with these; the other two of OCP or FNUZ have the same bits with other meanings.
_FLOAT8 = {
    "cuda": ("float8_e4m3fn", "float8_e5m2"),
    "hip": ("float8_e4m3fnuz", "float8_e5m2fnuz"),
}


def _refuse_float8(f: PrimFunc) -> None:
    target = target_of(f)
    known = _FLOAT8.get(target.kind)
    tensors = [(p, f.body.span) for p in f.params if is_buffer(p)]
    for buffer, span in [*tensors, *((a.buffer, a.span) for a in allocations(f))]:
        dtype = dtype_of(buffer)
        if known is None or not dtype.startswith("float8") or dtype in known:
            continue
        where = place_of(span) if span is not None else None
        raise TileError(
            "TL402",
            f"{buffer.name} is {dtype}, and {target} knows {' and '.join(known)} only",
            places=(where,) if where else (),
            help=f"use T.{known[dtype.startswith('float8_e5')]} on this target",
        )


def _refuse_long_tensors(f: PrimFunc) -> None:
    for param in f.params:
        if not is_buffer(param):
            continue
        sizes = [(b.as_int(n), b.as_int(s)) for n, s in zip(param.shape, strides_of(param), strict=True)]
        if any(n is None or s is None for n, s in sizes):
            continue  # of open sizes the call tells
        last = sum((n - 1) * s for n, s in sizes if n and s)
        if last >= LONGEST:
            where = place_of(f.body.span or span_of(f.body))
            raise TileError(
                "TL305",
                f"{param.name} reaches over {last + 1} elements; 32-bit offsets count up to {LONGEST}",
                places=(where,) if where else (),
                help="give the kernel a part of the tensor at a time",
            )


def run(f: PrimFunc) -> PrimFunc:
    _refuse_float8(f)
    _refuse_long_tensors(f)
    target, threads = target_of(f), threads_of(f)
    on_cpu = target.kind == "llvm"
    most = MOST_THREADS if on_cpu else chip_of(f).threads_per_block
    if threads <= most:
        return f
    where = place_of(f.body.span or span_of(f.body)) if isinstance(f.body, AttrStmt) else None
    raise TileError(
        "TL302",
        f"a block asks for {threads} threads; "
        f"{'a kernel' if on_cpu else chip_of(f).product} has at most {most} a block",
        places=(where,) if where else (),
        help=f"use threads={most} or fewer",
    )


check_limits = Pass("check_limits", run, needs="tile", gives="tile")
