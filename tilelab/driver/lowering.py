"""From a parsed kernel to device IR and its printed code, with the Trace of every step."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from tilelab import settings
from tilelab.errors import TileError
from tilelab.ir.alignment import with_alignments
from tilelab.ir.build import with_attrs
from tilelab.ir.nodes import PrimFunc
from tilelab.language.specs import ParsedKernel
from tilelab.passes.base import Pass
from tilelab.pipelines.run import run, start_trace
from tilelab.targets import Target, parse_target
from tilelab.trace.code import CodeText
from tilelab.trace.record import Trace
from tilelab.trace.schema import Code, Note

__all__ = ["ALIGNED", "Loose", "lower", "pipeline", "pipeline_of", "print_code", "traced", "versions"]

ALIGNED = 16
"""Bytes that the usual variant presumes of every base address; what allocators give and wide loads need."""

Loose = tuple[tuple[str, int], ...]
"""Tensors that start at multiples of fewer bytes: (name, bytes) of each; empty for the usual variant."""


def pipeline(target: str | Target | None = None, *, without: str | Iterable[str] = ()) -> tuple[Pass, ...]:
    """The passes of a target in their order, less those named in `without`. Raises TL401, TL405.

    What it gives goes to `jit(passes=…)`, `tilelab.trace(passes=…)` or `tilelab.analyze(passes=…)`.
    """
    from tilelab.pipelines.run import without as less

    return less(pipeline_of(parse_target(target)), *([without] if isinstance(without, str) else without))


def pipeline_of(target: Target) -> tuple[Pass, ...]:
    """The passes of a target. Those of other targets are not loaded."""
    if target.kind == "llvm":
        from tilelab.pipelines.llvm import LLVM

        return LLVM
    if target.kind == "cuda":
        from tilelab.pipelines.cuda import CUDA

        return CUDA
    from tilelab.pipelines.hip import HIP

    return HIP


@cache
def versions() -> dict[str, str]:
    """Versions of what generated code depends on, by name."""
    names = ("tilelab", "apache-tvm", "apache-tvm-ffi", "numpy", "nvidia-cuda-nvrtc", "ziglang")
    found = {name: _version(name) for name in names}
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        **{n: v for n, v in found.items() if v is not None},
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def lower(
    parsed: ParsedKernel,
    target: Target,
    *,
    passes: Iterable[Pass] | None = None,
    loose: Loose = (),
    until: str | None = None,
    notes: Iterable[Note] = (),
    seconds: float = 0.0,
    call: str = "",
    trace_into: list[Trace] | None = None,
) -> tuple[PrimFunc, Trace]:
    """The kernel after the target's pipeline, and the trace of it.

    `notes` are remarks about the call that belong to the trace's first step. A trace is put into `trace_into`
    before the first pass runs, so that it is there when a pass fails. Raises TileError where the kernel does
    not fit.
    """
    f = with_alignments(with_attrs(parsed.func, target=str(target)), dict(loose))
    trace = start_trace(f, parsed.source, seconds=seconds, call=call)
    trace.versions = dict(versions())
    first = [*(Note("info", f"{text}: accepted, without effect here") for text in parsed.ignored), *notes]
    for name, step in loose:
        text = f"{name} starts at a multiple of {step} bytes only, not of {ALIGNED}: this variant allows it"
        first.append(Note("slow_path", text, None, {"buffer": name, "alignment": step}))
    trace.steps[0] = replace(trace.steps[0], notes=tuple(first))
    if trace_into is not None:
        trace_into.append(trace)
    steps = pipeline_of(target) if passes is None else tuple(passes)
    if until and until not in {step.name for step in steps}:
        raise TileError("TL405", f"the pipeline has no pass {until!r} to stop after",
                        help="passes: " + ", ".join(step.name for step in steps))  # fmt: skip
    return run(f, steps, trace, until=until), trace


def print_code(f: PrimFunc, target: Target) -> CodeText:
    """The device IR as CUDA or HIP C++."""
    directives = bool(settings.get("line_info"))
    if target.kind == "cuda":
        from tilelab.codegen.cuda import cuda_text

        return cuda_text(f, directives)
    from tilelab.codegen.hip import hip_text

    return hip_text(f, directives)


def traced(parsed: ParsedKernel, target: Target, **options: Any) -> Trace:
    """The trace of a compile up to the printed code, without building or running anything.

    A kernel that does not fit leaves its trace with the failing step as the error's attribute `trace`.
    """
    begun: list[Trace] = []
    until = options.get("until") or settings.get("until")
    try:
        f, trace = lower(parsed, target, trace_into=begun, **options)
    except TileError as error:
        if begun:
            error.trace = begun[0]  # type: ignore[attr-defined]
        raise
    if until or (options.get("passes") is not None and str(f.attrs["tl.stage"]) != "device"):
        return trace
    if target.kind == "llvm":
        from tilelab.codegen.llvm import build

        trace.code = Code("llvm", build(f, target).lines)
    else:
        trace.code = print_code(f, target).code
    return trace
