"""Swizzles: permutations of addresses by xor, which spread a tile's columns over the banks of shared memory.

A tile whose rows are 128 bytes long puts every row's first 16 bytes into the same four banks. Swizzling xors
the number of the 16-byte chunk (address bits 4–6) with the row (bits 7–9), so that eight rows use all 32
banks. TMA and WGMMA apply the same function to byte addresses, so a tile that starts at a multiple of 1024
bytes agrees with them. Offsets here are counted in elements; the caller knows how many bits an element has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from tilelab.layout.layout import Layout
from tilelab.layout.tuples import IntTuple

__all__ = [
    "SWIZZLE_BYTES", "Composed", "Swizzle", "blocked", "crosswise_tile", "make_swizzled_layout",
    "shared_tile", "swizzle_for", "widest_swizzle",
]  # fmt: skip

SWIZZLE_BYTES = (0, 32, 64, 128)


@dataclass(frozen=True)
class Swizzle:
    """x ↦ x xor ((x >> shift) & (2**bits − 1) << base); its own inverse; `S<bits,base,shift>` as in CuTe."""

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or self.shift < self.bits:
            raise ValueError(f"{self} needs bits ≥ 0, base ≥ 0 and shift ≥ bits")

    def __call__(self, offset: int) -> int:
        return offset ^ ((offset >> self.shift) & (((1 << self.bits) - 1) << self.base))

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    @property
    def period(self) -> int:
        """The number of offsets after which the pattern repeats: adding a multiple of it commutes with it."""
        return 1 << (self.base + self.shift + self.bits)


@dataclass(frozen=True)
class Composed:
    """swizzle(offset + layout(coordinates)): the layout of a swizzled shared tile."""

    swizzle: Swizzle
    offset: int
    layout: Layout

    def __call__(self, *coordinates: IntTuple) -> int:
        return self.swizzle(self.offset + self.layout(*coordinates))

    def __str__(self) -> str:
        middle = f"o{self.offset}" if self.offset else ""
        return f"{self.swizzle}{middle}o{self.layout}"

    @property
    def shape(self) -> IntTuple:
        """The shape of the layout before the swizzle."""
        return self.layout.shape

    @property
    def rank(self) -> int:
        """The number of modes."""
        return self.layout.rank

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.layout.size

    @property
    def cosize(self) -> int:
        """A number that no offset reaches; equal to size for a compact tile of whole swizzle spans."""
        # The xor changes only bits below `row`, so an offset stays in its own block of that many.
        row = 1 << (self.swizzle.base + self.swizzle.bits)
        return -(-(self.offset + self.layout.cosize) // row) * row

    def offsets(self) -> list[int]:
        """Every offset in the order of the linear index."""
        return [self.swizzle(self.offset + offset) for offset in self.layout.offsets()]

    def compose(self, inner: Layout) -> Composed:
        """R with R(i) = self(inner(i)) for every i below inner.size; see `Layout.compose`."""
        return Composed(self.swizzle, self.offset, self.layout.compose(inner))


def swizzle_for(swizzle_bytes: int, bits: int, chunk_bytes: int = 16) -> Swizzle:
    """The swizzle of 32, 64 or 128 bytes on offsets counted in elements of `bits` (a power of two ≤ 128).

    Chunks of 16 bytes, xored with the number of the 128-byte line, are the hardware's (source: PTX ISA,
    tensor swizzling modes). Smaller chunks, 8 or 4 bytes, serve lanes that read so much of a row each.
    """
    if swizzle_bytes not in SWIZZLE_BYTES[1:] or bits not in (1, 2, 4, 8, 16, 32, 64, 128):
        raise ValueError(f"no swizzle of {swizzle_bytes} bytes for elements of {bits} bits")
    if chunk_bytes not in (4, 8, 16) or chunk_bytes * 8 < bits:
        raise ValueError(f"no swizzle of chunks of {chunk_bytes} bytes for elements of {bits} bits")
    chunk = (chunk_bytes * 8 // bits).bit_length() - 1
    return Swizzle(
        (swizzle_bytes // chunk_bytes).bit_length() - 1, chunk, (128 // chunk_bytes).bit_length() - 1
    )


def widest_swizzle(extent: int, bits: int) -> int:
    """The widest of 128, 64, 32 bytes whose span divides a contiguous extent of elements, else 0."""
    return next((s for s in (128, 64, 32) if extent * bits % (s * 8) == 0), 0)


@cache
def blocked(shape: tuple[int, ...], bits: int, span_bytes: int, inner: int = -1) -> Layout:
    """A compact tile whose contiguous axis is cut into boxes of `span_bytes`, each box contiguous.

    Axis `inner` (one of the last two) runs fastest within a box, then the other of the last two, then the
    boxes, then the axes before them, the last of these fastest. N = 256 float16 and 128 bytes: four boxes of
    64 columns.
    """
    rank = len(shape)
    inner %= rank
    if span_bytes * 8 % bits:
        raise ValueError(f"{span_bytes} bytes are no whole number of {bits}-bit elements")
    span = span_bytes * 8 // bits
    if shape[inner] % span:
        raise ValueError(f"extent {shape[inner]} of {bits}-bit elements is no multiple of {span_bytes} bytes")
    if inner not in (rank - 1, rank - 2):
        raise ValueError(f"axis {inner} of {rank} cannot be contiguous: only the last two can")
    other = 2 * rank - 3 - inner
    rows = shape[other] if rank > 1 else 1
    shapes: list[IntTuple] = list(shape)
    strides: list[IntTuple] = [0] * rank
    boxes = shape[inner] // span
    shapes[inner], strides[inner] = ((span, boxes), (1, span * rows)) if boxes > 1 else (span, 1)
    if rank > 1:
        strides[other] = span
    step = rows * shape[inner]
    for axis in range(rank - 3, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return Layout(tuple(shapes), tuple(strides))


@cache
def shared_tile(
    shape: tuple[int, ...], bits: int, swizzle_bytes: int = 0, major: str = "k", chunk_bytes: int = 16
) -> Layout | Composed:
    """The shared-memory layout of a tile: blocked by the swizzle span and swizzled, or plain for 0 bytes.

    `major="k"` makes the last axis contiguous, `"mn"` the one before it (the shape being read as (mn, k)). A
    buffer declared as (k, n) and contiguous in n is `"k"` here: major-ness towards an instruction belongs to
    the use. The tile must start at a multiple of 8 · swizzle_bytes. Raises ValueError if the contiguous axis
    is no multiple of the span.
    """
    if major not in ("k", "mn"):
        raise ValueError(f"major must be 'k' or 'mn', not {major!r}")
    if swizzle_bytes not in SWIZZLE_BYTES:
        raise ValueError(f"swizzle must be one of {SWIZZLE_BYTES} bytes, not {swizzle_bytes}")
    inner = -1 if major == "k" or len(shape) == 1 else -2
    if swizzle_bytes == 0:
        return _plain(shape, inner)
    swizzle = swizzle_for(swizzle_bytes, bits, chunk_bytes)
    return Composed(swizzle, 0, blocked(shape, bits, swizzle_bytes, inner))


def crosswise_tile(shape: tuple[int, ...], bits: int) -> Layout | Composed:
    """The layout of a tile whose columns are read as well as its rows: its 4-byte words are swizzled.

    A warp that goes down a column then meets each bank once. Rows of no multiple of 32 bytes stay plain.
    """
    width = widest_swizzle(shape[-1], bits) if len(shape) > 1 and bits in (8, 16, 32) else 0
    return shared_tile(shape, bits, width, chunk_bytes=4 if width else 16)


def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Layout | Composed:
    """The layout of a shared tile with the widest swizzle that fits: TileLang's name for it, for annotations.

    `buffer` has a shape of whole numbers and a dtype with its `bits`; `k_major=False` makes the axis before
    the last contiguous. Rows are never padded, whatever `allow_pad` says.
    """
    shape, bits = tuple(buffer.shape), buffer.dtype.bits
    inner = -1 if k_major or len(shape) == 1 else -2
    return shared_tile(shape, bits, widest_swizzle(shape[inner], bits), "k" if k_major else "mn")


def _plain(shape: tuple[int, ...], inner: int) -> Layout:
    axes = list(range(len(shape)))
    if inner == -2:
        axes[-1], axes[-2] = axes[-2], axes[-1]
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(axes):
        strides[axis] = step
        step *= shape[axis]
    return Layout(shape, tuple(strides))
