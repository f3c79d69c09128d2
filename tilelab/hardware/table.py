"""All rows and chips in one place, and how to find one by its name."""

from __future__ import annotations

from functools import cache

from tilelab.errors import TileError
from tilelab.hardware.amd import chips as amd_chips
from tilelab.hardware.amd import memory, mfma
from tilelab.hardware.cpu import chips as cpu_chips
from tilelab.hardware.cpu import vector
from tilelab.hardware.model import Chip, Instruction
from tilelab.hardware.nvidia import chips as nvidia_chips
from tilelab.hardware.nvidia import copies, ldmatrix, mma, tma, wgmma

__all__ = ["CHIPS", "ROWS", "chip", "row"]

# Families with a free extent (wgmma's n, a TMA box) are here by their corners; `row` makes the other members.
ROWS: tuple[Instruction, ...] = (
    *wgmma.ROWS,
    *mma.ROWS,
    *ldmatrix.ROWS,
    *tma.ROWS,
    *copies.ROWS,
    *mfma.ROWS,
    *memory.ROWS,
    *vector.ROWS,
)
CHIPS: tuple[Chip, ...] = (*cpu_chips.CHIPS, *nvidia_chips.CHIPS, *amd_chips.CHIPS)

_BY_NAME = {each.name: each for each in ROWS}
_BY_ARCH = {each.arch: each for each in CHIPS}


@cache
def row(name: str) -> Instruction:
    """The instruction of a name, members of families included. Raises TL203 for an unknown name."""
    found = _BY_NAME.get(name) or wgmma.from_name(name) or tma.from_name(name)
    if found is None:
        raise TileError("TL203", f"no instruction is called {name!r}")
    return found


def chip(arch: str) -> Chip:
    """The chip of an architecture such as sm_90a, gfx942 or cpu. Raises TL401 for an unknown one."""
    if arch not in _BY_ARCH:
        raise TileError("TL401", f"no chip is called {arch!r}", help=f"use one of {', '.join(_BY_ARCH)}")
    return _BY_ARCH[arch]
