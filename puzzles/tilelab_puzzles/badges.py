"""What became of a kernel on each of three machines: run, compiled, or emulated, said as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tilelab

__all__ = ["MACHINES", "Badge", "Badges", "badges"]

MACHINES = (("CPU", "llvm"), ("H100", "cuda:sm_90a"), ("MI300X", "hip:gfx942"))


@dataclass(frozen=True)
class Badge:
    """One machine: its name, what happened in a word or two, and the figures behind it."""

    machine: str
    status: str
    detail: str


@dataclass(frozen=True)
class Badges:
    """The badges of a kernel; prints as one line with the details below."""

    rows: tuple[Badge, ...]

    def __str__(self) -> str:
        line = " · ".join(f"{row.machine} {row.status}" for row in self.rows)
        width = max(len(row.machine) for row in self.rows)
        return "\n".join([line, *(f"  {row.machine:<{width}}  {row.detail}" for row in self.rows)])

    __repr__ = __str__


def badges(kernel: Any, *args: Any) -> Badges:
    """Compile the kernel for a CPU, an H100 and an MI300X, and run it where it can be run.

    The first result is what the others are compared with. A machine that refuses the kernel gets the error's
    first line.
    """
    rows: list[Badge] = []
    first: np.ndarray | None = None
    for machine, target in MACHINES:
        try:
            compiled = kernel.compile(*args, target=target)
            result = np.asarray(compiled(*args), np.float64)
            status, detail = _outcome(compiled)
        except tilelab.TileError as error:
            rows.append(Badge(machine, "refused", f"{error.code}: {error.message}"))
            continue
        if first is None:
            first = result
        else:
            size = float(np.linalg.norm(first)) or 1.0
            detail += f"; {float(np.linalg.norm(result - first)) / size:.0e} from the first result"
        rows.append(Badge(machine, status, detail))
    return Badges(tuple(rows))


def _outcome(kernel: Any) -> tuple[str, str]:
    """What happened, from where the kernel ran and what compiled it."""
    where = kernel.execution.kind
    if where == "cpu":
        return "ran", "machine code by LLVM"
    try:
        usage = kernel.resource_usage
        built = f"{usage['registers']} registers, {usage['shared'] / 1024:g} KiB shared"
    except tilelab.TileError as error:
        return "printed, not compiled", f"{error.message}; its IR ran in the emulator"
    if where in ("cuda", "hip"):
        return "ran", f"{built}; on this machine's GPU"
    if where == "gfx942":
        return "emulated", f"{built}; the compiled code, never on silicon here"
    return "compiled, not run", f"{built}; its IR in the emulator"
