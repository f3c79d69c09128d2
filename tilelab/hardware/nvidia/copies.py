"""Copies of single threads on NVIDIA chips: cp.async, and plain loads and stores of 1 to 16 bytes."""

from __future__ import annotations

from tilelab.hardware.model import THREAD, Completes, Cost, Global, Instruction, Register, Shared, sm
from tilelab.layout import Layout as L

_BYTE = "uint8"
# The word that one access moves, as CUDA C++ spells it.
WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}
_BYTES = tuple((arch, 128.0) for arch in ("sm_80", "sm_89", "sm_90", "sm_90a"))


def _register(width: int) -> Register:
    return Register(_BYTE, (width,), L((1, width), (0, 1)))


def _cp_async(width: int) -> Instruction:
    # .cg goes past L1 and exists only for 16 bytes; the last operand is the source size: what is beyond is
    # zero.
    cache = "cg" if width == 16 else "ca"
    return Instruction(
        name=f"cp.async.{width}",
        family="cp_async",
        needs=sm(80),
        scope=THREAD,
        d=Shared(_BYTE, (width,), align=width),
        a=Global(_BYTE, (width,), align=width),
        b=None,
        means="copy_or_zero",
        text=f"cp.async.{cache}.shared.global [{{d}}], [{{a}}], {width}, {{bytes}};",
        fields=("bytes",),
        completes=Completes.GROUP,
        cost=Cost(bytes=width, rates=_BYTES),
        source="PTX ISA, 'cp.async'",
    )


def _load(space: str, width: int) -> Instruction:
    memory = (
        Shared(_BYTE, (width,), align=width) if space == "shared" else Global(_BYTE, (width,), align=width)
    )
    return Instruction(
        name=f"ld.{space}.b{8 * width}",
        family="load",
        needs=sm(50),
        scope=THREAD,
        d=_register(width),
        a=memory,
        b=None,
        means="copy",
        text=f"{{d}} = *(const {WORDS[width]}*)({{a}});",
        dialect="c",
        cost=Cost(bytes=width, rates=_BYTES),
        source="CUDA C++ programming guide, 'Device memory accesses': words of 1, 2, 4, 8, 16 bytes, aligned",
    )


def _store(space: str, width: int) -> Instruction:
    memory = (
        Shared(_BYTE, (width,), align=width) if space == "shared" else Global(_BYTE, (width,), align=width)
    )
    return Instruction(
        name=f"st.{space}.b{8 * width}",
        family="store",
        needs=sm(50),
        scope=THREAD,
        d=memory,
        a=_register(width),
        b=None,
        means="copy",
        text=f"*({WORDS[width]}*)({{d}}) = {{a}};",
        dialect="c",
        cost=Cost(bytes=width, rates=_BYTES),
        source="CUDA C++ programming guide, 'Device memory accesses': words of 1, 2, 4, 8, 16 bytes, aligned",
    )


CP_ASYNC = tuple(_cp_async(width) for width in (4, 8, 16))
LOADS = tuple(_load(space, width) for space in ("global", "shared") for width in WORDS)
STORES = tuple(_store(space, width) for space in ("global", "shared") for width in WORDS)
ROWS = (*CP_ASYNC, *LOADS, *STORES)
