"""Rows that finish later: how they are put under way, TMA boxes, and the warpgroup's matrix rows."""

from __future__ import annotations

import numpy as np

from tilelab.emulate.asynchronous import Operation
from tilelab.emulate.lanes import registers_of, whole_groups
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import agreed, and_mask
from tilelab.emulate.tile_ops import region_of
from tilelab.hardware import Completes, Instruction, Register
from tilelab.hardware.meanings import emulate_registers

__all__ = ["put_under_way", "tma", "warpgroup_matrix"]


def put_under_way(context, op: Operation, kind: str) -> None:
    """Queue an operation, or let it take effect now where asynchronous rows complete at once."""
    machine = context.machine
    if not machine.is_free:
        op.land()
        return
    machine.is_asynchronous = True
    if machine.mode == "early":
        op.land()
    else:
        op.poison()
    context.queues[kind].open.append(op)


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
    put_under_way(context, op, "bulk")


def _shared_matrix(context, region, operand, mask, agent) -> np.ndarray:
    """A wgmma operand's tiles (warpgroups, rows, k) from logical regions of a shared tile.

    A region given as (k, rows) is turned. Each warpgroup of a role may address another region.
    """
    everyone = np.ones(context.count, bool) if mask is None else mask
    tiles = []
    for group in range(context.count // 128):
        mine = everyone & (np.arange(context.count) // 128 == group)
        if not mine.any():
            tiles.append(np.zeros(operand.tile, region[0].view.dtype))
            continue
        buffer, low, extent = region_of(context, region, mine)
        shape = tuple(e for e in extent if e != 1) or (1,)
        values = buffer.read_tile(context, low, extent, who=agent).reshape(shape)
        want = operand.tile
        if shape == want and not (want[0] == want[1] and operand.major == "mn"):
            tiles.append(values)
        elif shape == want[::-1]:
            tiles.append(values.T)
        else:
            raise fault(
                "TL201", f"an operand of {want} is given {buffer.name}'s region of {extent}", context.span()
            )
    return np.stack(tiles)


def _check_wgmma_fence(context, buffers) -> None:
    """TL605 for registers that the threads wrote since the last wgmma fence."""
    for buffer in buffers:
        if (at := context.unfenced.get(id(buffer.root))) is not None:
            raise fault(
                "TL605",
                f"wgmma uses {buffer.name}, which the threads wrote with no wgmma fence since"
                + context.iteration_text(),
                context.span(),
                ((context.machine.span(at), "written here"),),
                help='put T.fence(kind="wgmma") between the two',
            )


def warpgroup_matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    """wgmma: D += A · Bᵀ on each warpgroup, at any time until its group has been waited for."""
    machine = context.machine
    mask = whole_groups(context, instruction, mask)
    if mask is not None and not mask.any():
        return
    d, a, b = regions
    size = instruction.scope.threads
    buffer, low, extent = region_of(context, d, mask)
    clear = bool(config.get("clear")) or (predicate is not None and not agreed(predicate, context, mask))
    queue = context.queues["wgmma"]
    chained = any(op.target is not None and op.target.root is buffer.root for op in queue.under_way())
    a_held = isinstance(instruction.a, Register)
    # A's registers must be there when it is issued, and so must D unless an earlier wgmma makes it.
    if a_held:
        registers_of(context, a, instruction.a, size, mask)
    if not clear and not chained:
        registers_of(context, d, instruction.d, size, mask)
    if machine.is_free:
        _check_wgmma_fence(context, [buffer, *([a[0]] if a_held else [])])
    agent = _agent(context, context.active(mask), 1 + context.first // 128)
    then = context.here()

    def effect() -> None:
        before = context.go_back(then)
        left = (
            registers_of(context, a, instruction.a, size, mask, check=False)
            if a_held
            else _shared_matrix(context, a, instruction.a, mask, agent)
        )
        right = _shared_matrix(context, b, instruction.b, mask, agent)
        old = registers_of(context, d, instruction.d, size, mask, check=False)
        result = emulate_registers(instruction, left, right, np.zeros_like(old) if clear else old)
        buffer.set_registers(low, extent, result.reshape(context.count, -1), mask)
        if agent is not None:
            op.clock = machine.tracker.completed(agent)
        context.go_back(before)

    def poison() -> None:
        buffer.poison_registers(low, extent, mask)

    op = Operation(instruction.name, context.span(), context.active(mask), buffer, effect, poison)
    put_under_way(context, op, "wgmma")
