"""Which rows move one thread's vector between two memories, and why wider ones do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tilelab.errors import Refused, TileError
from tilelab.hardware.model import Chip, Global, Instruction, Register, Shared, bits
from tilelab.hardware.select import candidates, place

__all__ = ["CopyChoice", "select_copy"]


@dataclass(frozen=True)
class CopyChoice:
    """Rows that move one vector of one thread: one row, or a load and a store through registers.

    `vector` counts elements, `bytes` their bytes; `is_async` says that the data must be waited for.
    """

    rows: tuple[Instruction, ...]
    vector: int
    bytes: int
    is_async: bool
    refusals: tuple[Refused, ...] = ()

    @property
    def row(self) -> Instruction:
        """The first row."""
        return self.rows[0]


@cache
def select_copy(
    chip: Chip,
    source: str,
    destination: str,
    dtype: str,
    elements: int,
    alignment: int,
    wants_async: bool = False,
    *,
    bounded: bool = False,
) -> CopyChoice:
    """The widest move of one thread between two scopes: `elements` contiguous, both ends aligned to
    `alignment` bytes.

    With `wants_async` cp.async is taken where it exists and fits; with `bounded` rows whose hardware checks
    bounds are preferred. Raises TL203 if not even one element can be moved.
    """
    source, destination = place(source), place(destination)
    refusals: list[Refused] = []
    options: list[CopyChoice] = []
    size = bits(dtype)
    most = elements * size
    if chip.has("tma") and {source, destination} == {"global", "shared"}:
        refusals.append(Refused("tma", "moves boxes of a whole tile; this is one thread's vector"))
    if wants_async:
        options += _fitting(chip, ("cp_async",), source, destination, size, most, alignment, refusals)
        if not options:
            refusals.append(
                Refused("cp.async", f"{chip.arch} has none for {source} to {destination} that fits")
            )
    if not options:
        options = _through_registers(chip, source, destination, size, most, alignment, refusals)
    if not options:
        raise TileError(
            "TL203",
            f"no instruction moves {dtype} from {source} to {destination} at {alignment}-byte alignment",
            refusals=tuple(refusals),
        )

    def rank(choice: CopyChoice) -> tuple[int, bool]:
        checks = any(isinstance(o, Global) and o.bounded for row in choice.rows for _, o in row.operands)
        return choice.bytes, checks == bounded

    best = max(options, key=rank)
    return replace(best, refusals=tuple(refusals))


def _through_registers(
    chip: Chip,
    source: str,
    destination: str,
    size: int,
    most: int,
    alignment: int,
    refusals: list[Refused],
) -> list[CopyChoice]:
    loads = stores = None
    if source != "register":
        loads = _fitting(chip, ("load",), source, "register", size, most, alignment, refusals)
    if destination != "register":
        stores = _fitting(chip, ("store",), "register", destination, size, most, alignment, refusals)
    if loads is None or stores is None:
        return loads or stores or []
    return [
        CopyChoice((*load.rows, *store.rows), load.vector, load.bytes, False)
        for load in loads
        for store in stores
        if load.bytes == store.bytes
    ]


def _fitting(
    chip: Chip,
    families: tuple[str, ...],
    source: str,
    destination: str,
    size: int,
    most: int,
    alignment: int,
    refusals: list[Refused],
) -> list[CopyChoice]:
    out: list[CopyChoice] = []
    for row in candidates(chip, *families):
        if not (_is_in(row.a, source, chip) and _is_in(row.d, destination, chip)):
            continue
        width = row.bytes
        need = max(operand.align for _, operand in row.operands if not isinstance(operand, Register))
        if 8 * width % size:
            refusals.append(Refused(row.name, f"{width} bytes hold no whole number of {size}-bit elements"))
        elif most % (8 * width):
            refusals.append(Refused(row.name, f"{most / 8:g} contiguous bytes are no multiple of {width}"))
        elif alignment % need:
            refusals.append(Refused(row.name, f"needs {need}-byte alignment, there is {alignment}"))
        else:
            is_async = row.family == "cp_async"
            out.append(CopyChoice((row,), 8 * width // size, width, is_async))
    return out


def _is_in(operand: object, place: str, chip: Chip) -> bool:
    if isinstance(operand, Register):
        return place == "register"
    if isinstance(operand, Shared):
        return place == "shared"
    # A CPU's shared tiles are ordinary memory.
    return place == "global" or (place == "shared" and chip.has("cpu"))
