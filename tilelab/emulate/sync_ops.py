"""Operations that order threads: barriers, mbarriers, channels, asynchronous groups and fences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.barriers import Mbarrier, Rendezvous, Wait
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import agreed

__all__ = ["SYNC_OPS", "arrive"]


def _barrier(context, operands, config, mask):
    machine = context.machine
    active = context.active(mask)
    if active.size == 0:
        return
    given, number = config.get("threads"), config.get("id")
    expected = int(given) if given else (context.count if number is None else machine.threads)
    if expected < context.count and context.count % expected == 0 and number is None:
        # Smaller than the role: a barrier of each warp (or wave) by itself.
        if machine.tracker is not None:
            for part in np.split(context.threads, context.count // expected):
                machine.tracker.join(np.intersect1d(part, active))
        return
    key = ("role", context.first) if number is None and not given else ("named", int(number or 0))
    meeting = machine.meetings.setdefault(key, Rendezvous())
    generation = meeting.generation
    meeting.arrived.append(active)
    total = sum(part.size for part in meeting.arrived)
    if total > expected:
        raise fault(
            "TL304",
            f"{total} threads arrive at a barrier of {expected}{context.iteration_text()}",
            context.span(),
        )
    if total == expected:
        if machine.tracker is not None:
            machine.tracker.join(np.unique(np.concatenate(meeting.arrived)))
        meeting.arrived, meeting.generation = [], generation + 1
        return
    name = "the barrier" if number is None else f"barrier {number}"
    yield Wait(
        context.name,
        lambda: f"{name} of {expected} threads, {sum(p.size for p in meeting.arrived)} have come",
        lambda: meeting.generation != generation,
        context.span(),
    )


# ---- mbarriers


def arrive(context, barrier: Mbarrier, times: int, threads, extra_bytes: int = 0) -> None:
    """Arrive `times` times on behalf of the threads, raising the bytes that the phase waits for."""
    machine = context.machine
    barrier.bytes += extra_bytes
    barrier.pending -= times
    if barrier.pending < 0:
        raise fault(
            "TL304",
            f"more arrivals than the {barrier.count} that a phase of the barrier takes"
            + context.iteration_text(),
            context.span(),
        )
    if machine.tracker is not None and threads.size:
        barrier.add_clock(machine.tracker.release(threads))
    barrier.settle()


def wait_for(context, barrier: Mbarrier, parity: int, what: str, mask):
    """Suspend until the phase with this parity has completed; then the waiting threads know what it
    carries.
    """
    machine = context.machine
    span = context.span()

    def ready() -> bool:
        return barrier.passes(parity)

    def force() -> bool:
        if not barrier.transfers:
            return False
        position = int(machine.random.integers(len(barrier.transfers)))
        barrier.transfers.pop(position).land()
        return True

    def text() -> str:
        return (
            f"{what}, parity {parity} (phase {barrier.phase} is open: {barrier.pending} of {barrier.count}"
            f" arrivals and {barrier.bytes} bytes to come{context.iteration_text()})"
        )

    at = context.at
    # A role that could go on lets others run first now and then, so that seeds try different interleavings.
    while not ready() or (len(machine.contexts) > 1 and machine.random.random() < 0.25):
        yield Wait(context.name, text, ready, span, force)
        if ready():
            break
    context.at = at
    if machine.tracker is not None and barrier.completed is not None:
        machine.tracker.acquire(context.active(mask), barrier.completed)


def _mbarrier_init(context, operands, config, mask) -> None:
    if not context.may_fault(mask):
        return
    array, low, _ = operands[0]
    index = int(agreed(low[0], context, mask))
    if not 0 <= index < len(array.full):
        raise fault("TL601", f"{array.name}[{index}] is outside its {len(array.full)} slots", context.span())
    array.full[index].start(int(agreed(operands[1], context, mask)))


def _mbarrier_expect(context, operands, config, mask) -> None:
    active = context.active(mask)
    if active.size:
        _, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask))
        bytes_each = int(agreed(operands[1], context, mask))
        arrive(context, barrier, active.size, active, bytes_each * active.size)


def _mbarrier_arrive(context, operands, config, mask) -> None:
    active = context.active(mask)
    if active.size:
        _, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask))
        arrive(context, barrier, active.size, active)


def _mbarrier_wait(context, operands, config, mask):
    if context.may_fault(mask):
        index, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask))
        parity = int(agreed(operands[1], context, mask))
        yield from wait_for(context, barrier, parity, f"{operands[0][0].name}[{index}]", mask)


def _agreed_slot(context, operand, mask):
    array, low, extent = operand
    return array, tuple(agreed(i, context, mask) for i in low), extent


# ---- channels: `full` completes by commits, `empty` by releases


def _acquire(context, operands, config, mask):
    index, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask), released=True)
    parity = int(agreed(operands[1], context, mask))
    yield from wait_for(context, barrier, parity, f"{operands[0][0].name}[{index}] to be released", mask)


def _commit(context, operands, config, mask) -> None:
    _, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask))
    arrive(context, barrier, 1, context.active(mask))


def _wait(context, operands, config, mask):
    index, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask))
    parity = int(agreed(operands[1], context, mask))
    yield from wait_for(context, barrier, parity, f"{operands[0][0].name}[{index}] to be committed", mask)


def _release(context, operands, config, mask) -> None:
    _, barrier = operands[0][0].slot(context, _agreed_slot(context, operands[0], mask), released=True)
    arrive(context, barrier, 1, context.active(mask))


# ---- groups of asynchronous operations, fences


def _commit_group(context, operands, config, mask) -> None:
    active = context.active(mask)
    if active.size:
        context.queues[str(config.get("kind", "cp.async"))].commit(active)


def _wait_group(context, operands, config, mask) -> None:
    active = context.active(mask)
    if active.size == 0:
        return
    tracker = context.machine.tracker
    # What a store has read it writes at once here, so that waiting for either is the same.
    kind = str(config.get("kind", "cp.async")).removesuffix(".read")
    for op in context.queues[kind].wait(int(config.get("pending", 0)), active):
        if tracker is not None and op.clock is not None:
            tracker.acquire(active, op.clock)


def _fence(context, operands, config, mask) -> None:
    tracker = context.machine.tracker
    if tracker is not None and config.get("kind") == "proxy.async":
        tracker.fence(context.active(mask))
    if config.get("kind") == "wgmma":
        context.unfenced.clear()


def _set_max_registers(context, operands, config, mask) -> None:
    """Registers are not counted here: nothing happens."""


SYNC_OPS: dict[str, Callable[..., Any]] = {
    "barrier": _barrier,
    "acquire": _acquire,
    "commit": _commit,
    "wait": _wait,
    "release": _release,
    "commit_group": _commit_group,
    "wait_group": _wait_group,
    "fence": _fence,
    "mbarrier_init": _mbarrier_init,
    "mbarrier_expect": _mbarrier_expect,
    "mbarrier_arrive": _mbarrier_arrive,
    "mbarrier_wait": _mbarrier_wait,
    "set_max_registers": _set_max_registers,
}
