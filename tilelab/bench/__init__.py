"""Timing of kernels, by TileLang's name for it: `tilelang.profiler.do_bench`."""

from __future__ import annotations

from tilelab.runtime.profiler import Profiler, TensorSupplyType
from tilelab.runtime.timing import do_bench

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]
