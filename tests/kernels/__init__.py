"""Small kernels in the style of TileLang with NumPy references: what the emulator, the passes and the
targets run.

Each has at most two blocks and four steps of its loop over K.
"""

from __future__ import annotations

from tests.kernels import attention, control, elementwise, matmul, rows, unusual
from tests.kernels.case import TARGETS, KernelCase

__all__ = ["CASES", "TARGETS", "KernelCase", "case"]

CASES: tuple[KernelCase, ...] = (
    *matmul.CASES, *elementwise.CASES, *rows.CASES, *attention.CASES, *control.CASES,
    *unusual.CASES,
)  # fmt: skip


def case(name: str) -> KernelCase:
    """The case of this name."""
    return next(c for c in CASES if c.name == name)
