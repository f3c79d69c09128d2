"""Targets: what a kernel is compiled for, parsed from text such as `cuda:sm_90a`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache

from tilelab.errors import TileError

__all__ = ["TARGETS", "Target", "default_target", "parse_target"]


@dataclass(frozen=True)
class Target:
    """A kind of back end (`llvm`, `cuda`, `hip`) and an architecture that `tilelab.hardware.chip` knows."""

    kind: str
    arch: str

    def __str__(self) -> str:
        return self.kind if self.kind == "llvm" else f"{self.kind}:{self.arch}"


TARGETS: tuple[Target, ...] = (
    Target("llvm", "cpu"),
    Target("cuda", "sm_80"),
    Target("cuda", "sm_89"),
    Target("cuda", "sm_90"),
    Target("cuda", "sm_90a"),
    Target("hip", "gfx942"),
)
_ALIASES = {"cpu": "llvm", "cuda": "cuda:sm_90a", "hip": "hip:gfx942", "rocm": "hip:gfx942", "c": "llvm"}


def parse_target(text: str | Target | None) -> Target:
    """The target that `text` names; None or `auto` picks the machine's own. Raises TL401 for another."""
    if isinstance(text, Target):
        return text
    if text is None or text == "auto":
        return default_target()
    wanted = _ALIASES.get(text, text)
    for target in TARGETS:
        if wanted in (str(target), target.arch):
            return target
    names = ", ".join(str(t) for t in TARGETS)
    raise TileError("TL401", f"no target is called {text!r}", help=f"use one of {names}")


@cache
def default_target() -> Target:
    """`TILELAB_TARGET` if set, else the NVIDIA GPU of this machine by its driver, else the CPU."""
    if named := os.environ.get("TILELAB_TARGET"):
        return parse_target(named)
    capability = _nvidia_capability()
    if capability is None:
        return TARGETS[0]
    wanted = {(8, 0): "sm_80", (8, 6): "sm_80", (8, 7): "sm_80", (8, 9): "sm_89", (9, 0): "sm_90a"}.get(
        capability
    )
    return parse_target(f"cuda:{wanted}") if wanted else TARGETS[0]


def _nvidia_capability() -> tuple[int, int] | None:
    """Compute capability of the first NVIDIA GPU, asked of the driver itself; None without one."""
    import ctypes

    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return None
    # 75 and 76: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
    if driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device) != 0:
        return None
    if driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device) != 0:
        return None
    return major.value, minor.value
