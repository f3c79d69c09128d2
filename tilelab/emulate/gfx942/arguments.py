"""Kernel arguments: arrays to emulated global memory and back, all values into the argument segment."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.formats import Array
from tilelab.emulate.gfx942.memory import GlobalMemory
from tilelab.errors import TileError
from tilelab.hardware.amd.code_object import Argument, Kernel

__all__ = ["Arguments"]

_FLOAT_FORMATS = {2: "<e", 4: "<f", 8: "<d"}
_SEGMENT_SLACK = 64
"""Readable bytes after the argument segment: the compiler may load a whole group of scalar registers."""


class Arguments:
    """The arguments of one launch: memory, the segment and its address, the code's address."""

    def __init__(
        self,
        image: bytes,
        kernel: Kernel,
        values: Sequence[Any],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
    ) -> None:
        declared = [a for a in kernel.arguments if not a.is_hidden]
        if len(values) != len(declared):
            raise TileError(
                "TL501", f"{kernel.name} takes {len(declared)} arguments, {len(values)} were given"
            )
        self._kernel = kernel
        self._arrays: list[Array] = []
        slots: dict[int, int] = {}
        names: list[str] = []
        for index, (argument, value) in enumerate(zip(declared, values, strict=True)):
            if isinstance(value, np.ndarray):
                slots[index] = self._slot(value, names, _label(argument, index))
        sizes = [(name, array.nbytes) for name, array in zip(names, self._arrays, strict=True)]
        size = kernel.argument_bytes + _SEGMENT_SLACK
        self.memory = GlobalMemory([("the code", len(image)), ("the argument segment", size), *sizes])
        self.code_address = self.memory.fill(0, image)
        addresses = [self.memory.fill(2 + i, np.ascontiguousarray(a)) for i, a in enumerate(self._arrays)]
        segment = bytearray(kernel.argument_bytes)
        for index, (argument, value) in enumerate(zip(declared, values, strict=True)):
            if index in slots:
                data = _address_bytes(argument, index, addresses[slots[index]], kernel)
            else:
                data = _scalar_bytes(argument, index, value, kernel)
            segment[argument.offset : argument.offset + argument.size] = data
        _fill_hidden(segment, kernel, grid, block)
        self.segment = bytes(segment)
        self.address = self.memory.fill(1, self.segment)

    def _slot(self, array: Array, names: list[str], name: str) -> int:
        """The allocation for an array; one array passed twice has one allocation."""
        for slot, other in enumerate(self._arrays):
            if _is_same(array, other):
                names[slot] += f" = {name}"
                return slot
            if np.may_share_memory(array, other):
                raise TileError(
                    "TL505", f"{self._kernel.name}: {name} overlaps {names[slot]} without being equal to it"
                )
        self._arrays.append(array)
        names.append(name)
        return len(self._arrays) - 1

    def write_back(self) -> None:
        """Copy the allocations back into the arrays that were passed."""
        for index, array in enumerate(self._arrays):
            if array.flags.writeable:
                array[...] = self.memory.content(2 + index).view(array.dtype).reshape(array.shape)


def _label(argument: Argument, index: int) -> str:
    return f"argument {argument.name}" if argument.name else f"argument {index}"


def _is_same(a: Array, b: Array) -> bool:
    mine, theirs = a.__array_interface__, b.__array_interface__
    return (mine["data"], a.nbytes, a.strides) == (theirs["data"], b.nbytes, b.strides) and a.nbytes > 0


def _address_bytes(argument: Argument, index: int, address: int, kernel: Kernel) -> bytes:
    if not argument.is_pointer:
        raise TileError("TL503", f"{kernel.name}: {_label(argument, index)} is a scalar, an array was given")
    return address.to_bytes(8, "little")


def _scalar_bytes(argument: Argument, index: int, value: Any, kernel: Kernel) -> bytes:
    """The bytes of a scalar argument at its declared size."""
    if value is None and argument.is_pointer:
        return bytes(argument.size)
    if argument.is_pointer:
        raise TileError(
            "TL503", f"{kernel.name}: {_label(argument, index)} is a pointer, {value!r} was given"
        )
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure)):
        data = bytes(value)
    elif isinstance(value, np.generic):
        data = value.tobytes()
    elif isinstance(value, float) and argument.size in _FLOAT_FORMATS:
        data = struct.pack(_FLOAT_FORMATS[argument.size], value)
    elif isinstance(value, int):
        try:
            data = int(value).to_bytes(argument.size, "little", signed=value < 0)
        except OverflowError:
            data = b""
    else:
        data = b""
    if len(data) != argument.size:
        message = (
            f"{kernel.name}: {_label(argument, index)} has {argument.size} bytes, {value!r} does not fit"
        )
        raise TileError("TL503", message)
    return data


def _fill_hidden(
    segment: bytearray, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    """The launch facts that the loader passes behind the declared arguments."""
    for argument in kernel.arguments:
        axis = "xyz".find(argument.kind[-1])
        if argument.kind.startswith("hidden_block_count_"):
            struct.pack_into("<I", segment, argument.offset, grid[axis])
        elif argument.kind.startswith("hidden_group_size_"):
            struct.pack_into("<H", segment, argument.offset, block[axis])
        elif argument.kind == "hidden_grid_dims":
            struct.pack_into("<H", segment, argument.offset, 3)
