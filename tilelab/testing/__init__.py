"""For tests of kernels: comparison with tolerances that follow from dtype and K, and conditions to run."""

from __future__ import annotations

from tilelab.testing.close import Tolerance, assert_close, relative_error, tolerance
from tilelab.testing.conditions import main, requires_cuda, requires_hip, requires_torch, set_random_seed

__all__ = [
    "Tolerance", "assert_close", "main", "relative_error", "requires_cuda", "requires_hip", "requires_torch",
    "set_random_seed", "tolerance",
]  # fmt: skip
