"""Byte-addressed storage with fast gathers and scatters, and global memory made of guarded allocations."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from tilelab.emulate.gfx942.formats import U8, U16, U32, Array

__all__ = ["BASE", "Allocation", "Bytes", "GlobalMemory", "OutOfBounds"]

BASE = 0x7F0000000000
"""Virtual address of the first byte of emulated global memory."""
_GUARD = 4096
"""Unmapped bytes between allocations, so that small overruns of one argument never land in another."""
_ALIGNMENT = 256


class Bytes:
    """A flat byte array that moves 1 to 16 bytes per access at the widest alignment the offsets allow."""

    def __init__(self, size: int) -> None:
        self.u8 = np.zeros((size + 15) // 16 * 16, U8)
        self._by_size = {
            1: self.u8,
            2: self.u8.view(U16),
            4: self.u8.view(U32),
            8: self.u8.view(np.uint64),
            # complex128 stands for "any 16 bytes": it is only moved, never computed with
            16: self.u8.view(np.complex128),
        }

    def view(self, dtype: type) -> Array:
        """The whole storage as elements of a dtype."""
        return self.u8.view(dtype)

    def gather(self, offsets: Array, size: int) -> Array:
        """Bytes at each offset of a 1-D array: uint8 or uint16 values, or uint32 words [n, size / 4]."""
        unit = _unit(offsets, size)
        if unit == size:
            found = self._by_size[unit][offsets // unit if unit > 1 else offsets]
            return found if size < 4 else found.view(U32).reshape(len(offsets), size // 4)
        parts = self._by_size[unit][(offsets // unit)[:, None] + np.arange(size // unit)]
        raw = np.ascontiguousarray(parts)
        return raw.view(U16)[:, 0] if size == 2 else raw.view(U32)

    def scatter(self, offsets: Array, data: Array, size: int) -> None:
        """The opposite of `gather`, with data of the shape that gather returns."""
        unit = _unit(offsets, size)
        data = np.ascontiguousarray(data)
        if unit == size:
            store = self._by_size[unit]
            store[offsets // unit if unit > 1 else offsets] = data.reshape(len(offsets), -1).view(
                store.dtype
            )[:, 0]
            return
        store = self._by_size[unit]
        parts = data.reshape(len(offsets), -1).view(store.dtype)
        store[(offsets // unit)[:, None] + np.arange(size // unit)] = parts


def _unit(offsets: Array, size: int) -> int:
    """The widest element size that divides `size` and every offset."""
    together = int(np.bitwise_or.reduce(offsets)) if len(offsets) else 0
    lowest = (together | size | 16) & -(together | size | 16)
    return min(lowest, 16)


@dataclass(frozen=True)
class Allocation:
    """A stretch of global memory: offset of its first byte, size in bytes, and what it holds."""

    start: int
    size: int
    name: str

    @property
    def end(self) -> int:
        """Offset just past its last byte."""
        return self.start + self.size


class OutOfBounds(Exception):
    """An access outside every allocation: which of the accesses are bad, and the first as a sentence."""

    def __init__(self, bad: Array, sentence: str) -> None:
        super().__init__(sentence)
        self.bad = bad
        self.sentence = sentence


class GlobalMemory:
    """Global memory: allocations apart from each other, and a check of every access against them."""

    def __init__(self, sizes: list[tuple[str, int]]) -> None:
        self.allocations: list[Allocation] = []
        at = _GUARD
        for name, size in sizes:
            self.allocations.append(Allocation(at, size, name))
            at = (at + size + _GUARD + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        self.bytes = Bytes(at)
        self._starts = [a.start for a in self.allocations]
        self._start_array = np.array(self._starts)
        self._end_array = np.array([a.end for a in self.allocations])

    def fill(self, index: int, data: bytes | Array) -> int:
        """Put bytes into an allocation and give its virtual address."""
        place = self.allocations[index]
        raw = np.frombuffer(data, U8) if isinstance(data, bytes) else data.reshape(-1).view(U8)
        self.bytes.u8[place.start : place.start + raw.size] = raw
        return BASE + place.start

    def content(self, index: int) -> Array:
        """The bytes of an allocation."""
        place = self.allocations[index]
        return self.bytes.u8[place.start : place.end]

    def check(self, offsets: Array, size: int) -> None:
        """Raise `OutOfBounds` unless each of the accesses of `size` bytes lies inside one allocation."""
        if not len(offsets):
            return
        first, last = int(offsets.min()), int(offsets.max())
        index = bisect_right(self._starts, first) - 1
        if index >= 0 and last + size <= self.allocations[index].end:
            return
        found = np.searchsorted(self._start_array, offsets, side="right") - 1
        bad = (found < 0) | (offsets + size > self._end_array[np.maximum(found, 0)])
        if bad.any():
            raise OutOfBounds(bad, self._sentence(int(offsets[bad][0]), size))

    def gather(self, offsets: Array, size: int) -> Array:
        """Checked `Bytes.gather`."""
        self.check(offsets, size)
        return self.bytes.gather(offsets, size)

    def scatter(self, offsets: Array, data: Array, size: int) -> None:
        """Checked `Bytes.scatter`."""
        self.check(offsets, size)
        if len(offsets):
            self.bytes.scatter(offsets, data, size)

    def _sentence(self, offset: int, size: int) -> str:
        """Where a bad address lies relative to the nearest allocation."""
        nearest = min(self.allocations, key=lambda a: max(a.start - offset, offset + size - a.end))
        if offset < nearest.start:
            where = f"{nearest.start - offset} bytes before the start"
        else:
            where = f"byte {offset - nearest.start}"
        return f"{size} bytes at {where} of {nearest.name}, which has {nearest.size} bytes"
