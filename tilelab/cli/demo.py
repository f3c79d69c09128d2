"""`tilelab demo`: one matmul for the CPU, an NVIDIA and an AMD GPU, run on what is there, with every pass on
a page.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.errors import InternalError, TileError

__all__ = ["add", "run"]

LIMIT = 1e-3  # the relative error that a right kernel stays below with float16 inputs


@dataclass(frozen=True)
class Leg:
    """One target of the demo, and the sizes M, N, K that it runs: whole tiles first, then ragged ones."""

    target: str
    sizes: tuple[tuple[int, int, int], ...]


# On the CPU the sizes of a real call, in the emulators a few tiles: an emulated block takes a second.
LARGE = ((512, 768, 1024), (509, 767, 1021))
SMALL = ((128, 128, 64), (97, 131, 45))
LEGS = (Leg("llvm", LARGE), Leg("cuda:sm_90a", SMALL), Leg("hip:gfx942", SMALL))


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("demo", help="one kernel on three targets", allow_abbrev=False)
    parser.add_argument(
        "--html", type=Path, default=Path("demo.html"), metavar="FILE", help="default: demo.html"
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Compile and run the matmul for each target; status 1 unless every line ends in ok."""
    from tilelab.cli.demo_kernel import matmul

    traces = {}
    lines = []
    for leg in LEGS:
        line, trace = _leg(matmul, leg)
        lines.append(line)
        if trace is not None:
            traces[leg.target] = trace
        print(f"… {line}", file=sys.stderr)
    _show(traces, options.html)
    print("\n".join(lines))
    return 0 if all(line.endswith(" ok") for line in lines) else 1


def _show(traces: dict[str, Any], place: Path) -> None:
    from tilelab.cli.viewers import html_of, pass_table, write_page

    for target, trace in traces.items():
        print(f"\n{target}\n{pass_table(trace.payload())}")
    print()
    if not traces:
        return
    chosen = traces.get("cuda:sm_90a") or next(iter(traces.values()))
    try:
        write_page(place, html_of(chosen))
        print(f"every pass for {chosen.target}: {place}\n")
    except TileError as error:
        print(f"no page was written: {error.message}\n")


def _leg(matmul: Any, leg: Leg) -> tuple[str, Any]:
    """The target's line, which ends in ok or in the reason, and the trace of its first compile."""
    trace = None
    try:
        measured, about = [], ""
        for sizes in leg.sizes:
            kernel, text, error = _one(matmul, leg.target, sizes)
            trace = trace or kernel.trace
            measured.append(text)
            if not error < LIMIT:
                return f"{leg.target}: {'; '.join(measured)}: the error is not below {LIMIT:g}", trace
            about = f"{_built(kernel)}{kernel.execution.doc}"
        return f"{leg.target}: {'; '.join(measured)}; {about} ok", trace
    except TileError as error:
        return f"{leg.target}: {error.code}: {error.message}", trace or getattr(error, "trace", None)
    except InternalError as error:
        return f"{leg.target}: internal error: {str(error).splitlines()[0]}", trace


def _one(matmul: Any, target: str, sizes: tuple[int, int, int]) -> tuple[Any, str, float]:
    """Compile and run one size: the kernel, what was measured as text, and the relative error."""
    from tilelab.testing import relative_error

    a, b, reference, name = _inputs(target, *sizes)
    begun = time.perf_counter()
    kernel = matmul.compile(a, b, target=target)
    compiled = time.perf_counter() - begun
    begun = time.perf_counter()
    c = kernel(a, b)
    if hasattr(c, "cpu"):
        c = c.cpu()
    ran = time.perf_counter() - begun
    error = relative_error(c, reference)
    text = "×".join(map(str, sizes))
    return (
        kernel,
        f"{text} error {error:.1e} against {name}, compiled in {compiled:.2f} s, ran in {ran:.2f} s",
        error,
    )


def _inputs(target: str, m: int, n: int, k: int) -> tuple[Any, Any, Any, str]:
    """float16 inputs and the product in float64, of torch where it is installed, else of NumPy."""
    import numpy as np

    from tilelab.driver.execution import choose
    from tilelab.targets import parse_target

    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return a, b, a.astype(np.float64) @ b.astype(np.float64), "NumPy"
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    reference = ta.double() @ tb.double()
    if choose(parse_target(target)).kind in ("cuda", "hip"):
        ta, tb = ta.cuda(), tb.cuda()
    return ta, tb, reference, "torch"


def _built(kernel: Any) -> str:
    """What the target's compiler made of it, for the line."""
    if kernel.target.kind == "llvm":
        return f"{os.cpu_count()} threads, "
    try:
        usage = kernel.resource_usage
    except TileError as error:
        return f"no binary ({error.message}), "
    spills = usage.get("spill_stores") or 0
    return f"{usage['compiler']}: {usage.get('registers')} registers, {spills or 'no'} spills, "
