"""`tilelab.compile`, and the way of every kernel from its parsed form to a callable Kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelab.driver.kernel import Kernel
from tilelab.driver.pass_configs import read_pass_configs
from tilelab.errors import TileError
from tilelab.language.specs import ParsedKernel
from tilelab.passes.base import Pass
from tilelab.targets import Target, parse_target
from tilelab.trace.schema import Note

__all__ = ["compile", "compile_parsed"]


def compile_parsed(
    parsed: ParsedKernel,
    target: Target,
    *,
    passes: Sequence[Pass] | None = None,
    emulate: bool | None = None,
    notes: tuple[Note, ...] = (),
    call: str = "",
    verbose: bool = False,
    seconds: float = 0.0,
) -> Kernel:
    """The kernel, compiled now in its usual variant, so that mistakes come out here."""
    kernel = Kernel(
        parsed,
        target,
        passes=passes,
        emulate=emulate,
        notes=notes,
        call=call,
        verbose=verbose,
        seconds=seconds,
    )
    if not kernel.is_empty:
        kernel.variant()
    return kernel


def compile(
    func: Any,
    out_idx: Any = None,
    target: str | Target | None = None,
    *,
    pass_configs: Mapping[Any, Any] | None = None,
    passes: Sequence[Pass] | None = None,
    emulate: bool | None = None,
    verbose: bool = False,
    execution_backend: str | None = None,
    target_host: Any = None,
) -> Kernel:
    """Compile a T.prim_func for a target (None: the machine's own).

    `out_idx` names parameters that the kernel's call makes and returns. Raises TileError where the kernel
    does not fit.
    """
    if not isinstance(func, ParsedKernel):
        name = getattr(func, "__name__", str(func))
        raise TileError(
            "TL105",
            f"{name} is no T.prim_func",
            help=f"{name}.compile(…) compiles a function decorated with @tilelab.jit",
        )
    notes = list(read_pass_configs(pass_configs))
    for option, value in (("execution_backend", execution_backend), ("target_host", target_host)):
        if value not in (None, "auto"):
            notes.append(Note("info", f"compile({option}={value!r}) has no effect here"))
    parsed = func.with_outputs(out_idx) if out_idx is not None else func
    return compile_parsed(
        parsed, parse_target(target), passes=passes, emulate=emulate, notes=tuple(notes), verbose=verbose
    )
