"""Instructions that steer: branches, barriers, waits, the end, and hints without effect on values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942.decode import VCC, Instruction, unknown
from tilelab.emulate.gfx942.formats import I64, U32, U64, Array
from tilelab.emulate.gfx942.operands import Step
from tilelab.emulate.gfx942.vmem_to_lds import land_arrived
from tilelab.emulate.gfx942.waits import parse_waitcnt
from tilelab.emulate.gfx942.waves import AT_BARRIER, DONE, Waves

__all__ = ["bind", "ends_straight_run"]

_WITHOUT_EFFECT = (
    "s_nop",
    "s_setprio",
    "s_sleep",
    "s_icache_inv",
    "s_dcache_inv",
    "s_dcache_wb",
    "s_sethalt",
    "s_ttracedata",
)
_CONDITIONS: dict[str, Callable[[Waves], Array]] = {
    "s_branch": lambda w: np.ones(w.count, bool),
    "s_cbranch_scc0": lambda w: ~w.scc[w.selected],
    "s_cbranch_scc1": lambda w: w.scc[w.selected],
    "s_cbranch_vccz": lambda w: w.read_scalar_pair(VCC) == 0,
    "s_cbranch_vccnz": lambda w: w.read_scalar_pair(VCC) != 0,
    "s_cbranch_execz": lambda w: ~np.asarray(w.active.any(axis=1)),
    "s_cbranch_execnz": lambda w: np.asarray(w.active.any(axis=1)),
}


def ends_straight_run(instruction: Instruction) -> bool:
    """Whether the instruction itself decides where or whether its waves go on."""
    return instruction.name in _CONDITIONS or instruction.name in _STEERING


def bind(instruction: Instruction) -> Step | None:
    """The step of a steering instruction, or None if it is not one."""
    name = instruction.name
    if name in _CONDITIONS:
        return _bind_branch(instruction, _CONDITIONS[name])
    if name in _STEERING:
        return _STEERING[name](instruction)
    if name == "s_waitcnt":
        return _bind_wait(instruction)
    if name in _WITHOUT_EFFECT:
        return lambda w: None
    return _OTHER[name](instruction) if name in _OTHER else None


def _bind_branch(instruction: Instruction, condition: Callable[[Waves], Array]) -> Step:
    after = instruction.pc + instruction.size
    words = int(instruction.raw_operands[0].split()[0], 0)
    target = after + 4 * (words - 0x10000 if words >= 0x8000 else words)

    def step(w: Waves) -> None:
        w.pc[w.selected] = np.where(condition(w), target, after)

    return step


def _bind_barrier(instruction: Instruction) -> Step:
    after = instruction.pc + instruction.size

    def step(w: Waves) -> None:
        chosen = w.selected
        w.status[chosen] = AT_BARRIER
        w.pc[chosen] = after
        w.lds.arrive(w.group[chosen], w.wave[chosen], w.waits.lgkm_done[chosen])

    return step


def _bind_end(instruction: Instruction) -> Step:
    def step(w: Waves) -> None:
        w.status[w.selected] = DONE
        w.pc[w.selected] = np.iinfo(I64).max
        for index in w.selected_indices():
            if w.on_the_way_to_lds[index]:
                w.diagnostics["a wave ended with direct-to-LDS loads outstanding"] += 1

    return step


def _bind_trap(instruction: Instruction) -> Step:
    def step(w: Waves) -> None:
        raise w.fault("TL506", "the kernel executed s_trap")

    return step


def _bind_wait(instruction: Instruction) -> Step:
    vm, lgkm = parse_waitcnt(instruction)

    def step(w: Waves) -> None:
        w.waits.wait(vm, lgkm, w.selected)
        if vm is not None:
            land_arrived(w)

    return step


def _bind_get_pc(instruction: Instruction) -> Step:
    """The address of the next instruction, as data near the code is addressed."""
    target, after = instruction.operands[0].register, instruction.pc + instruction.size
    return lambda w: w.write_scalar_pair(target, np.array([w.code_address + after], U64))


def _bind_read_hardware_register(instruction: Instruction) -> Step:
    if "HW_REG_MODE" in instruction.text or "HW_REG_HW_ID" in instruction.text:
        raise unknown(instruction, "hardware register")
    target = instruction.operands[0].register
    zero = np.zeros(1, U32)
    return lambda w: w.write_scalar(target, zero)


def _bind_set_mode(instruction: Instruction) -> Step:
    def step(w: Waves) -> None:
        w.diagnostics[f"{instruction.text} at pc {instruction.pc:#x} has no effect in the emulator"] += (
            w.count
        )

    return step


_STEERING: dict[str, Callable[[Instruction], Step]] = {
    "s_barrier": _bind_barrier,
    "s_endpgm": _bind_end,
    "s_trap": _bind_trap,
}
_OTHER: dict[str, Callable[[Instruction], Step]] = {
    "s_getpc_b64": _bind_get_pc,
    "s_getreg_b32": _bind_read_hardware_register,
    "s_setreg_imm32_b32": _bind_set_mode,
    "s_setreg_b32": _bind_set_mode,
}
