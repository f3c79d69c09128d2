"""The machine: launches a kernel of a code object and runs its waves, instruction by instruction.

Whole workgroups are run in batches, all their waves in lockstep on NumPy arrays. Waves that have branched
apart are merged again by always running the lowest program counter first. Workgroups of different batches
run one after the other: nothing is known about races between workgroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from tilelab.emulate.gfx942 import atomics, control, ds, lane_moves, mfma, salu, smem, valu, vmem
from tilelab.emulate.gfx942.arguments import Arguments
from tilelab.emulate.gfx942.decode import Instruction, program, unknown
from tilelab.emulate.gfx942.formats import I64, U32
from tilelab.emulate.gfx942.lds import LdsMemory
from tilelab.emulate.gfx942.operands import Step
from tilelab.emulate.gfx942.profile import Diagnostic, Profile, Report
from tilelab.emulate.gfx942.waves import AT_BARRIER, DONE, LANES, RUNNING, Waves, pack
from tilelab.errors import InternalError, TileError
from tilelab.hardware.amd.code_object import CodeObject, Kernel, read_code_object

__all__ = ["Launch", "run"]

Extent = tuple[int, int, int]
_LDS_LIMIT = 65536
_EXEC_LOW, _EXEC_HIGH = 126, 127
_PRELOAD_PROLOGUE = 256
"""A kernel with preloaded arguments starts after this many bytes, a prologue for firmware without preload."""
_MEMORY_MODIFIERS = frozenset(
    ("offset", "offset0", "offset1", "offen", "idxen", "sc0", "sc1", "nt", "glc", "slc", "lds")
)
_FAMILIES = (
    ("s_", (control.bind, salu.bind, smem.bind)),
    ("v_mfma", (mfma.bind,)),
    ("v_", (valu.bind,)),
    ("ds_", (ds.bind, lane_moves.bind)),
    ("", (vmem.bind, atomics.bind)),
)


def run(
    code_object: bytes,
    kernel: str,
    grid: Extent,
    block: Extent,
    args: Sequence[Any],
    *,
    dynamic_lds: int = 0,
    batch_waves: int = 64,
    instruction_limit: int = 200_000_000,
) -> Report:
    """Execute a kernel: `grid` counts workgroups, `block` threads; arrays among `args` are written in place.

    `args` are in the order of the kernel's parameters: NumPy arrays for pointers (None for a null
    pointer), and Python, NumPy or ctypes scalars of the parameter's size. `dynamic_lds` is in bytes.

    Raises TileError: TL601 for an access out of bounds, TL602 for a value used before its load has
    arrived, TL603 for a race in LDS, TL604 beyond `instruction_limit` wave-instructions, TL301 and TL302
    for a launch the chip cannot take, TL5xx for unsuitable arguments. Raises InternalError for an
    instruction that is not modelled.
    """
    started = perf_counter()
    code = read_code_object(code_object)
    found = code.kernel(kernel)
    _check_launch(found, grid, block, dynamic_lds)
    arguments = Arguments(code.image(), found, args, grid, block)
    launch = Launch(code_object, code, found, grid, block, found.lds_bytes + dynamic_lds, arguments)
    per_batch = max(1, batch_waves // launch.waves_per_group)
    groups = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    for first in range(0, len(groups), per_batch):
        launch.run_batch(groups[first : first + per_batch], instruction_limit)
    arguments.write_back()
    return launch.report(len(groups), perf_counter() - started)


def _check_launch(kernel: Kernel, grid: Extent, block: Extent, dynamic_lds: int) -> None:
    threads = block[0] * block[1] * block[2]
    if not 1 <= threads <= kernel.max_workgroup_size:
        limit = kernel.max_workgroup_size
        raise TileError(
            "TL302", f"{kernel.name} is built for at most {limit} threads a block, the launch asks {threads}"
        )
    if min(grid) < 0:
        raise TileError("TL302", f"{kernel.name}: negative grid {grid}")
    if kernel.lds_bytes + dynamic_lds > _LDS_LIMIT:
        raise TileError(
            "TL301", f"{kernel.name} needs {kernel.lds_bytes + dynamic_lds} bytes of LDS, a block has 65536"
        )
    if kernel.private_bytes:
        raise InternalError(
            f"{kernel.name} uses {kernel.private_bytes} bytes of scratch, which is not modelled"
        )


@dataclass
class Launch:
    """One launch under way: its code and arguments, and what has been counted so far."""

    code_object: bytes
    code: CodeObject
    kernel: Kernel
    grid: Extent
    block: Extent
    lds_bytes: int
    arguments: Arguments
    profile: Profile = field(default_factory=Profile)
    diagnostics: dict[str, int] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)
    executed: int = 0

    def __post_init__(self) -> None:
        self.program = program(self.code_object)
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.waves_per_group = -(-self.threads // LANES)

    # --------------------------------------------------------------------------------------------- running
    def run_batch(self, groups: list[Extent], instruction_limit: int) -> None:
        """Run whole workgroups to their end."""
        lds = LdsMemory(len(groups), self.lds_bytes, self.waves_per_group)
        waves = Waves(self.kernel.name, groups, self.waves_per_group, self.arguments.memory, lds)
        waves.code_address = self.arguments.code_address
        self._set_initial_state(waves)
        with np.errstate(all="ignore"):
            while self._run_lowest(waves):
                if self.executed > instruction_limit:
                    raise waves.fault(
                        "TL604", f"the kernel ran for more than {instruction_limit} wave-instructions"
                    )
        self.profile.add(waves.profile)
        for message, times in waves.diagnostics.items():
            self.diagnostics[message] = self.diagnostics.get(message, 0) + times

    def _run_lowest(self, waves: Waves) -> bool:
        """Run the waves with the lowest pc until they branch or meet others; False when all are done."""
        running = np.flatnonzero(waves.status == RUNNING)
        if not len(running):
            return _release_barriers(waves)
        counters = waves.pc[running]
        pc = int(counters.min())
        chosen = running[counters == pc]
        others = counters[counters != pc]
        meeting = int(others.min()) if len(others) else -1
        waves.select(chosen)
        counts = waves.profile.by_mnemonic
        while True:
            instruction = self.program.get(pc)
            if instruction is None:
                raise waves.fault("TL601", f"execution ran to {pc:#x}, which is not code")
            waves.instruction = instruction
            step = self.steps.get(pc)
            if step is None:
                step = self.steps[pc] = bind(instruction)
            step(waves)
            counts[instruction.name] += waves.count
            self.executed += waves.count
            if control.ends_straight_run(instruction):
                return True
            pc += instruction.size
            if pc == meeting:
                waves.pc[chosen] = pc
                return True

    def _set_initial_state(self, waves: Waves) -> None:
        """Registers as the command processor and the kernel's prologue leave them."""
        kernel = self.kernel
        thread = waves.wave[:, None] * LANES + np.arange(LANES)[None]
        waves.exec[:] = thread < self.threads
        bits = pack(waves.exec)
        waves.scalar[_EXEC_LOW], waves.scalar[_EXEC_HIGH] = (
            bits & np.uint64(0xFFFFFFFF),
            bits >> np.uint64(32),
        )
        x = thread % self.block[0]
        y = thread // self.block[0] % self.block[1]
        z = thread // (self.block[0] * self.block[1])
        waves.vector[0] = (x | y << 10 | z << 20).astype(U32)
        at = self._set_user_scalars(waves)
        numbers = np.array(waves.groups, I64)[waves.group]
        for axis in range(3):
            if kernel.resource_word2 >> (7 + axis) & 1:
                waves.scalar[at] = numbers[:, axis]
                at += 1
        waves.pc[:] = kernel.entry + (_PRELOAD_PROLOGUE if kernel.preload_count else 0)

    def _set_user_scalars(self, waves: Waves) -> int:
        """Fill the user scalar registers that the descriptor asks for; gives the first one after them."""
        kernel = self.kernel
        # in the order of the ABI; only the address of the argument segment has a meaning here
        wanted = (
            (1, 4, 0),
            (2, 2, 0),
            (4, 2, 0),
            (8, 2, self.arguments.address),
            (16, 2, 0),
            (32, 2, 0),
            (64, 1, 0),
        )
        at = 0
        for flag, count, value in wanted:
            if kernel.setup_flags & flag:
                for index in range(count):
                    waves.scalar[at + index] = value >> (32 * index) & 0xFFFFFFFF
                at += count
        words = np.frombuffer(self.arguments.segment.ljust(1024, b"\0"), U32)
        for index in range(kernel.preload_count):
            waves.scalar[at] = words[kernel.preload_offset + index]
            at += 1
        return at if kernel.preload_count else max(at, kernel.resource_word2 >> 1 & 31)

    # --------------------------------------------------------------------------------------------- result
    def report(self, workgroups: int, seconds: float) -> Report:
        """The totals of all batches."""
        profile = self.profile
        return Report(
            kernel=self.kernel.name,
            workgroups=workgroups,
            waves_per_group=self.waves_per_group,
            instructions=self.executed,
            by_mnemonic=dict(sorted(profile.by_mnemonic.items())),
            matrix_cycles=profile.matrix_cycles,
            matrix_flops=profile.matrix_flops,
            accesses=profile.accesses(),
            suppressed_lanes=profile.suppressed_lanes,
            diagnostics=tuple(Diagnostic(m, t) for m, t in sorted(self.diagnostics.items())),
            seconds=seconds,
        )


def _release_barriers(waves: Waves) -> bool:
    """Let go the workgroups whose waves have all arrived or ended; False when every wave has ended."""
    if (waves.status == DONE).all():
        return False
    waiting = waves.status == AT_BARRIER
    for group in np.unique(waves.group[waiting]):
        waves.lds.next_interval(int(group))
    waves.status[waiting] = RUNNING
    return True


def bind(instruction: Instruction) -> Step:
    """What an instruction does; raises InternalError for one that is not modelled."""
    for prefix, binders in _FAMILIES:
        if instruction.name.startswith(prefix):
            if prefix in ("ds_", "") and instruction.modifiers.keys() - _MEMORY_MODIFIERS:
                raise unknown(instruction, "modifier")
            for binder in binders:
                step = binder(instruction)
                if step is not None:
                    return step
            break
    raise unknown(instruction)
