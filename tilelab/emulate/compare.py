"""Which pass changes an answer: every step of a compilation emulated on the same inputs, against one
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.emulate.machine import FREE, emulate
from tilelab.emulate.report import Report
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Var, is_buffer, same_structure

__all__ = ["Change", "compare_steps", "dimensions", "relative_error"]


@dataclass(frozen=True)
class Change:
    """The first step whose function no longer gives the reference's values, and how it differs."""

    step: str
    stage: str
    how: str
    reason: str

    def __str__(self) -> str:
        return f"{self.step} (stage {self.stage}, {self.how}): {self.reason}"


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """‖got − want‖ / ‖want‖ (Frobenius, in float64); infinite where one is NaN and the other is not."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    if got.shape != want.shape or (np.isnan(got) != np.isnan(want)).any():
        return float("inf")
    differs = (got != want) & ~np.isnan(want)
    if not differs.any():
        return 0.0
    if not (np.isfinite(got[differs]).all() and np.isfinite(want[differs]).all()):
        return float("inf")
    finite = want[np.isfinite(want)]
    size = float(np.linalg.norm(finite)) or 1.0
    return float(np.linalg.norm((got - want)[differs])) / size


def compare_steps(
    steps: Iterable[tuple[str, PrimFunc]],
    make_args: Callable[[], Mapping[str, Any]],
    reference: Mapping[str, np.ndarray],
    tolerance: float,
    *,
    modes: Sequence[str] = ("late", "early"),
    seeds: Sequence[int] = (0, 1),
    **options: Any,
) -> Change | None:
    """Emulate each step's function under its own stage; the first that faults or differs, None if all agree.

    `make_args` gives fresh arguments by name, `reference` the expected arrays of the outputs by name. Steps
    whose function equals the one before are skipped. Free-running stages run in every mode and with every
    seed.
    """
    before: PrimFunc | None = None
    sizes: dict[str, int] = {}
    for name, function in steps:
        # Flat tensors of the last stage no longer show the sizes that their arrays have.
        sizes = sizes or dimensions(function, make_args())
        if before is not None and same_structure(before, function):
            continue
        before = function
        stage = b.stage_of(function)
        done: Report | None = None
        for mode, seed in [(m, s) for m in modes for s in seeds]:
            if done is not None and _is_same_run(done, stage, mode, seed, modes, seeds):
                continue
            how = f"mode {mode}, seed {seed}" if stage in FREE else "lockstep"
            done, reason = _run(function, make_args(), reference, tolerance, mode, seed, sizes | options)
            if reason:
                return Change(name, stage, how, reason)
    return None


def dimensions(function: PrimFunc, args: Mapping[str, Any]) -> dict[str, int]:
    """The values of dimensions that are variables, by name, from the shapes of the arguments by name."""
    tensors = [p for p in function.params if is_buffer(p) and str(p.name) in args]
    pairs = [(d, n) for p in tensors for d, n in zip(p.shape, np.shape(args[str(p.name)]), strict=False)]
    return {str(d.name): int(n) for d, n in pairs if isinstance(d, Var)}


def _is_same_run(done: Report, stage: str, mode: str, seed: int, modes, seeds) -> bool:
    """Whether a run that was done already says how this one would end."""
    if stage not in FREE:
        return not done.has_roles or mode != modes[0]
    return (not done.has_roles and seed != seeds[0]) or (not done.is_asynchronous and mode != modes[0])


def _run(
    function, args, reference, tolerance: float, mode: str, seed: int, options
) -> tuple[Report | None, str]:
    try:
        report = emulate(function, args, mode=mode, seed=seed, **options)
    except TileError as error:
        return None, str(error)
    for output, want in reference.items():
        error = relative_error(args[output], want)
        if not error <= tolerance:
            return report, f"{output} is off by {error:.2e} (relative), {tolerance:.0e} is allowed"
    return report, ""
