"""Measure a function: on the GPU by events with a cold second-level cache, on the CPU by the clock."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

__all__ = ["do_bench"]

_CACHE_BYTES = 256 * 2**20
_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max,
}  # fmt: skip


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "auto",
    return_mode: Literal["mean", "median", "min", "max"] = "mean",
    cache_size: int = _CACHE_BYTES,
) -> float | list[float]:
    """Milliseconds that a call takes, from calls that fill `rep` milliseconds after `warmup` milliseconds of
    them.

    With torch on a GPU each call is timed by events after `cache_size` bytes were overwritten, so that inputs
    come from memory; elsewhere by the clock. `quantiles` gives those instead of `return_mode`.
    """
    torch = sys.modules.get("torch")
    on_gpu = backend != "wall" and torch is not None and torch.cuda.is_available()
    once = _gpu_times if on_gpu else _wall_times
    fn()
    first = max(once(fn, 3, cache_size)[-1], 1e-4)
    for _ in range(max(1, int(warmup / first))):
        fn()
    times = once(fn, max(1, min(10_000, int(rep / first))), cache_size)
    if quantiles is not None:
        ordered = sorted(times)
        return [_quantile(ordered, q) for q in quantiles]
    return _MODES[return_mode](times)


def _quantile(ordered: Sequence[float], q: float) -> float:
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _wall_times(fn: Callable[[], Any], count: int, cache_size: int) -> list[float]:
    out = []
    for _ in range(count):
        begin = time.perf_counter()
        fn()
        out.append((time.perf_counter() - begin) * 1e3)
    return out


def _gpu_times(fn: Callable[[], Any], count: int, cache_size: int) -> list[float]:
    import torch

    flush = torch.empty(max(cache_size, 4) // 4, dtype=torch.int32, device="cuda")
    pairs = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(count)]
    for start, stop in pairs:
        flush.zero_()
        start.record()
        fn()
        stop.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) for start, stop in pairs]
