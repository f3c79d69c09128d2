"""Read AMD HSA code objects: the ELF files that hold compiled gfx942 kernels, with no ROCm installed.

A code object is an ELF64 shared object of machine 224 (`EM_AMDGPU`). Its note of type 32 carries the metadata
as MessagePack; each kernel has a 64-byte descriptor, the symbol `<name>.kd`. Source of the formats: LLVM's
"User Guide for AMDGPU Backend", sections Code Object Metadata and Kernel Descriptor.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelab.errors import InternalError

__all__ = ["Argument", "CodeObject", "Kernel", "Segment", "read_code_object"]

_EM_AMDGPU = 224
_PT_LOAD, _PF_X = 1, 1
_SHT_SYMTAB, _SHT_NOTE, _SHT_DYNSYM = 2, 7, 11
_NT_AMDGPU_METADATA = 32


@dataclass(frozen=True)
class Argument:
    """One kernel argument: its place in the argument segment in bytes and how it is passed (`value_kind`)."""

    name: str
    offset: int
    size: int
    kind: str

    @property
    def is_hidden(self) -> bool:
        """Whether the loader, not the caller, supplies the value."""
        return self.kind.startswith("hidden_")

    @property
    def is_pointer(self) -> bool:
        """Whether the argument is an address of global memory."""
        return self.kind == "global_buffer"


@dataclass(frozen=True)
class Kernel:
    """A kernel's resources and launch facts; sizes in bytes, registers per lane (vector) or per wave
    (scalar).
    """

    name: str
    arguments: tuple[Argument, ...]
    argument_bytes: int
    lds_bytes: int
    private_bytes: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    max_workgroup_size: int
    entry: int
    setup_flags: int
    resource_word2: int
    preload_count: int
    preload_offset: int


@dataclass(frozen=True)
class Segment:
    """A stretch of the file that is loaded at a virtual address."""

    address: int
    data: bytes
    size: int
    is_code: bool


@dataclass(frozen=True)
class CodeObject:
    """A decoded code object: what to load, and the kernels in it."""

    segments: tuple[Segment, ...]
    kernels: tuple[Kernel, ...]

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name, or a KeyError that lists the names there are."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(f"no kernel {name!r}; the code object has {', '.join(k.name for k in self.kernels)}")

    def image(self) -> bytes:
        """Memory from virtual address 0 as the loader would leave it."""
        memory = bytearray(max(s.address + s.size for s in self.segments))
        for segment in self.segments:
            memory[segment.address : segment.address + len(segment.data)] = segment.data
        return bytes(memory)


@lru_cache(maxsize=64)
def read_code_object(data: bytes) -> CodeObject:
    """Decode the bytes of a code object; cached by content."""
    if data[:4] != b"\x7fELF" or struct.unpack_from("<H", data, 18)[0] != _EM_AMDGPU:
        raise InternalError("not an AMDGPU code object")
    segments = _segments(data)
    symbols, metadata = _sections(data)
    image = CodeObject(segments, ()).image()
    kernels = tuple(_kernel(entry, symbols, image) for entry in metadata["amdhsa.kernels"])
    return CodeObject(segments, kernels)


def _segments(data: bytes) -> tuple[Segment, ...]:
    (offset,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    found: list[Segment] = []
    for index in range(count):
        kind, flags, start, address, _, in_file, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", data, offset + 56 * index
        )
        if kind == _PT_LOAD:
            found.append(Segment(address, data[start : start + in_file], in_memory, bool(flags & _PF_X)))
    return tuple(found)


def _sections(data: bytes) -> tuple[dict[str, int], dict[str, Any]]:
    """Symbol values by name, and the kernel metadata."""
    (offset,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + 64 * i) for i in range(count)]
    symbols: dict[str, int] = {}
    metadata: dict[str, Any] = {}
    for _, kind, _, _, start, size, link, *_ in headers:
        if kind in (_SHT_SYMTAB, _SHT_DYNSYM):
            names = headers[link][4]
            for place in range(start, start + size, 24):
                name_offset, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, place)
                end = data.index(b"\0", names + name_offset)
                symbols[data[names + name_offset : end].decode()] = value
        elif kind == _SHT_NOTE:
            name_size, _, note_kind = struct.unpack_from("<III", data, start)
            if note_kind == _NT_AMDGPU_METADATA:
                metadata, _ = _unpack(data, start + 12 + ((name_size + 3) & ~3))
    if "amdhsa.kernels" not in metadata:
        raise InternalError("the code object has no kernel metadata")
    return symbols, metadata


def _kernel(entry: dict[str, Any], symbols: dict[str, int], image: bytes) -> Kernel:
    descriptor = symbols[entry[".symbol"]]
    lds, private, argument_bytes = struct.unpack_from("<III", image, descriptor)
    (start,) = struct.unpack_from("<q", image, descriptor + 16)
    (resource_word2,) = struct.unpack_from("<I", image, descriptor + 52)
    flags, preload = struct.unpack_from("<HH", image, descriptor + 56)
    arguments = tuple(
        Argument(a.get(".name", ""), a[".offset"], a[".size"], a[".value_kind"])
        for a in entry.get(".args", ())
    )
    return Kernel(
        name=entry[".name"],
        arguments=arguments,
        argument_bytes=argument_bytes,
        lds_bytes=lds,
        private_bytes=private,
        vgprs=entry[".vgpr_count"],
        agprs=entry.get(".agpr_count", 0),
        sgprs=entry[".sgpr_count"],
        vgpr_spills=entry.get(".vgpr_spill_count", 0),
        sgpr_spills=entry.get(".sgpr_spill_count", 0),
        max_workgroup_size=entry.get(".max_flat_workgroup_size", 1024),
        entry=descriptor + start,
        setup_flags=flags,
        resource_word2=resource_word2,
        preload_count=preload & 0x7F,
        preload_offset=preload >> 7,
    )


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    """One MessagePack value and the position after it."""
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag < 0x90:
        return _unpack_map(data, at, tag & 15)
    if tag < 0xA0:
        return _unpack_array(data, at, tag & 15)
    if tag < 0xC0:
        return data[at : at + (tag & 31)].decode(), at + (tag & 31)
    if tag >= 0xE0:
        return tag - 256, at
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    if 0xCC <= tag <= 0xD3:
        width = 1 << (tag & 3)
        return int.from_bytes(data[at : at + width], "big", signed=tag >= 0xD0), at + width
    if 0xD9 <= tag <= 0xDF:
        width = 1 << (tag - 0xD9) if tag <= 0xDB else 2 << ((tag - 0xDC) & 1)
        count = int.from_bytes(data[at : at + width], "big")
        at += width
        if tag <= 0xDB:
            return data[at : at + count].decode(), at + count
        return _unpack_array(data, at, count) if tag <= 0xDD else _unpack_map(data, at, count)
    raise InternalError(f"MessagePack tag {tag:#x} in kernel metadata")


def _unpack_map(data: bytes, at: int, count: int) -> tuple[dict[Any, Any], int]:
    out: dict[Any, Any] = {}
    for _ in range(count):
        key, at = _unpack(data, at)
        out[key], at = _unpack(data, at)
    return out, at


def _unpack_array(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    out: list[Any] = []
    for _ in range(count):
        value, at = _unpack(data, at)
        out.append(value)
    return out, at
