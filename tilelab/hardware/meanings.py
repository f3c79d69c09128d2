"""What instructions do, on whole tiles, in NumPy; and what that makes of registers.

Kept apart from the tables so that reading them needs no NumPy. All functions take leading batch axes (warps,
blocks) and work on them at once. A bfloat16 array is any float array whose values are bfloat16 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.hardware.model import Instruction, Operand, Register

__all__ = ["MEANINGS", "emulate_registers", "gather", "register_table", "scatter"]

Array = NDArray[Any]


def matmul_accumulate(a: Array, b: Array, d: Array) -> Array:
    """D + A · Bᵀ in at least float32 (integers in D's own type), rounded once to D's type."""
    # Integers accumulate in D's own type, wrapping as the hardware does.
    wide = d.dtype if np.issubdtype(d.dtype, np.integer) else np.promote_types(d.dtype, np.float32)
    product = np.matmul(a.astype(wide), np.swapaxes(b.astype(wide), -1, -2))
    return (d.astype(wide) + product).astype(d.dtype)


def copy(a: Array) -> Array:
    """The same elements: who holds them is the layouts' matter, bounds are the caller's."""
    return a


MEANINGS: dict[str, Callable[..., Array]] = {
    "matmul_accumulate": matmul_accumulate,
    "copy": copy,
    "copy_or_zero": copy,
    "copy_or_drop": copy,
}


@cache
def register_table(operand: Register) -> Array:
    """(lanes, values): the column-major linear index that each lane's each value has in the tile."""
    lanes = np.array(operand.layout[0].offsets())
    values = np.array(operand.layout[1].offsets())
    table = lanes[:, None] + values[None, :]
    table.setflags(write=False)
    return table


def gather(operand: Register, tile: Array) -> Array:
    """Registers (…, lanes, values) from a tile (…, *operand.tile)."""
    rank = len(operand.tile)
    batch = tile.shape[: tile.ndim - rank]
    flat = np.reshape(_turn(tile, len(batch)), (*batch, -1))
    return flat[..., register_table(operand)]


def scatter(operand: Register, registers: Array) -> Array:
    """A tile (…, *operand.tile) from registers (…, lanes, values); of several holders the last one counts."""
    batch = registers.shape[:-2]
    flat = np.empty((*batch, int(np.prod(operand.tile))), registers.dtype)
    flat[..., register_table(operand)] = registers
    return _turn(np.reshape(flat, (*batch, *reversed(operand.tile))), len(batch))


def _turn(tiles: Array, batch: int) -> Array:
    """The tile's axes reversed behind the batch axes: from row-major to column-major order and back."""
    return np.transpose(tiles, (*range(batch), *reversed(range(batch, tiles.ndim))))


def emulate_registers(row: Instruction, a: Array, b: Array | None = None, c: Array | None = None) -> Array:
    """One execution per batch entry: what the lanes hold in D afterwards, gather after meaning after scatter.

    Register operands are (…, lanes, values), memory operands are tiles (…, *tile); so is the result. `c` is D
    before the instruction, for rows that accumulate.
    """

    def tile_of(operand: Operand, data: Array) -> Array:
        return scatter(operand, data) if isinstance(operand, Register) else data

    if row.b is None:
        result = MEANINGS[row.means](tile_of(row.a, a))
    else:
        if b is None or c is None:
            raise ValueError(f"{row.name} needs b and c")
        result = MEANINGS[row.means](tile_of(row.a, a), tile_of(row.b, b), tile_of(row.d, c))
    return gather(row.d, result) if isinstance(row.d, Register) else result
