"""What every row must satisfy. A law is a function of a row that returns what is wrong, or ""."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from string import Formatter

import numpy as np

from tilelab.hardware.meanings import MEANINGS, emulate_registers, gather, scatter
from tilelab.hardware.model import ANY, Instruction, Register, Shared, bits
from tilelab.hardware.table import CHIPS

__all__ = ["LAWS", "Law", "broken_laws", "repeated_names"]


@dataclass(frozen=True)
class Law:
    """A law's name, as a sentence, and its check."""

    name: str
    check: Callable[[Instruction], str]


def repeated_names(rows: Iterable[Instruction]) -> list[str]:
    """The names that more than one row has."""
    return [name for name, count in Counter(row.name for row in rows).items() if count > 1]


def broken_laws(row: Instruction) -> list[str]:
    """What is wrong with a row: one line a broken law; rows whose form is wrong are not emulated."""
    *form, emulation = LAWS
    broken = [f"{row.name}: {law.name}: {reason}" for law in form if (reason := law.check(row))]
    if not broken and (reason := emulation.check(row)):
        broken.append(f"{row.name}: {emulation.name}: {reason}")
    return broken


def _registers_hold_their_tile(row: Instruction) -> str:
    for name, operand in row.operands:
        if not isinstance(operand, Register):
            continue
        lanes = operand.layout[0].size
        if lanes != row.scope.threads:
            return f"{name} has {lanes} lanes, the scope {row.scope.threads}"
        held = set(operand.layout.offsets())
        if held != set(range(math.prod(operand.tile))):
            return f"{name} holds {len(held)} of {math.prod(operand.tile)} elements"
    return ""


def _each_result_has_one_owner(row: Instruction) -> str:
    if isinstance(row.d, Register) and row.d.layout.size != math.prod(row.d.tile):
        return f"{row.d.layout.size} slots for {math.prod(row.d.tile)} elements"
    return ""


def _tiles_fit_together(row: Instruction) -> str:
    if row.b is None:
        return "" if row.d.tile == row.a.tile else f"copies {row.a.tile} to {row.d.tile}"
    m, n, k = row.shape
    want = ((m, k), (n, k))
    return "" if (row.a.tile, row.b.tile) == want else f"{row.a.tile}, {row.b.tile} are not {want}"


def _registers_are_whole(row: Instruction) -> str:
    if row.scope.threads == 1:
        return ""
    for name, operand in row.operands:
        if isinstance(operand, Register) and operand.values * bits(operand.dtype) % 32:
            return f"{name} takes {operand.values} × {bits(operand.dtype)} bits of a lane"
    return ""


def _shared_rows_are_all_addressed(row: Instruction) -> str:
    for name, operand in row.operands:
        if not isinstance(operand, Shared) or operand.rows is None:
            continue
        starts = sorted(operand.rows.offsets())
        height, width = operand.tile[0], operand.tile[1]
        want = [r + height * width * i for i in range(operand.tile[2]) for r in range(height)]
        if starts != sorted(want):
            return f"{name}: the lanes address {len(set(starts))} of {len(want)} rows"
    return ""


def _text_names_its_operands(row: Instruction) -> str:
    seen = Counter(name for _, name, _, _ in Formatter().parse(row.text) if name)
    known = {name for name, _ in row.operands} | set(row.fields)
    if set(seen) != known:
        return f"names {sorted(seen)}, has {sorted(known)}"
    # D of a multiplication is read and written, which some languages spell as two mentions.
    limit = {"d": 2 if row.b is not None else 1}
    over = [name for name, count in seen.items() if count > limit.get(name, 1)]
    return f"names {over} more than once" if over else ""


def _means_something(row: Instruction) -> str:
    return "" if row.means in MEANINGS else f"no meaning is called {row.means}"


def _some_chip_has_it(row: Instruction) -> str:
    return "" if any(chip.has(row.needs) for chip in CHIPS) else f"no chip has {row.needs}"


def _rates_are_of_chips_that_have_it(row: Instruction) -> str:
    chips = {chip.arch: chip for chip in CHIPS}
    for arch, rate in row.cost.rates:
        if arch not in chips or not chips[arch].has(row.needs) or rate <= 0:
            return f"{arch} at {rate}"
    return "" if row.cost.rates else "has none"


def _cost_counts_its_work(row: Instruction) -> str:
    if row.b is None:
        return "" if row.cost.bytes == row.bytes else f"{row.cost.bytes} bytes, the tile has {row.bytes}"
    flops = 2 * math.prod(row.shape)
    return "" if row.cost.flops == flops else f"{row.cost.flops} flops, the tiles make {flops}"


def _has_a_source(row: Instruction) -> str:
    return "" if row.source.strip() else "none"


def _registers_mean_what_tiles_mean(row: Instruction) -> str:
    """Random registers through `emulate_registers`, against a product written out element by element."""
    random = np.random.default_rng(7)

    def sample(tile: tuple[int, ...]) -> np.ndarray:
        # Small integers: sums of products are exact in every dtype that rows have.
        return random.integers(-3, 4, (2, *tile)).astype(np.float32)

    a = sample(row.a.tile)
    held_a = gather(row.a, a) if isinstance(row.a, Register) else a
    if row.b is None:
        got, want = emulate_registers(row, held_a), a
    else:
        b, c = sample(row.b.tile), sample(row.d.tile)
        held_b = gather(row.b, b) if isinstance(row.b, Register) else b
        held_c = gather(row.d, c) if isinstance(row.d, Register) else c
        got = emulate_registers(row, held_a, held_b, held_c)
        want = c + np.einsum("wmk,wnk->wmn", a, b)
    back = scatter(row.d, got) if isinstance(row.d, Register) else got
    return "" if np.array_equal(back, want) else f"{int((back != want).sum())} elements differ"


def _dtypes_have_bits(row: Instruction) -> str:
    wrong = [name for name, operand in row.operands if operand.dtype != ANY and bits(operand.dtype) < 1]
    return f"{wrong}" if wrong else ""


LAWS: tuple[Law, ...] = (
    Law("the registers of each operand together hold its tile", _registers_hold_their_tile),
    Law("each element of D has exactly one owner", _each_result_has_one_owner),
    Law("the tiles fit together", _tiles_fit_together),
    Law("a lane's share fills whole registers", _registers_are_whole),
    Law("the lanes' addresses name every row once", _shared_rows_are_all_addressed),
    Law("the text names each operand and field", _text_names_its_operands),
    Law("the meaning exists", _means_something),
    Law("some chip has it", _some_chip_has_it),
    Law("rates are of chips that have it", _rates_are_of_chips_that_have_it),
    Law("the cost counts the work", _cost_counts_its_work),
    Law("there is a source", _has_a_source),
    Law("dtypes have bits", _dtypes_have_bits),
    Law("emulated registers equal the meaning on tiles", _registers_mean_what_tiles_mean),
)
