"""Copies of MI300X (gfx942): LDS reads and writes, global and buffer loads and stores, of 1 to 16 bytes.

gfx942 has no direct 16-byte load from global memory to LDS (`global_load_lds_dwordx4` came with gfx950): data
goes through registers. A buffer access checks every 32-bit word against the buffer's size: reads beyond give
0, writes are dropped.
"""

from __future__ import annotations

from tilelab.hardware.model import THREAD, Cost, Global, Instruction, Operand, Register, Shared, gfx
from tilelab.layout import Layout as L

_Rates = tuple[tuple[str, float], ...]
_BYTE = "uint8"
WORDS = {1: "unsigned char", 2: "unsigned short", 4: "u32", 8: "u32x2", 16: "u32x4"}
_LDS = {1: "u8", 2: "u16", 4: "b32", 8: "b64", 16: "b128"}
_GLOBAL = {1: "ubyte", 2: "ushort", 4: "dword", 8: "dwordx2", 16: "dwordx4"}
_STORED = {**_GLOBAL, 1: "byte", 2: "short"}
_SOURCE = "AMD Instinct MI300 ISA, 'Vector memory operations' and 'Data share operations'"
# LDS: 32 banks of 4 bytes a cycle. Vector L1: 64 bytes a cycle and CU.
_LDS_RATE = (("gfx942", 128.0),)
_L1_RATE = (("gfx942", 64.0),)


def _copy(
    name: str,
    family: str,
    d: Operand,
    a: Operand,
    text: str,
    rates: _Rates,
    means: str = "copy",
    fields: tuple[str, ...] = (),
) -> Instruction:
    return Instruction(
        name=name,
        family=family,
        needs=gfx("gfx942"),
        scope=THREAD,
        d=d,
        a=a,
        b=None,
        means=means,
        text=text,
        fields=fields,
        dialect="hip",
        cost=Cost(bytes=d.tile[0], rates=rates),
        source=_SOURCE,
    )


def _rows(width: int) -> tuple[Instruction, ...]:
    register = Register(_BYTE, (width,), L((1, width), (0, 1)))
    shared = Shared(_BYTE, (width,), align=width)
    plain = Global(_BYTE, (width,), align=min(width, 4))
    buffer = Global(_BYTE, (width,), align=min(width, 4), bounded=True)
    word, size = WORDS[width], 8 * width
    load, store = f"{{d}} = *(const {word}*)({{a}});", f"*({word}*)({{d}}) = {{a}};"
    written = {1: "b8", 2: "b16"}.get(width, _LDS[width])
    return (
        _copy(f"ds_read_{_LDS[width]}", "load", register, shared, load, _LDS_RATE),
        _copy(f"ds_write_{written}", "store", shared, register, store, _LDS_RATE),
        _copy(f"global_load_{_GLOBAL[width]}", "load", register, plain, load, _L1_RATE),
        _copy(f"global_store_{_STORED[width]}", "store", plain, register, store, _L1_RATE),
        _copy(
            f"buffer_load_{_GLOBAL[width]}",
            "load",
            register,
            buffer,
            f"{{d}} = __builtin_amdgcn_raw_buffer_load_b{size}({{resource}}, {{a}}, 0, 0);",
            _L1_RATE,
            "copy_or_zero",
            ("resource",),
        ),
        _copy(
            f"buffer_store_{_STORED[width]}",
            "store",
            buffer,
            register,
            f"__builtin_amdgcn_raw_buffer_store_b{size}({{a}}, {{resource}}, {{d}}, 0, 0);",
            _L1_RATE,
            "copy_or_drop",
            ("resource",),
        ),
    )


ROWS = tuple(row for width in WORDS for row in _rows(width))
