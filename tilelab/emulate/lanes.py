"""What lanes of a row hold and address: registers as the row types them, and elements of memory."""

from __future__ import annotations

import math

import numpy as np

from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.pool import PoolBuffer
from tilelab.emulate.registers import LocalBuffer
from tilelab.emulate.report import fault
from tilelab.emulate.tile_ops import lane_grid, region_of
from tilelab.hardware import ANY, Instruction, Operand, Register

__all__ = [
    "check_alignment",
    "lane_bytes",
    "put",
    "read_lanes",
    "registers_of",
    "whole_groups",
    "write_lanes",
]


def whole_groups(context, instruction: Instruction, mask):
    """The mask, if every warp (wave, warpgroup) has all its lanes active or none."""
    size = instruction.scope.threads
    if context.count % size:
        raise fault(
            "TL201", f"{instruction.name} needs {size} threads, the role has {context.count}", context.span()
        )
    if mask is not None:
        per = mask.reshape(-1, size)
        if (per.any(axis=1) != per.all(axis=1)).any():
            raise fault(
                "TL201",
                f"{instruction.name} is executed by a part of a {instruction.scope.name}",
                context.span(),
            )
    return mask


# ---- registers


def registers_of(context, region, operand: Operand | None, size: int, mask, check: bool = True) -> np.ndarray:
    """An operand's registers as (groups, lanes, values) of the row's dtype."""
    assert isinstance(operand, Register)
    buffer, low, extent = region_of(context, region, mask)
    data = buffer.registers(context, low, extent, mask, check)
    kind = data.dtype if operand.dtype == ANY else np.dtype(numpy_type(operand.dtype))
    if data.dtype != kind:
        if data.dtype.itemsize * data.shape[1] % kind.itemsize:
            raise fault("TL201", f"{buffer.name} of {buffer.dtype} holds no {operand.dtype}", context.span())
        data = np.ascontiguousarray(data).view(kind)
    if data.shape[1] != operand.values:
        raise fault(
            "TL201",
            f"{buffer.name} gives {data.shape[1]} values a lane, the row takes {operand.values}",
            context.span(),
        )
    return data.reshape(-1, size, operand.values)


def put(context, region, values: np.ndarray, mask) -> None:
    """Write (groups, lanes, values) to registers, bits kept where dtypes differ."""
    buffer, low, extent = region_of(context, region, mask)
    flat = np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
    if flat.dtype != buffer.data.dtype:
        flat = flat.view(buffer.data.dtype)
    if flat.shape[1] != math.prod(extent):
        raise fault(
            "TL201",
            f"{buffer.name} takes {math.prod(extent)} values a lane, not {flat.shape[1]}",
            context.span(),
        )
    buffer.set_registers(low, extent, flat, mask)
    context.unfenced[id(buffer.root)] = context.at


# ---- copies of single threads


def lane_bytes(context, region, instruction: Instruction) -> None:
    buffer, _, extent = region
    size = math.prod(extent) * np.dtype(numpy_type(buffer.dtype)).itemsize
    if size != instruction.bytes:
        raise fault(
            "TL201",
            f"{instruction.name} moves {instruction.bytes} bytes, the operand has {size}",
            context.span(),
        )


def read_lanes(context, region, mask) -> np.ndarray:
    """(lanes, elements) from memory or registers."""
    buffer, low, extent = region
    if isinstance(buffer, LocalBuffer):
        return buffer.registers(context, *region_of(context, region, mask)[1:], mask)
    values = buffer.load(context, lane_grid(low, extent, context.count), mask)
    return np.broadcast_to(values, (context.count, math.prod(extent)))


def write_lanes(context, region, values: np.ndarray, mask) -> None:
    buffer, low, extent = region
    kind = np.dtype(numpy_type(buffer.dtype))
    if values.dtype != kind:
        values = np.ascontiguousarray(values).view(kind)
    if isinstance(buffer, LocalBuffer):
        put(context, region, values, mask)
    else:
        buffer.store(context, lane_grid(low, extent, context.count), values, mask)


def check_alignment(context, region, operand, mask) -> None:
    """TL601 where a lane's address is not a multiple of the row's alignment (shared memory in the pool
    only).
    """
    buffer, low, extent = region
    if not isinstance(buffer, PoolBuffer) or getattr(operand, "align", 1) <= 1:
        return
    grid = lane_grid(low, extent, context.count)
    inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(grid, buffer.shape, strict=True)])
    elements = buffer.table[tuple(np.where(inside, i, 0) for i in grid)]
    active = np.ones(context.count, bool) if mask is None else mask
    active = active & inside.all(axis=1)
    steps = elements - elements[:, :1] != np.arange(elements.shape[1])
    bad = active & (((buffer.offset + elements[:, 0] * buffer.item) % operand.align != 0) | steps.any(axis=1))
    if bad.any():
        lane = int(np.argmax(bad))
        index = [int(i[lane, 0]) for i in grid]
        raise fault(
            "TL601",
            f"thread {context.threads[lane]} needs {operand.align} aligned, contiguous bytes at"
            f" {buffer.name}{index} and does not find them{context.iteration_text()}",
            context.span(),
        )
