"""Which row fits a product of tiles on a chip, and why the others do not.

Selections never guess silently: a choice carries a `Refused` with numbers for every family that was
considered and not taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from tilelab.errors import Refused, TileError
from tilelab.hardware.model import ANY, Chip, Instruction, Register
from tilelab.hardware.nvidia.wgmma import wgmma
from tilelab.hardware.table import ROWS
from tilelab.layout import Fragment, block

__all__ = ["POLICIES", "GemmChoice", "candidates", "place", "select_gemm"]

POLICIES = ("square", "full_row", "full_col")


@dataclass(frozen=True)
class GemmChoice:
    """A row for a product of tiles, and how the threads share the work.

    `warps` = groups of the row's scope along (m, n), each owning one contiguous region (single threads
    interleave instead, n fastest, so that stores coalesce); `repeats` = atoms of a group along (m, n, k);
    `replication` = groups that do the same work because the tile is too small. Value order in every fragment:
    the atom's own, then repeats along the last axis, then along the first.
    """

    row: Instruction
    warps: tuple[int, int]
    repeats: tuple[int, int, int]
    replication: int = 1
    refusals: tuple[Refused, ...] = ()

    @property
    def d(self) -> Fragment:
        """The accumulator (m, n)."""
        return self._block(self.row.d, (0, 1), (self.repeats[1], self.repeats[0]))

    @property
    def a(self) -> Fragment:
        """A (m, k) in registers, held by every warp along n. Raises ValueError if the row reads it from
        shared.
        """
        return self._block(self.row.a, (0, None), (self.repeats[2], self.repeats[0]))

    @property
    def b(self) -> Fragment:
        """B (n, k) in registers, held by every warp along m. Raises ValueError if the row reads it from
        shared.
        """
        return self._block(self.row.b, (None, 0), (self.repeats[2], self.repeats[1]))

    def _block(
        self, operand: object, axes: tuple[int | None, int | None], repeats: tuple[int, int]
    ) -> Fragment:
        if not isinstance(operand, Register):
            raise ValueError(f"{self.row.name} does not hold this operand in registers")
        warps = tuple(zip(axes, self.warps, strict=True))
        single = self.row.scope.threads == 1
        if single:
            warps = warps[::-1]
        return block(
            operand.fragment,
            (*warps, (None, self.replication)),
            ((1, repeats[0]), (0, repeats[1])),
            "warps" if single else "repeats",
        )


def place(scope: str) -> str:
    """global, shared or register, of a buffer's scope such as shared.dyn or local.fragment."""
    head = scope.partition(".")[0]
    return "register" if head in ("local", "fragment", "register") else head


@cache
def candidates(chip: Chip, *families: str) -> tuple[Instruction, ...]:
    """The rows of some families that a chip has, in the table's order."""
    return tuple(row for row in ROWS if row.family in families and chip.has(row.needs))


@cache
def select_gemm(
    chip: Chip,
    m: int,
    n: int,
    k: int,
    a_dtype: str,
    b_dtype: str,
    c_dtype: str,
    a_scope: str = "shared",
    b_scope: str = "shared",
    threads: int = 128,
    policy: str = "square",
    *,
    a_major: str = "k",
    b_major: str = "k",
    without: tuple[str, ...] = (),
) -> GemmChoice:
    """The fastest row for D (m, n) += A (m, k) · B (n, k)ᵀ by `threads` threads, by the rows' rates.

    `without` names families that are not to be used. Raises TL201 for sizes or threads that are no positive
    numbers. Unless it is left out, `fma.scalar` takes any tile.
    """
    if min(m, n, k, threads) < 1 or policy not in POLICIES:
        raise TileError("TL201", f"no gemm of {m} x {n} x {k} by {threads} threads with policy {policy!r}")
    asked = (m, n, k, a_dtype, b_dtype, c_dtype)
    found: list[GemmChoice | Refused] = []
    for family in ("wgmma", "mma", "mfma", "vector", "fma"):
        if family in without:
            found.append(Refused(family, "left out by the caller"))
        elif family == "wgmma":
            found.append(_wgmma(chip, asked, a_scope, b_scope, threads, policy, a_major, b_major))
        else:
            found += [_register_gemm(row, asked, threads, policy) for row in candidates(chip, family)]
    fits = [each for each in found if isinstance(each, GemmChoice)]
    refused = [each for each in found if isinstance(each, Refused)]
    if not fits:
        raise TileError("TL203", f"no instruction fits a gemm of {m} x {n} x {k}", refusals=tuple(refused))
    best = max(fits, key=lambda choice: (_speed(choice, chip), choice.row.cost.flops))
    slower = [Refused(each.row.name, _slower(each, best, chip)) for each in fits if each is not best]
    return replace(best, refusals=(*refused, *slower))


def _speed(choice: GemmChoice, chip: Chip) -> float:
    """Useful flops a cycle of a multiprocessor; a row whose rate nobody measured counts as one."""
    return (choice.row.cost.rate(chip.arch) or 1.0) / choice.replication


def _slower(other: GemmChoice, best: GemmChoice, chip: Chip) -> str:
    mine, top = _speed(other, chip), _speed(best, chip)
    if mine == top:
        sizes = f"{other.row.cost.flops} flops each instead of {best.row.cost.flops}"
        return f"as fast as {best.row.name}, but {sizes}"
    return f"{mine:g} flops a cycle, {best.row.name} makes {top:g}"


def _register_gemm(
    row: Instruction, asked: tuple[int, int, int, str, str, str], threads: int, policy: str
) -> GemmChoice | Refused:
    m, n, k, a_dtype, b_dtype, c_dtype = asked
    # A CPU's vector rows convert A and B when they are loaded; what they fix is the accumulator's type.
    wanted = (
        (("d", row.d, c_dtype),)
        if row.family == "vector"
        else (
            ("a", row.a, a_dtype),
            ("b", row.b, b_dtype),
            ("d", row.d, c_dtype),
        )
    )
    for name, operand, dtype in wanted:
        if operand is not None and operand.dtype not in (ANY, dtype):
            return Refused(row.name, f"{name.upper()} is {dtype}, the instruction takes {operand.dtype}")
    for axis, extent, step in zip("mnk", (m, n, k), row.shape, strict=True):
        if extent % step:
            return Refused(row.name, f"{axis} = {extent} is no multiple of {step}")
    if threads % row.scope.threads:
        return Refused(row.name, f"{threads} threads are no whole number of {row.scope.name}s")
    groups = threads // row.scope.threads
    atoms = (m // row.shape[0], n // row.shape[1])
    warps = _split(groups, atoms, (m, n), policy)
    repeats = (atoms[0] // warps[0], atoms[1] // warps[1], k // row.shape[2])
    return GemmChoice(row, warps, repeats, groups // (warps[0] * warps[1]))


def _wgmma(
    chip: Chip,
    asked: tuple[int, int, int, str, str, str],
    a_scope: str,
    b_scope: str,
    threads: int,
    policy: str,
    a_major: str,
    b_major: str,
) -> GemmChoice | Refused:
    m, n, k, a_dtype, b_dtype, c_dtype = asked
    a_from = "shared" if place(a_scope) == "shared" else "register"
    reasons = (
        (not chip.has("wgmma"), f"{chip.arch} does not have it"),
        (a_dtype != b_dtype or a_dtype not in ("float16", "bfloat16"), f"{a_dtype} x {b_dtype} inputs"),
        (c_dtype != "float32", f"accumulates in float32, not {c_dtype}"),
        (place(b_scope) != "shared", f"B must be in shared memory, not {b_scope}"),
        (a_from == "register" and a_major != "k", "A in registers must be K-major"),
        (threads % 128 != 0, f"needs warpgroups of 128 threads, the kernel gives {threads}"),
        (m % 64 != 0, f"m = {m} is no multiple of 64"),
        (n % 8 != 0, f"n = {n} is no multiple of 8"),
        (k % 16 != 0, f"k = {k} is no multiple of 16"),
    )
    for refused, reason in reasons:
        if refused:
            return Refused("wgmma.m64nNk16", reason)
    # B is read from shared memory by every warpgroup, so rows are shared out first whatever their number.
    warps = _split(threads // 128, (m // 64, n // 8), (m, n), "full_row" if policy == "square" else policy)
    if warps[0] * warps[1] * 128 != threads:
        return Refused(
            "wgmma.m64nNk16", f"{m} x {n} has no share of 64 rows for each of {threads // 128} warpgroups"
        )
    columns = n // warps[1]
    atom = max(size for size in range(8, 257, 8) if columns % size == 0)
    row = wgmma(atom, a_dtype, a_from, a_major, b_major)
    return GemmChoice(row, warps, (m // 64 // warps[0], columns // atom, k // 16))


def _split(groups: int, atoms: tuple[int, int], extents: tuple[int, int], policy: str) -> tuple[int, int]:
    """How many groups along (m, n): as many as find work, then by the policy."""

    def rank(choice: tuple[int, int]) -> tuple[float, ...]:
        along_m, along_n = choice
        # What a group reads of A and B for one step in k is proportional to its rows plus its columns.
        reads = extents[0] / along_m + extents[1] / along_n
        prefer = {"square": -reads, "full_row": along_m, "full_col": along_n}[policy]
        return (along_m * along_n, prefer, along_m)

    return max(_splits(groups, atoms), key=rank)


def _splits(groups: int, atoms: tuple[int, int]) -> Iterator[tuple[int, int]]:
    divisors = [d for d in range(1, groups + 1) if groups % d == 0]
    for along_m in divisors:
        if atoms[0] % along_m == 0:
            for along_n in divisors:
                if groups % (along_m * along_n) == 0 and atoms[1] % along_n == 0:
                    yield along_m, along_n
