"""Rows that copy: plain loads and stores, cp.async, ldmatrix and stmatrix."""

from __future__ import annotations

import math

import numpy as np

from tilelab.emulate.async_rows import put_under_way
from tilelab.emulate.asynchronous import Operation
from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.lanes import (
    check_alignment,
    lane_bytes,
    put,
    read_lanes,
    registers_of,
    write_lanes,
)
from tilelab.emulate.pool import PoolBuffer
from tilelab.emulate.registers import LocalBuffer
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import and_mask
from tilelab.emulate.tile_ops import lane_grid
from tilelab.hardware import Instruction, Register
from tilelab.hardware.meanings import gather, scatter

__all__ = ["copy_async", "load_matrix", "move", "store_matrix"]


def move(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a = regions
    lane_bytes(context, a, instruction)
    lane_bytes(context, d, instruction)
    chosen = None if predicate is None else np.broadcast_to(predicate, (context.count,))
    active = and_mask(mask, chosen)
    check_alignment(context, a, instruction.a, active)
    check_alignment(context, d, instruction.d, active)
    if active is not None and not active.any():
        values = np.zeros((context.count, math.prod(a[2])), numpy_type(a[0].dtype))
    else:
        values = read_lanes(context, a, active)
    if isinstance(d[0], LocalBuffer):
        if chosen is not None:
            values = np.where(chosen[:, None], values, np.zeros((), values.dtype))
        write_lanes(context, d, values, mask)
    elif active is None or active.any():
        write_lanes(context, d, values, active)


def copy_async(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    """cp.async: a load to shared memory that lands when its group is waited for; false predicates give
    zeros.
    """
    machine = context.machine
    d, a = regions
    lane_bytes(context, a, instruction)
    lane_bytes(context, d, instruction)
    chosen = None if predicate is None else np.broadcast_to(predicate, (context.count,))
    reading = and_mask(mask, chosen)
    check_alignment(context, d, instruction.d, mask)
    then = context.here()

    def effect() -> None:
        before = context.go_back(then)
        values = np.zeros((context.count, math.prod(a[2])), numpy_type(a[0].dtype))
        if reading is None or reading.any():
            read = read_lanes(context, a, reading)
            values = read if reading is None else np.where(reading[:, None], read, values)
        write_lanes(context, d, values, mask)
        context.go_back(before)

    def poison() -> None:
        grid = lane_grid(d[1], d[2], context.count)
        if isinstance(d[0], PoolBuffer):
            d[0].poison_lanes(context, grid, mask)

    if machine.is_free and isinstance(d[0], PoolBuffer):
        d[0].touch_lanes(context, lane_grid(d[1], d[2], context.count), mask)
    op = Operation(instruction.name, context.span(), context.active(mask), d[0], effect, poison)
    put_under_way(context, op, "cp.async")


# ---- ldmatrix and stmatrix


def _rows_of_lanes(context, instruction: Instruction, memory, region, mask):
    """Which lanes give addresses, and for each the (row, matrix) that its address names."""
    starts = np.array(memory.rows.offsets())
    height, width = memory.tile[0], memory.tile[1]
    lane = np.arange(context.count) % instruction.scope.threads
    gives = lane < starts.size
    start = starts[np.minimum(lane, starts.size - 1)]
    buffer, _, extent = region
    size = math.prod(extent) * np.dtype(numpy_type(buffer.dtype)).itemsize
    if size != width * np.dtype(numpy_type(memory.dtype)).itemsize:
        raise fault(
            "TL201", f"{instruction.name} takes rows of 16 bytes, the operand has {size}", context.span()
        )
    return and_mask(mask, gives), start % height, start // (height * width)


def load_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a = regions
    gives, line, matrix = _rows_of_lanes(context, instruction, instruction.a, a, mask)
    check_alignment(context, a, instruction.a, gives)
    read = np.ascontiguousarray(read_lanes(context, a, gives)).view(numpy_type(instruction.a.dtype))
    size = instruction.scope.threads
    tiles = np.zeros((context.count // size, *instruction.a.tile), read.dtype)
    warp = np.arange(context.count) // size
    tiles[warp[gives], line[gives], :, matrix[gives]] = read[gives]
    assert isinstance(instruction.d, Register)
    put(context, d, gather(instruction.d, tiles), mask)


def store_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a = regions
    gives, line, matrix = _rows_of_lanes(context, instruction, instruction.d, d, mask)
    check_alignment(context, d, instruction.d, gives)
    size = instruction.scope.threads
    assert isinstance(instruction.a, Register)
    tiles = scatter(instruction.a, registers_of(context, a, instruction.a, size, mask))
    warp = np.arange(context.count) // size
    values = tiles[warp, line, :, matrix]
    write_lanes(context, d, values, gives)
