"""Timing of kernels under TileLang's name for it: `from tilelang.profiler import do_bench`."""

from __future__ import annotations

from tilelab.bench import Profiler, TensorSupplyType, do_bench

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]
