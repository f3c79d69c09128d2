"""Warpgroup matrix instructions of sm_90a: wgmma m64nNk16, and the descriptors of their shared operands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tilelab.hardware.model import WARPGROUP, Completes, Cost, Instruction, Register, Shared, sm
from tilelab.layout import Layout as L

__all__ = ["CORNERS", "ROWS", "Descriptor", "descriptor", "from_name", "wgmma"]

_SHORT = {"float16": "f16", "bfloat16": "bf16"}
_LONG = {short: long for long, short in _SHORT.items()}
# Without a swizzle the operand would have to lie in 8 x 16-byte core matrices, which no tile of ours does.
_SWIZZLED = (32, 64, 128)
_A = L(((4, 8, 4), (2, 2, 2)), ((128, 1, 16), (64, 8, 512)))


@cache
def wgmma(n: int, dtype: str, a_from: str = "shared", a_major: str = "k", b_major: str = "k") -> Instruction:
    """The row for one member of the family: D (64, n) float32 += A (64, 16) · B (n, 16)ᵀ.

    `n` is a multiple of 8 up to 256; A comes from "shared" or "register" (then K-major). Warp w of the four
    holds rows 16·w … 16·w + 15 of D and, from registers, of A. The shared operands' fields {a} and {b} are
    64-bit descriptors; {scale} is a predicate: false overwrites D instead of adding to it.
    """
    if n % 8 or not 8 <= n <= 256:
        raise ValueError(f"wgmma has n from 8 to 256 in steps of 8, not {n}")
    if dtype not in _SHORT:
        raise ValueError(f"this family has float16 and bfloat16, not {dtype}")
    if a_from == "register" and a_major != "k":
        raise ValueError("A from registers has no major axis to choose")
    short = _SHORT[dtype]
    source, majors = ("ss", f"{a_major}.{b_major}") if a_from == "shared" else ("rs", b_major)
    # imm-scale-a, imm-scale-b, then imm-trans for each shared operand: 1 means MN-major.
    flags = [str(int(m == "mn")) for m in ((a_major, b_major) if a_from == "shared" else (b_major,))]
    immediate = ", ".join(["1", "1", *flags])
    columns, steps = ((2, 2, n // 8), (64, 8, 512)) if n > 8 else ((2, 2), (64, 8))
    return Instruction(
        name=f"wgmma.m64n{n}k16.f32.{short}.{source}.{majors}",
        family="wgmma",
        needs=sm(90, "a"),
        scope=WARPGROUP,
        d=Register("float32", (64, n), L(((4, 8, 4), columns), ((128, 1, 16), steps))),
        a=Shared(dtype, (64, 16), _SWIZZLED, align=1024, major=a_major)
        if a_from == "shared"
        else Register(dtype, (64, 16), _A),
        b=Shared(dtype, (n, 16), _SWIZZLED, align=1024, major=b_major),
        means="matmul_accumulate",
        text=f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{short}.{short} "
        f"{{d}}, {{a}}, {{b}}, {{scale}}, {immediate};",
        fields=("scale",),
        completes=Completes.GROUP,
        proxy="async",
        cost=Cost(flops=2 * 64 * n * 16, rates=(("sm_90a", 4096),)),
        source="PTX ISA, 'Asynchronous Warpgroup Level Matrix Instructions', register fragments of .m64nNk16",
    )


def from_name(name: str) -> Instruction | None:
    """The member of the family that a name such as wgmma.m64n40k16.f32.f16.ss.k.mn means, else None."""
    head, *rest = name.split(".")
    if head != "wgmma" or len(rest) < 4 or not rest[0].startswith("m64n") or not rest[0].endswith("k16"):
        return None
    try:
        n, dtype, majors = int(rest[0][4:-3]), _LONG[rest[2]], rest[4:]
        made = (
            wgmma(n, dtype, "shared", *majors)
            if rest[3] == "ss"
            else wgmma(n, dtype, "register", "k", *majors)
        )
    except (ValueError, KeyError, TypeError):
        return None
    return made if made.name == name else None


@dataclass(frozen=True)
class Descriptor:
    """The fields of a shared operand's 64-bit descriptor, in bytes, and how far one k-step of 16 moves its
    start.

    Bits: 0–13 start address / 16, 16–29 leading offset / 16, 32–45 stride offset / 16, 62–63 swizzle mode.
    """

    leading: int
    stride: int
    swizzle_mode: int
    k_step: int

    @property
    def constant(self) -> int:
        """The descriptor without its start address; add (address & 0x3FFFF) >> 4."""
        return (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | self.swizzle_mode << 62


def descriptor(swizzle_bytes: int, major: str, rows: int, element_bits: int = 16) -> Descriptor:
    """The descriptor of an operand laid out by `shared_tile(…, swizzle_bytes)`.

    `rows` is the extent of the tile's other, not contiguous axis: boxes are rows · swizzle_bytes apart.
    K-major operands step 16 elements along the contiguous axis, which stays inside a box until a span is used
    up; MN-major operands step 16 rows. The 128-byte forms were run on the chip; those of 32 and 64 bytes
    follow the same rule. Source: PTX ISA, 'Matrix descriptor format' and 'Strides'.
    """
    if swizzle_bytes not in (32, 64, 128):
        raise ValueError(f"a blocked tile has a swizzle of 32, 64 or 128 bytes, not {swizzle_bytes}")
    mode = {128: 1, 64: 2, 32: 3}[swizzle_bytes]
    group = 8 * swizzle_bytes  # eight rows: the unit of the swizzle
    if major == "k":
        # The leading offset is not read for swizzled K-major operands; 16 is what it is set to.
        return Descriptor(16, group, mode, 16 * element_bits // 8)
    return Descriptor(rows * swizzle_bytes, group, mode, 16 * swizzle_bytes)


CORNERS = tuple(
    wgmma(n, dtype, *form)
    for n in (8, 16, 24, 64, 96, 128, 192, 256)
    for dtype in ("float16", "bfloat16")
    for form in (
        ("shared", "k", "k"),
        ("shared", "k", "mn"),
        ("shared", "mn", "k"),
        ("shared", "mn", "mn"),
        ("register", "k", "k"),
        ("register", "k", "mn"),
    )
)
ROWS = CORNERS
