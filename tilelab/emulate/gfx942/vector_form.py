"""Sources and destination of a vector instruction with DPP, SDWA, op_sel, clamp and output scaling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942.decode import Instruction, integers, unknown
from tilelab.emulate.gfx942.formats import F16, F64, I16, I64, U16, U32, U64, Array
from tilelab.emulate.gfx942.lane_moves import dpp_sources
from tilelab.emulate.gfx942.operands import Reader, vector, vector_pair
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["VectorForm", "Writer"]

Writer = Callable[[Waves, Array], None]

_SDWA_FIELDS = {
    "BYTE_0": (0, 0xFF),
    "BYTE_1": (8, 0xFF),
    "BYTE_2": (16, 0xFF),
    "BYTE_3": (24, 0xFF),
    "WORD_0": (0, 0xFFFF),
    "WORD_1": (16, 0xFFFF),
}
_WIDE = (U64, I64, F64)
_NARROW = (F16, U16, I16)
_LANE = np.arange(LANES)


class VectorForm:
    """How one vector instruction reads its sources (counted from 1) and writes its result."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.modifiers = instruction.modifiers
        self._dpp = dpp_sources(instruction)
        self.op_sel: tuple[int, ...] = (
            integers(self.modifiers["op_sel"]) if "op_sel" in self.modifiers else ()
        )
        if self._dpp is not None:
            source, exists = self._dpp
            rows, banks = instruction.offset("row_mask"), instruction.offset("bank_mask")
            rows = rows if "row_mask" in self.modifiers else 15
            banks = banks if "bank_mask" in self.modifiers else 15
            self._dpp_source, self._dpp_exists = source, exists
            self._dpp_lanes = ((rows >> (_LANE // 16)) & (banks >> (_LANE % 16 // 4)) & 1) == 1
            self._zero_fills = "bound_ctrl" in self.modifiers

    def source(self, index: int, dtype: type) -> Reader:
        """Source number `index` with the given dtype; `op_sel` picks the half of 16-bit sources."""
        operand = self.instruction.operands[index]
        if dtype in _WIDE:
            read = vector_pair(self.instruction, operand, dtype)
        else:
            field = self.modifiers.get(f"src{index - 1}_sel", "DWORD")
            half = self.op_sel[index - 1] if dtype in _NARROW and self.op_sel else 0
            if field != "DWORD":
                read = self._sdwa_source(index, dtype, field)
            else:
                read = vector(self.instruction, operand, dtype, half=half)
        return self._permuted(read) if self._dpp is not None and index == 1 else read

    def _sdwa_source(self, index: int, dtype: type, field: str) -> Reader:
        operand = self.instruction.operands[index]
        shift, mask = _SDWA_FIELDS[field]
        if operand.is_negated or operand.is_absolute:
            raise unknown(self.instruction, "sign modifier on a part of a register")
        raw = vector(self.instruction, operand, U32)

        def read(w: Waves) -> Array:
            bits = raw(w) >> U32(shift) & U32(mask)
            return bits.astype(U16).view(dtype) if dtype in _NARROW else bits.view(dtype)

        return read

    def _permuted(self, read: Reader) -> Reader:
        source, zero_fills = self._dpp_source, self._zero_fills

        def permuted(w: Waves) -> Array:
            value = np.broadcast_to(read(w), (w.count, LANES))[:, source]
            return (
                np.where(self._source_is_live(w), value, np.zeros((), value.dtype)) if zero_fills else value
            )

        return permuted

    def _source_is_live(self, w: Waves) -> Array:
        return w.active[:, self._dpp_source] & self._dpp_exists

    def lanes(self, w: Waves) -> Array | None:
        """The lanes to write: None for the active ones, else a mask made by DPP."""
        if self._dpp is None:
            return None
        mask = w.active & self._dpp_lanes
        return mask if self._zero_fills else mask & self._source_is_live(w)

    def writer(self, *, is_integer_clamp_done: bool = False) -> Writer:
        """A function that stores the result, after clamp, scaling and selection of a part of the register."""
        instruction, modifiers = self.instruction, self.modifiers
        target = instruction.operands[0].register
        clamps = "clamp" in modifiers and not is_integer_clamp_done
        scale = float(modifiers["mul"]) if "mul" in modifiers else 1 / float(modifiers.get("div", "1"))
        field = modifiers.get("dst_sel", "DWORD")
        keeps_rest = modifiers.get("dst_unused") == "UNUSED_PRESERVE"
        if modifiers.get("dst_unused") == "UNUSED_SEXT":
            raise unknown(instruction, "SDWA destination")

        def write(w: Waves, value: Array) -> None:
            if scale != 1:
                value = (value * value.dtype.type(scale)).astype(value.dtype)
            if clamps:
                value = self._clamp(value)
            size = value.dtype.itemsize
            if size == 8:
                w.write_pair(target, np.ascontiguousarray(value).view(U64), self.lanes(w))
                return
            bits = np.ascontiguousarray(value).view(U16).astype(U32) if size == 2 else value.view(U32)
            if size == 2 and self._writes_high_half():
                bits = w.vector[target, w.selected] & U32(0xFFFF) | bits << U32(16)
            elif field != "DWORD":
                shift, mask = _SDWA_FIELDS[field]
                bits = (bits & U32(mask)) << U32(shift)
                if keeps_rest:
                    bits = w.vector[target, w.selected] & ~U32(mask << shift) | bits
            w.write(target, bits, self.lanes(w))

        return write

    def _writes_high_half(self) -> bool:
        sources = len(self.instruction.operands) - 1
        return len(self.op_sel) > sources and self.op_sel[sources] == 1

    def _clamp(self, value: Array) -> Array:
        if value.dtype.kind != "f":
            raise unknown(self.instruction, "integer clamp")
        return np.clip(np.where(np.isnan(value), 0, value), 0, 1).astype(value.dtype)
