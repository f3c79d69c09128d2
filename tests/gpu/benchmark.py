"""Our kernels beside torch.matmul in one run: same inputs, interleaved rounds, the L2 flushed before each
call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.codegen import kernels
from tests.gpu.running import architecture, build
from tilelab.codegen.cuda import cuda_text

__all__ = ["Figure", "measure_matmuls"]

FLUSH_BYTES = 256 << 20  # more than the L2 of any chip here
IDLE_SECONDS = 0.2  # before each round, so that one kernel's heat is not charged to the next
ROUNDS, CALLS = 2, 10


@dataclass(frozen=True)
class Figure:
    """One kernel at one shape: TFLOP/s, ratio to the library in the same run (above 1: faster), relative
    error.
    """

    kernel: str
    shape: tuple[int, int, int]
    tflops: float
    ratio: float
    error: float


def _times(torch: Any, launches: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Median seconds of each launch."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    seconds: dict[str, list[float]] = {name: [] for name in launches}
    for _ in range(ROUNDS):
        for name, launch in launches.items():
            torch.cuda.synchronize()
            time.sleep(IDLE_SECONDS)
            for _ in range(3):
                launch()
            pairs = []
            for _ in range(CALLS):
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                flush.zero_()
                pair[0].record()
                launch()
                pair[1].record()
                pairs.append(pair)
            torch.cuda.synchronize()
            seconds[name] += [first.elapsed_time(last) / 1e3 for first, last in pairs]
    return {name: median(values) for name, values in seconds.items()}


def measure_matmuls(
    shapes: tuple[tuple[int, int, int], ...], extra: dict[str, Callable[..., Any]]
) -> list[Figure]:
    """Figures for the hand-written matmuls and `extra` ones (name → function of two tensors) at each
    shape.
    """
    import torch

    figures = []
    for m, n, k in shapes:
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
        wanted = a.float() @ b.float()
        c = torch.empty(m, n, device="cuda", dtype=torch.float16)
        torch.cuda.synchronize()
        launches: dict[str, Callable[[], Any]] = {"torch": lambda a=a, b=b, c=c: torch.matmul(a, b, out=c)}
        errors = {"torch": 0.0}
        makers = {"mma by hand": kernels.mma_matmul}
        if architecture() == "sm_90a":
            makers["wgmma by hand"] = kernels.wgmma_matmul
        for name, make in makers.items():
            kernel, _ = build(cuda_text(make(m, n, k)))
            out = torch.full_like(c, float("nan"))
            bound = kernel.bind([a, b, out])
            stream = torch.cuda.current_stream().cuda_stream
            launches[name] = lambda bound=bound, stream=stream: bound(stream)
            launches[name]()
            torch.cuda.synchronize()
            errors[name] = float((out.float() - wanted).norm() / wanted.norm())
        for name, function in extra.items():
            out = function(a, b)
            torch.cuda.synchronize()
            errors[name] = float((out.float() - wanted).norm() / wanted.norm())
            launches[name] = lambda function=function, a=a, b=b: function(a, b)
        times = _times(torch, launches)
        figures += [
            Figure(name, (m, n, k), 2 * m * n * k / t / 1e12, times["torch"] / t, errors[name])
            for name, t in times.items()
        ]
    return figures
