"""What the tables hold: one frozen row an instruction, one a chip; everything else is derived from them.

An operand's tile has one fixed orientation: A is (m, k), B is (n, k), D is (m, n), so D += A · Bᵀ. A
`Register` operand's layout says which lane holds which element; a `Shared` operand's fields say where in
shared memory the instruction expects its elements and which swizzles it can undo.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from enum import Enum

from tilelab.layout import Banks, Fragment, Layout

__all__ = [
    "ANY",
    "CTA",
    "THREAD",
    "WARP",
    "WARPGROUP",
    "WAVE",
    "Chip",
    "Completes",
    "Cost",
    "Global",
    "Instruction",
    "Operand",
    "Register",
    "Scope",
    "Shared",
    "bits",
    "cpu",
    "gfx",
    "sm",
]

# An operand of this dtype takes any: the row moves bits, or the printer types its text.
ANY = "any"


def bits(dtype: str) -> int:
    """The bits of an element, read from its name: float16, bfloat16, int8, float8_e4m3fn, uint4, bool."""
    if dtype == "bool":
        return 8
    match = re.match(r"[a-z]+(\d+)", dtype)
    if match is None:
        raise ValueError(f"{dtype!r} does not say how many bits it has")
    return int(match[1])


@dataclass(frozen=True)
class Scope:
    """The threads that execute an instruction together."""

    name: str
    threads: int


THREAD = Scope("thread", 1)
WARP = Scope("warp", 32)
WAVE = Scope("wave", 64)
WARPGROUP = Scope("warpgroup", 128)
CTA = Scope("block", 0)  # as many as the block has


class Completes(Enum):
    """When an instruction's effects are there: at once, when its group is waited for, or when a barrier says
    so.
    """

    NOW = "now"
    GROUP = "group"
    MBARRIER = "mbarrier"


@dataclass(frozen=True)
class Register:
    """An operand in registers: `layout` maps (lane, value) to the tile's column-major linear index."""

    dtype: str
    tile: tuple[int, ...]
    layout: Layout

    @property
    def fragment(self) -> Fragment:
        """The operand's tile as a fragment."""
        return Fragment(self.tile, self.layout)

    @property
    def values(self) -> int:
        """Elements a lane."""
        return self.layout[1].size

    @property
    def registers(self) -> int:
        """Registers a lane, of 32 bits, for dtypes with a width."""
        return -(-self.values * bits(self.dtype) // 32)


@dataclass(frozen=True)
class Shared:
    """An operand in shared memory.

    `admits` lists the swizzles (bytes) that the instruction undoes by itself or can address, `align` is in
    bytes, `major` the contiguous axis ("k" the last, "mn" the one before it). `rows`, where it is set, maps a
    lane to the column-major linear index of the first element of the contiguous row whose address that lane
    gives.
    """

    dtype: str
    tile: tuple[int, ...]
    admits: tuple[int, ...] = (0, 32, 64, 128)
    align: int = 16
    major: str = "k"
    rows: Layout | None = None


@dataclass(frozen=True)
class Global:
    """An operand in global memory; `align` is in bytes; `bounded`: the hardware checks its bounds."""

    dtype: str
    tile: tuple[int, ...]
    align: int
    bounded: bool = False


Operand = Register | Shared | Global


@dataclass(frozen=True)
class Cost:
    """What one instruction does and how fast: `rates` are per cycle of a multiprocessor, flops else bytes."""

    flops: int = 0
    bytes: int = 0
    rates: tuple[tuple[str, float], ...] = ()

    def rate(self, arch: str) -> float | None:
        """Flops (or bytes) a cycle of a multiprocessor, None where no figure is known."""
        return dict(self.rates).get(arch)

    def cycles(self, arch: str) -> float | None:
        """Cycles of a multiprocessor's unit that one instruction occupies, None where no figure is known."""
        rate = self.rate(arch)
        return None if rate is None else (self.flops or self.bytes) / rate


@dataclass(frozen=True)
class Instruction:
    """One instruction: who executes it, on what, to what effect, and how it is written.

    `family` groups rows for selection (mma, wgmma, mfma, vector, fma, ldmatrix, stmatrix, cp_async, tma,
    load, store). `means` names a function of `tilelab.hardware.meanings`. `text` has the fields {d} {a} {b}
    and, for some families, further ones listed in `fields`; `dialect` says in what language it is.
    """

    name: str
    family: str
    needs: str
    scope: Scope
    d: Operand
    a: Operand
    b: Operand | None
    means: str
    text: str
    source: str
    dialect: str = "ptx"
    fields: tuple[str, ...] = ()
    completes: Completes = Completes.NOW
    proxy: str = "generic"
    cost: Cost = field(default=Cost())

    @property
    def operands(self) -> tuple[tuple[str, Operand], ...]:
        """The operands that the row has, by name."""
        named = (("d", self.d), ("a", self.a), ("b", self.b))
        return tuple((name, operand) for name, operand in named if operand is not None)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k) of a row that multiplies matrices."""
        if self.b is None:
            raise ValueError(f"{self.name} multiplies nothing")
        return (self.d.tile[0], self.d.tile[1], self.a.tile[1])

    @property
    def bytes(self) -> int:
        """Bytes that one execution moves, for copies."""
        return math.prod(self.d.tile) * bits(self.d.dtype) // 8


@dataclass(frozen=True)
class Chip:
    """A chip's limits. Sizes in bytes, rates per second; "multiprocessor" is an SM, a CU or a core.

    `registers` are 32-bit registers of a multiprocessor, `thread_registers` the most that one thread can
    have. `features` are what rows ask for in `needs`, and the words that passes ask about (tma, wgmma,
    async_proxy …).
    """

    arch: str
    product: str
    warp: int
    multiprocessors: int
    threads_per_block: int
    threads_per_multiprocessor: int
    registers: int
    thread_registers: int
    shared_default: int
    shared_per_block: int
    shared_per_multiprocessor: int
    reads: Banks
    writes: Banks
    features: frozenset[str]
    clock: float
    bandwidth: float
    l2: int
    source: str
    vector_bits: int = 0

    def has(self, feature: str) -> bool:
        """Whether the chip has a feature; the empty feature is had by all."""
        return not feature or feature in self.features


def sm(version: int, suffix: str = "") -> str:
    """The feature "compute capability `version` or later" (with suffix "a": that very architecture)."""
    return f"sm_{version}{suffix}"


def gfx(arch: str) -> str:
    """The feature of an AMD architecture."""
    return arch


def cpu(vector_bits: int = 0) -> str:
    """The feature "a CPU", or "a CPU with vectors of at least this many bits"."""
    return f"v{vector_bits}" if vector_bits else "cpu"
