"""`T.issue`: hardware rows executed as their rows say, from lanes' registers and addresses.

A row's operands, scope, completion and proxy all come from `tilelab.hardware.row`; no instruction is known by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.asynchronous import Operation
from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.memory import LocalBuffer
from tilelab.emulate.pool import PoolBuffer
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import agreed, and_mask
from tilelab.emulate.tile_ops import is_region, lane_grid, region_of
from tilelab.hardware import ANY, Completes, Instruction, Register, row
from tilelab.hardware.meanings import emulate_registers, gather, scatter

__all__ = ["issue"]

_QUEUES = {"cp_async": "cp.async", "wgmma": "wgmma", "tma": "bulk"}


def issue(context, operands, config, mask) -> None:
    """Execute the row that the keyword `row` names."""
    name = str(config["row"])
    instruction = row(name)
    issued = context.machine.issued
    issued[name] = issued.get(name, 0) + 1
    wanted = len(instruction.operands) + (instruction.completes is Completes.MBARRIER)
    regions, rest = list(operands[:wanted]), operands[wanted:]
    if len(regions) < wanted or not all(is_region(r) for r in regions) or len(rest) > 1:
        raise fault("TL201", f"{name} takes {wanted} operands and a predicate", context.span())
    predicate = rest[0] if rest else None
    if instruction.family not in ("wgmma",) and instruction.scope.threads > 1:
        mask = _whole_groups(context, instruction, mask)
    if mask is not None and not mask.any():
        return
    _FAMILIES[instruction.family](context, instruction, regions, predicate, config, mask)


def _whole_groups(context, instruction: Instruction, mask):
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


def _held(context, region, operand: Register, size: int, mask, check: bool = True) -> np.ndarray:
    """An operand's registers as (groups, lanes, values) of the row's dtype."""
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


def _put(context, region, values: np.ndarray, mask) -> None:
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


def _matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a, b = regions
    size = instruction.scope.threads
    held_a = _held(context, a, instruction.a, size, mask)
    held_b = _held(context, b, instruction.b, size, mask)
    clear = bool(config.get("clear"))
    old = _held(context, d, instruction.d, size, mask, check=not clear)
    if clear:
        old = np.zeros_like(old)
    mask = mask if predicate is None else and_mask(mask, np.broadcast_to(predicate, (context.count,)))
    _put(context, d, emulate_registers(instruction, held_a, held_b, old), mask)


# ---- copies of single threads


def _lane_bytes(context, region, instruction: Instruction) -> None:
    buffer, _, extent = region
    size = math.prod(extent) * np.dtype(numpy_type(buffer.dtype)).itemsize
    if size != instruction.bytes:
        raise fault(
            "TL201",
            f"{instruction.name} moves {instruction.bytes} bytes, the operand has {size}",
            context.span(),
        )


def _read_lanes(context, region, mask) -> np.ndarray:
    """(lanes, elements) from memory or registers."""
    buffer, low, extent = region
    if isinstance(buffer, LocalBuffer):
        return buffer.registers(context, *region_of(context, region, mask)[1:], mask)
    values = buffer.load(context, lane_grid(low, extent, context.count), mask)
    return np.broadcast_to(values, (context.count, math.prod(extent)))


def _write_lanes(context, region, values: np.ndarray, mask) -> None:
    buffer, low, extent = region
    kind = np.dtype(numpy_type(buffer.dtype))
    if values.dtype != kind:
        values = np.ascontiguousarray(values).view(kind)
    if isinstance(buffer, LocalBuffer):
        _put(context, region, values, mask)
    else:
        buffer.store(context, lane_grid(low, extent, context.count), values, mask)


def _aligned(context, region, operand, mask) -> None:
    """TL601 where a lane's address is not a multiple of the row's alignment (shared memory in the pool only)."""
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
            f"thread {context.threads[lane]} needs {operand.align} aligned, contiguous bytes at {buffer.name}{index}"
            f" and does not find them{context.iteration_text()}",
            context.span(),
        )


def _move(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a = regions
    _lane_bytes(context, a, instruction)
    _lane_bytes(context, d, instruction)
    chosen = None if predicate is None else np.broadcast_to(predicate, (context.count,))
    active = and_mask(mask, chosen)
    _aligned(context, a, instruction.a, active)
    _aligned(context, d, instruction.d, active)
    if active is not None and not active.any():
        values = np.zeros((context.count, math.prod(a[2])), numpy_type(a[0].dtype))
    else:
        values = _read_lanes(context, a, active)
    if isinstance(d[0], LocalBuffer):
        if chosen is not None:
            values = np.where(chosen[:, None], values, np.zeros((), values.dtype))
        _write_lanes(context, d, values, mask)
    elif active is None or active.any():
        _write_lanes(context, d, values, active)


def _copy_async(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    """cp.async: a load to shared memory that lands when its group is waited for; false predicates give zeros."""
    machine = context.machine
    d, a = regions
    _lane_bytes(context, a, instruction)
    _lane_bytes(context, d, instruction)
    chosen = None if predicate is None else np.broadcast_to(predicate, (context.count,))
    reading = and_mask(mask, chosen)
    _aligned(context, d, instruction.d, mask)
    then = context.here()

    def effect() -> None:
        before = context.go_back(then)
        values = np.zeros((context.count, math.prod(a[2])), numpy_type(a[0].dtype))
        if reading is None or reading.any():
            read = _read_lanes(context, a, reading)
            values = read if reading is None else np.where(reading[:, None], read, values)
        _write_lanes(context, d, values, mask)
        context.go_back(before)

    def poison() -> None:
        grid = lane_grid(d[1], d[2], context.count)
        if isinstance(d[0], PoolBuffer):
            d[0].poison_lanes(context, grid, mask)

    if machine.is_free and isinstance(d[0], PoolBuffer):
        d[0].touch_lanes(context, lane_grid(d[1], d[2], context.count), mask)
    _start(context, instruction, context.active(mask), d[0], effect, poison, machine)


def _start(context, instruction, threads, target, effect, poison, machine) -> None:
    """Put a grouped operation under way, or perform it now where asynchronous rows complete at once."""
    if not machine.is_free:
        effect()
        return
    machine.is_asynchronous = True
    op = Operation(instruction.name, context.span(), threads, target, effect, poison)
    if machine.mode == "early":
        op.land()
    else:
        poison()
    context.queues[_QUEUES[instruction.family]].open.append(op)


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


def _load_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a = regions
    gives, line, matrix = _rows_of_lanes(context, instruction, instruction.a, a, mask)
    _aligned(context, a, instruction.a, gives)
    read = np.ascontiguousarray(_read_lanes(context, a, gives)).view(numpy_type(instruction.a.dtype))
    size = instruction.scope.threads
    tiles = np.zeros((context.count // size, *instruction.a.tile), read.dtype)
    warp = np.arange(context.count) // size
    tiles[warp[gives], line[gives], :, matrix[gives]] = read[gives]
    _put(context, d, gather(instruction.d, tiles), mask)


def _store_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a = regions
    gives, line, matrix = _rows_of_lanes(context, instruction, instruction.d, d, mask)
    _aligned(context, d, instruction.d, gives)
    size = instruction.scope.threads
    tiles = scatter(instruction.a, _held(context, a, instruction.a, size, mask))
    warp = np.arange(context.count) // size
    values = tiles[warp, line, :, matrix]
    _write_lanes(context, d, values, gives)


# ---- TMA and wgmma


def _one_issuer(context, instruction: Instruction, mask) -> np.ndarray:
    threads = context.active(mask)
    if context.machine.is_free and threads.size != 1:
        raise fault(
            "TL304", f"{instruction.name} is issued by one thread, not by {threads.size}{context.iteration_text()}",
            context.span(),
        )  # fmt: skip
    return threads[:1]


def _box(context, region, tile, mask):
    """A region as a box whose extents other than 1 are the tile's."""
    buffer, low, extent = region_of(context, region, mask)
    if tuple(e for e in extent if e != 1) != tuple(e for e in tile if e != 1):
        raise fault("TL201", f"a box of {tile} is given {buffer.name}'s region of {extent}", context.span())
    return buffer, low, extent


def _tma(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    mask = mask if predicate is None else and_mask(mask, np.broadcast_to(predicate, (context.count,)))
    if mask is not None and not mask.any():
        return
    threads = _one_issuer(context, instruction, mask)
    if instruction.completes is Completes.MBARRIER:
        _tma_load(context, instruction, regions, threads, mask)
    else:
        _tma_store(context, instruction, regions, threads, mask)


def _agent(context, threads: np.ndarray, column: int):
    tracker = context.machine.tracker
    return None if tracker is None else tracker.agent(column, threads)


def _tma_load(context, instruction: Instruction, regions, threads, mask) -> None:
    machine = context.machine
    target, source = (_box(context, r, instruction.d.tile, mask) for r in regions[:2])
    array, low, extent = regions[2]
    _, barrier = array.slot(context, (array, tuple(agreed(i, context, mask) for i in low), extent))
    agent = _agent(context, threads, 0)
    then = context.here()

    def effect() -> None:
        before = context.go_back(then)
        values = source[0].read_tile(context, source[1], source[2], lenient=True)
        target[0].write_tile(context, target[1], target[2], values.reshape(target[2]), agent)
        if not array.is_channel:
            barrier.bytes -= instruction.bytes
            if agent is not None:
                barrier.add_clock(machine.tracker.completed(agent))
            if barrier.bytes < 0 and machine.mode == "late":
                raise fault("TL304", f"{array.name} receives more bytes than it expects", context.span())
            barrier.settle()
        context.go_back(before)

    if not machine.is_free:
        effect()
        return
    machine.is_asynchronous = True
    op = Operation(instruction.name, context.span(), threads, target[0], effect, lambda: None)
    if machine.mode == "early":
        op.land()
        return
    if agent is not None:
        target[0].touch_tile(context, target[1], target[2], agent)
    target[0].poison_tile(target[1], target[2])
    barrier.transfers.append(op)
    machine.transfers.append(op)


def _tma_store(context, instruction: Instruction, regions, threads, mask) -> None:
    machine = context.machine
    target, source = (_box(context, r, instruction.d.tile, mask) for r in regions[:2])
    agent = _agent(context, threads, 0)
    then = context.here()

    def effect() -> None:
        before = context.go_back(then)
        values = source[0].read_tile(context, source[1], source[2], who=agent)
        target[0].write_tile(context, target[1], target[2], values.reshape(target[2]), lenient=True)
        if agent is not None:
            op.clock = machine.tracker.completed(agent)
        context.go_back(before)

    op = Operation(instruction.name, context.span(), threads, None, effect, lambda: None)
    if not machine.is_free:
        effect()
        return
    machine.is_asynchronous = True
    if machine.mode == "early":
        op.land()
    context.queues["bulk"].open.append(op)


def _shared_matrix(context, region, operand, mask, agent) -> np.ndarray:
    """A wgmma operand's tile (rows, k) from the logical region of a shared tile, turned if it was given as (k, rows)."""
    buffer, low, extent = region_of(context, region, mask)
    shape = tuple(e for e in extent if e != 1) or (1,)
    values = buffer.read_tile(context, low, extent, who=agent).reshape(shape)
    want = operand.tile
    if shape == want and not (want[0] == want[1] and operand.major == "mn"):
        return values
    if shape == want[::-1]:
        return values.T
    raise fault("TL201", f"an operand of {want} is given {buffer.name}'s region of {extent}", context.span())


def _warpgroup_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    machine = context.machine
    mask = _whole_groups(context, instruction, mask)
    if mask is not None and not mask.any():
        return
    threads = context.active(mask)
    d, a, b = regions
    size = instruction.scope.threads
    buffer, low, extent = region_of(context, d, mask)
    clear = bool(config.get("clear")) or (predicate is not None and not agreed(predicate, context, mask))
    queue = context.queues["wgmma"]
    chained = any(op.target is not None and op.target.root is buffer.root for op in queue.under_way())
    held = None
    if not clear and not chained:
        held = _held(context, d, instruction.d, size, mask)
    held_a = (
        _held(context, a, instruction.a, size, mask).copy() if isinstance(instruction.a, Register) else None
    )
    agent = _agent(context, threads, 1 + context.first // 128)
    then = context.here()
    del held

    def effect() -> None:
        before = context.go_back(then)
        groups = context.count // size
        left = held_a if held_a is not None else _shared_matrix(context, a, instruction.a, mask, agent)[None]
        right = _shared_matrix(context, b, instruction.b, mask, agent)[None]
        old = _held(context, d, instruction.d, size, mask, check=False)
        if clear:
            old = np.zeros_like(old)
        left = np.broadcast_to(left, (groups, *left.shape[1:]))
        right = np.broadcast_to(right, (groups, *right.shape[1:]))
        _put(context, d, emulate_registers(instruction, left, right, old), mask)
        if agent is not None:
            op.clock = machine.tracker.completed(agent)
        context.go_back(before)

    op = Operation(
        instruction.name,
        context.span(),
        threads,
        buffer,
        effect,
        lambda: buffer.poison_registers(low, extent, mask),
    )
    if not machine.is_free:
        effect()
        return
    machine.is_asynchronous = True
    if machine.mode == "early":
        op.land()
    else:
        op.poison()
    queue.open.append(op)


_FAMILIES: dict[str, Callable[..., Any]] = {
    "mma": _matrix,
    "mfma": _matrix,
    "vector": _matrix,
    "fma": _matrix,
    "load": _move,
    "store": _move,
    "cp_async": _copy_async,
    "ldmatrix": _load_matrix,
    "stmatrix": _store_matrix,
    "tma": _tma,
    "wgmma": _warpgroup_matrix,
}
