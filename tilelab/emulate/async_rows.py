"""Rows that finish later: how they are put under way, TMA boxes, and the warpgroup's matrix rows."""

from __future__ import annotations

import numpy as np

from tilelab.emulate.asynchronous import Operation
from tilelab.emulate.lanes import put, registers_of, whole_groups
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import agreed, and_mask
from tilelab.emulate.tile_ops import region_of
from tilelab.hardware import Completes, Instruction, Register
from tilelab.hardware.meanings import emulate_registers

__all__ = ["start", "tma", "warpgroup_matrix"]

_QUEUES = {"cp_async": "cp.async", "wgmma": "wgmma", "tma": "bulk"}


def start(context, instruction, threads, target, effect, poison, machine) -> None:
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


# ---- TMA and wgmma


def _one_issuer(context, instruction: Instruction, mask) -> np.ndarray:
    threads = context.active(mask)
    if context.machine.is_free and threads.size != 1:
        raise fault(
            "TL304",
            f"{instruction.name} is issued by one thread, not by {threads.size}" + context.iteration_text(),
            context.span(),
        )
    return threads[:1]


def _box(context, region, tile, mask):
    """A region as a box whose extents other than 1 are the tile's."""
    buffer, low, extent = region_of(context, region, mask)
    if tuple(e for e in extent if e != 1) != tuple(e for e in tile if e != 1):
        raise fault("TL201", f"a box of {tile} is given {buffer.name}'s region of {extent}", context.span())
    return buffer, low, extent


def tma(context, instruction: Instruction, regions, predicate, config, mask) -> None:
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
    """A wgmma operand's tile (rows, k) from the logical region of a shared tile, turned if it was given
    as (k, rows).
    """
    buffer, low, extent = region_of(context, region, mask)
    shape = tuple(e for e in extent if e != 1) or (1,)
    values = buffer.read_tile(context, low, extent, who=agent).reshape(shape)
    want = operand.tile
    if shape == want and not (want[0] == want[1] and operand.major == "mn"):
        return values
    if shape == want[::-1]:
        return values.T
    raise fault("TL201", f"an operand of {want} is given {buffer.name}'s region of {extent}", context.span())


def warpgroup_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    machine = context.machine
    mask = whole_groups(context, instruction, mask)
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
        held = registers_of(context, d, instruction.d, size, mask)
    held_a = (
        held(context, a, instruction.a, size, mask).copy() if isinstance(instruction.a, Register) else None
    )
    agent = _agent(context, threads, 1 + context.first // 128)
    then = context.here()
    del held

    def effect() -> None:
        before = context.go_back(then)
        groups = context.count // size
        left = held_a if held_a is not None else _shared_matrix(context, a, instruction.a, mask, agent)[None]
        right = _shared_matrix(context, b, instruction.b, mask, agent)[None]
        old = registers_of(context, d, instruction.d, size, mask, check=False)
        if clear:
            old = np.zeros_like(old)
        left = np.broadcast_to(left, (groups, *left.shape[1:]))
        right = np.broadcast_to(right, (groups, *right.shape[1:]))
        put(context, d, emulate_registers(instruction, left, right, old), mask)
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
