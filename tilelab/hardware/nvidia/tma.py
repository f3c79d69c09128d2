"""The tensor memory accelerator of sm_90: boxes of a global tensor to and from shared memory."""

from __future__ import annotations

import re
from functools import cache

from tilelab.hardware.model import THREAD, Completes, Cost, Global, Instruction, Shared, bits, sm

__all__ = ["BOX_LIMIT", "ROWS", "check_box", "from_name", "tma_load", "tma_store"]

BOX_LIMIT = 256  # elements along any axis of a box
_SOURCE = "PTX ISA, 'cp.async.bulk.tensor'; CUDA driver API, cuTensorMapEncodeTiled"
_RATES = (("sm_90", 64.0), ("sm_90a", 64.0))


def check_box(rows: int, columns: int, dtype: str, swizzle_bytes: int) -> str:
    """Why a box (rows, columns; columns contiguous) cannot be moved by one instruction, or ""."""
    inner = columns * bits(dtype)
    if max(rows, columns) > BOX_LIMIT:
        return f"a box has at most {BOX_LIMIT} elements an axis, not {max(rows, columns)}"
    if inner % 128:
        return f"the inner extent must be a multiple of 16 bytes, not {inner / 8:g}"
    if swizzle_bytes and inner > 8 * swizzle_bytes:
        return f"the inner extent of {inner // 8} bytes exceeds the swizzle span of {swizzle_bytes}"
    return ""


def _checked(rows: int, columns: int, dtype: str, swizzle_bytes: int) -> str:
    if reason := check_box(rows, columns, dtype, swizzle_bytes):
        raise ValueError(reason)
    return f"{rows}x{columns}.{dtype}.s{swizzle_bytes}"


@cache
def tma_load(rows: int, columns: int, dtype: str, swizzle_bytes: int) -> Instruction:
    """The row that fills a shared box from global memory; out of bounds reads 0; one elected thread issues
    it.

    Fields: {d} shared address, {map} tensor map, {a} the coordinates, innermost first, {barrier} the mbarrier
    that receives the box's bytes.
    """
    tag = _checked(rows, columns, dtype, swizzle_bytes)
    return Instruction(
        name=f"tma.load.2d.{tag}",
        family="tma",
        needs=sm(90),
        scope=THREAD,
        d=Shared(dtype, (rows, columns), admits=(swizzle_bytes,), align=max(128, 8 * swizzle_bytes)),
        a=Global(dtype, (rows, columns), align=16, bounded=True),
        b=None,
        means="copy_or_zero",
        text="cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[{d}], [{map}, {a}], [{barrier}];",
        fields=("map", "barrier"),
        completes=Completes.MBARRIER,
        proxy="async",
        cost=Cost(bytes=rows * columns * bits(dtype) // 8, rates=_RATES),
        source=_SOURCE,
    )


@cache
def tma_store(rows: int, columns: int, dtype: str, swizzle_bytes: int) -> Instruction:
    """The row that writes a shared box to global memory; what is out of bounds is dropped; waits go by bulk
    group.
    """
    tag = _checked(rows, columns, dtype, swizzle_bytes)
    return Instruction(
        name=f"tma.store.2d.{tag}",
        family="tma",
        needs=sm(90),
        scope=THREAD,
        d=Global(dtype, (rows, columns), align=16, bounded=True),
        a=Shared(dtype, (rows, columns), admits=(swizzle_bytes,), align=max(128, 8 * swizzle_bytes)),
        b=None,
        means="copy_or_drop",
        text="cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [{map}, {d}], [{a}];",
        fields=("map",),
        completes=Completes.GROUP,
        proxy="async",
        cost=Cost(bytes=rows * columns * bits(dtype) // 8, rates=_RATES),
        source=_SOURCE,
    )


def from_name(name: str) -> Instruction | None:
    """The member of the family that a name such as tma.load.2d.64x64.float16.s128 means, else None."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    make = tma_load if match[1] == "load" else tma_store
    try:
        return make(int(match[2]), int(match[3]), match[4], int(match[5]))
    except ValueError:
        return None


_NAME = re.compile(r"tma\.(load|store)\.2d\.(\d+)x(\d+)\.(\w+)\.s(0|32|64|128)")
_BOXES = ((64, 256, "float16", 0), (64, 16, "float16", 32), (64, 32, "float16", 64), (64, 64, "float16", 128))
ROWS = (*(tma_load(*box) for box in _BOXES), *(tma_store(*box) for box in _BOXES))
