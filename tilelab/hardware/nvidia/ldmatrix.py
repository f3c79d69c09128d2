"""ldmatrix and stmatrix: 8 × 8 matrices of 16-bit elements between shared memory and a warp's registers.

A tile is (row, column, matrix). Lane 8·i + r gives the address of row r of matrix i; each row is 16
contiguous, 16-byte aligned bytes. Without .trans lane l receives row l // 4, columns 2·(l % 4) and the next;
with .trans it receives column l // 4, rows 2·(l % 4) and the next.
"""

from __future__ import annotations

from tilelab.hardware.model import WARP, Cost, Instruction, Register, Shared, sm
from tilelab.layout import Layout as L

_DTYPE = "uint16"
# 32 banks of 4 bytes a cycle on every SM.
_BYTES = tuple((arch, 128.0) for arch in ("sm_80", "sm_89", "sm_90", "sm_90a"))
_BYTES_90 = _BYTES[2:]


def _registers(count: int, transposed: bool) -> Register:
    column, row = (1, 8) if transposed else (8, 1)
    values = ((2, count), (column, 64)) if count > 1 else (2, column)
    return Register(_DTYPE, (8, 8, count), L(((4, 8), values[0]), ((2 * column, row), values[1])))


def _shared(count: int) -> Shared:
    rows = L((8, count), (1, 64)) if count > 1 else L(8, 1)
    return Shared(_DTYPE, (8, 8, count), align=16, rows=rows)


def _load(count: int, transposed: bool) -> Instruction:
    trans = ".trans" if transposed else ""
    return Instruction(
        name=f"ldmatrix.x{count}{trans}",
        family="ldmatrix",
        needs=sm(75),
        scope=WARP,
        d=_registers(count, transposed),
        a=_shared(count),
        b=None,
        means="copy",
        text=f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{d}}, [{{a}}];",
        cost=Cost(bytes=128 * count, rates=_BYTES),
        source="PTX ISA, 'ldmatrix'",
    )


def _store(count: int, transposed: bool) -> Instruction:
    trans = ".trans" if transposed else ""
    return Instruction(
        name=f"stmatrix.x{count}{trans}",
        family="stmatrix",
        needs=sm(90),
        scope=WARP,
        d=_shared(count),
        a=_registers(count, transposed),
        b=None,
        means="copy",
        text=f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [{{d}}], {{a}};",
        cost=Cost(bytes=128 * count, rates=_BYTES_90),
        source="PTX ISA, 'stmatrix'",
    )


LOADS = tuple(_load(count, transposed) for transposed in (False, True) for count in (1, 2, 4))
STORES = tuple(_store(count, transposed) for transposed in (False, True) for count in (1, 2, 4))
ROWS = (*LOADS, *STORES)
