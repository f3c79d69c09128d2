"""Where kernels of a target run on this machine, and what a kernel's IR says of its launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tilelab import settings
from tilelab.errors import TileError
from tilelab.ir.build import as_int
from tilelab.ir.nodes import AttrStmt, PrimFunc, Store, TileCall, is_buffer
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import writes
from tilelab.targets import Target

__all__ = ["Execution", "choose", "has_empty_grid", "written"]


@dataclass(frozen=True)
class Execution:
    """Where kernels of a target run here.

    `kind` is cpu, cuda, hip, gfx942 (the code object in the emulator) or ir (the IR emulator); `reason` says
    why it is not the device itself.
    """

    kind: str
    reason: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """The kinds of device that its tensors may be on."""
        return {"cpu": ("cpu",), "cuda": ("cuda", "cpu"), "hip": ("cuda", "cpu")}.get(
            self.kind, ("cpu", "cuda")
        )

    @property
    def doc(self) -> str:
        """A few words for people."""
        return {
            "cpu": "on the CPU", "cuda": "on the GPU", "hip": "on the GPU",
            "gfx942": "the compiled code object in the gfx942 emulator, never run on silicon",
            "ir": "the device IR in the emulator",
        }[self.kind]  # fmt: skip


def choose(target: Target, emulate: bool | None = None) -> Execution:
    """Where kernels for the target run on this machine; `emulate` overrides the setting of that name."""
    forced = settings.get("emulate") if emulate is None else emulate
    if target.kind == "llvm":
        return Execution("cpu")
    if target.kind == "cuda":
        reason = "emulation was asked for" if forced else _why_not_cuda(target.arch)
        return Execution("ir", reason) if reason else Execution("cuda")
    if not forced and _has_hip():
        return Execution("hip")
    reason = "emulation was asked for" if forced else "there is no ROCm device here"
    from tilelab.runtime.hip_build import find_tool

    if find_tool() is None:
        return Execution("ir", f"{reason}, and no compiler for {target.arch}: pip install 'tilelab[hip]'")
    return Execution("gfx942", reason)


@cache
def _why_not_cuda(arch: str) -> str:
    """Why this machine cannot run code for `arch`; nothing when it can."""
    from tilelab.runtime.cuda_driver import cuda

    try:
        major, minor = cuda().capability
    except TileError as error:
        return error.message.partition(":")[0]
    number = arch.removeprefix("sm_")
    wanted = int(number.rstrip("a")[:-1]), int(number.rstrip("a")[-1])
    fits = (major, minor) == wanted if number.endswith("a") else major == wanted[0] and minor >= wanted[1]
    return "" if fits else f"the GPU here is sm_{major}{minor}, which does not run code for {arch}"


def _has_hip() -> bool:
    from tilelab.runtime.hip_driver import hip

    return hip() is not None


def has_empty_grid(f: PrimFunc) -> bool:
    """Whether the kernel is known to have no blocks: one of its tensors is empty."""
    binds = (
        s for s in each_statement(f.body) if isinstance(s, AttrStmt) and str(s.attr_key) == "thread_extent"
    )
    return any(as_int(s.value) == 0 for s in binds)


def written(f: PrimFunc) -> frozenset[int]:
    """Positions of the parameters that the kernel writes."""
    names = set()
    for node in each_statement(f.body):
        if isinstance(node, Store):
            names.add(str(node.buffer.name))
        elif isinstance(node, TileCall):
            names |= {str(region.source.name) for region in writes(node)}
    return frozenset(i for i, p in enumerate(f.params) if is_buffer(p) and str(p.name) in names)
