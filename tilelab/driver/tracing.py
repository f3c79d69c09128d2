"""`tilelab.trace` and `tilelab.trace_of`: what every pass did to a kernel, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelab.driver.kernel import Kernel
from tilelab.driver.lowering import traced
from tilelab.errors import TileError
from tilelab.language.specs import ParsedKernel
from tilelab.passes.base import Pass
from tilelab.targets import Target, parse_target
from tilelab.trace.record import Trace
from tilelab.trace.schema import Note

__all__ = ["trace", "trace_of", "traced_call"]


def traced_call(
    parsed: ParsedKernel,
    target: Target,
    passes: Sequence[Pass] | None,
    until: str | None,
    notes: tuple[Note, ...],
    call: str,
    seconds: float,
) -> Trace:
    """The trace of a compile up to the printed code, or up to the pass `until`."""
    return traced(parsed, target, passes=passes, until=until, notes=notes, call=call, seconds=seconds)


def trace(
    kernel: Any,
    *args: Any,
    target: str | Target | None = None,
    passes: Sequence[Pass] | None = None,
    until: str | None = None,
    **kwargs: Any,
) -> Trace:
    """Every step of a kernel's compile, without running it; `until` names the last one.

    `kernel` is a function decorated with `jit`, a T.prim_func or a compiled Kernel. Arguments are tensors or
    types such as `T.Tensor((512, 1024), "float16")`; without any, those of the latest call. `passes` is a
    pipeline of your own, such as `tilelab.pipeline("cuda", without="vectorize")`. Raises TileError as a
    compile would.
    """
    if isinstance(kernel, Kernel):
        if passes is until is None and (target is None or parse_target(target) == kernel.target):
            return kernel.trace
        return traced(kernel.parsed, parse_target(target or kernel.target), passes=passes, until=until)
    if isinstance(kernel, ParsedKernel):
        return traced(kernel, parse_target(target), passes=passes, until=until)
    if not hasattr(kernel, "latest"):
        raise TileError("TL406", f"{getattr(kernel, '__name__', kernel)!s} is no kernel",
                        help="decorate the function with @tilelab.jit")  # fmt: skip
    if not args and not kwargs and any(p.default is p.empty for p in kernel.signature.parameters.values()):
        args, kwargs = kernel.latest()
    return kernel.trace(*args, target=target, passes=passes, until=until, **kwargs)


trace_of = trace
