"""Disassemble gfx942 machine code with the LLVM that `pip install rocm-llvm-python` brings, through ctypes.

Only LLVM's C disassembler interface of that package's shared library is used: its Python bindings are not
imported, so that any Python version works. Loading takes about 0.1 s cold; decoded code is cached by content.
"""

from __future__ import annotations

import ctypes
import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilelab.errors import TileError
from tilelab.hardware.amd.code_object import Segment, read_code_object

__all__ = ["Line", "disassemble"]

_TRIPLE = b"amdgcn-amd-amdhsa"
_LONGEST = 20
"""No gfx942 encoding is longer than this many bytes."""


@dataclass(frozen=True)
class Line:
    """One instruction: virtual address and length in bytes, and its text; text is empty for words that are
    not code.
    """

    pc: int
    size: int
    text: str


@lru_cache(maxsize=64)
def disassemble(data: bytes, arch: str = "gfx942") -> tuple[Line, ...]:
    """All instructions of a code object in address order.

    Raises TL403 where the disassembler library is not installed.
    """
    library = _library()
    context = library.LLVMCreateDisasmCPUFeatures(_TRIPLE, arch.encode(), b"", None, 0, None, None)
    if not context:
        raise TileError("TL402", f"the disassembler does not know {arch}")
    lines: list[Line] = []
    for segment in read_code_object(data).segments:
        if segment.is_code:
            lines += _decode(library, context, segment)
    library.LLVMDisasmDispose(context)
    return tuple(lines)


def _decode(library: ctypes.CDLL, context: int, segment: Segment) -> list[Line]:
    """Decode a segment from its first byte; a word that is no instruction becomes a line without text."""
    text = ctypes.create_string_buffer(512)
    out: list[Line] = []
    at = 0
    while at + 4 <= len(segment.data):
        window = segment.data[at : at + _LONGEST]
        pc = segment.address + at
        used = library.LLVMDisasmInstruction(context, window, len(window), pc, text, len(text))
        out.append(Line(pc, used or 4, text.value.decode().strip() if used else ""))
        at += used or 4
    return out


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    path = _library_path()
    if path is None:
        raise TileError(
            "TL403",
            "the disassembler for gfx942 code is missing (package rocm-llvm-python)",
            help="pip install 'tilelab[hip]'",
        )
    library = ctypes.CDLL(str(path))
    for part in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()
    text, pointer = ctypes.c_char_p, ctypes.c_void_p
    create = library.LLVMCreateDisasmCPUFeatures
    create.restype = pointer
    create.argtypes = [text, text, text, pointer, ctypes.c_int, pointer, pointer]
    step = library.LLVMDisasmInstruction
    step.restype = ctypes.c_size_t
    step.argtypes = [pointer, text, ctypes.c_uint64, ctypes.c_uint64, text, ctypes.c_size_t]
    library.LLVMDisasmDispose.argtypes = [pointer]
    return library


def _library_path() -> Path | None:
    """Where the shared library lies, found without importing the package around it."""
    found = importlib.util.find_spec("rocm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "llvm" / "librocmllvm.so"
        if path.exists():
            return path
    return None
