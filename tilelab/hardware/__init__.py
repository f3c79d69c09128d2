"""Facts as tables: every instruction tilelab can use, and every chip it can use it on."""

from __future__ import annotations

from tilelab.hardware.model import (
    ANY,
    CTA,
    THREAD,
    WARP,
    WARPGROUP,
    WAVE,
    Chip,
    Completes,
    Cost,
    Global,
    Instruction,
    Operand,
    Register,
    Scope,
    Shared,
    bits,
)
from tilelab.hardware.select import GemmChoice, select_gemm
from tilelab.hardware.select_copy import CopyChoice, select_copy
from tilelab.hardware.table import CHIPS, ROWS, chip, row

__all__ = [
    "ANY",
    "CHIPS",
    "CTA",
    "ROWS",
    "THREAD",
    "WARP",
    "WARPGROUP",
    "WAVE",
    "Chip",
    "Completes",
    "CopyChoice",
    "Cost",
    "GemmChoice",
    "Global",
    "Instruction",
    "Operand",
    "Register",
    "Scope",
    "Shared",
    "bits",
    "chip",
    "row",
    "select_copy",
    "select_gemm",
]
