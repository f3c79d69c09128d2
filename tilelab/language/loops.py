"""Loops that become loops of the IR: serial, Pipelined, Parallel, unroll, vectorized and grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import TileError
from tilelab.language.public import note, public
from tilelab.language.values import Scalar, is_symbolic, simplified

__all__ = [
    "LoopSpec", "Parallel", "Pipelined", "Serial", "Unroll", "Vectorized", "grid", "parallel", "serial",
    "unroll", "vectorized",
]  # fmt: skip


@dataclass(frozen=True)
class LoopSpec:
    """A nest of loops to be made: its kind, and (start, extent, step) of each loop, outermost first."""

    kind: str
    ranges: tuple[tuple[Any, Any, Any], ...]
    annotations: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        raise TileError(
            "TL101",
            f"T.{self.kind} is gone through by Python itself",
            help="T loops stand in `for` statements of the kernel or of a T.macro",
        )


def one_range(start: Any, stop: Any, step: Any, what: str) -> tuple[Any, Any, Any]:
    """(start, extent, step) of a loop given like Python's range."""
    first, last = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    for n in (first, last, step):
        if isinstance(n, Scalar):
            if n.dtype.is_float:
                raise TileError("TL103", f"{what}: {n} is a {n.dtype} and not a whole number")
        elif isinstance(n, bool) or not isinstance(n, int):
            raise TileError(
                "TL103", f"{what}: {n!r} is not a whole number", help="use T.ceildiv or // for divisions"
            )
    if is_symbolic(step) or step == 0:
        raise TileError("TL104", f"{what}: the step {step} must be a number that is known and not zero")
    span = simplified(last - first)
    if not is_symbolic(span) and not is_symbolic(first) and not is_symbolic(last):
        return first, len(range(first, last, step)), step
    if step == 1:
        return first, span, 1
    if step < 0:
        raise TileError(
            "TL104",
            f"{what}: a loop that counts down needs known ends",
            help="count up and index with n - 1 - i",
        )
    return first, (span + (step - 1)) // step, step


def _notes(annotations: Any) -> dict[str, Any]:
    if annotations:
        note(f"annotations {sorted(annotations)} of a loop")
    return {}


@public()
def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> LoopSpec:
    """A loop whose steps follow one another; arguments as those of Python's range."""
    return LoopSpec("serial", (one_range(start, stop, step, "T.serial"),), _notes(annotations))


Serial = serial


@public()
def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: Any = None,
    annotations: Any = None,
) -> LoopSpec:
    """A loop that is unrolled in the generated code."""
    if unroll_factor is not None:
        note("T.unroll(unroll_factor=…)")
    if explicit:
        note("T.unroll(explicit=True)")
    return LoopSpec("unroll", (one_range(start, stop, step, "T.unroll"),), _notes(annotations))


Unroll = unroll


@public()
def vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> LoopSpec:
    """A loop whose steps are lanes of a vector."""
    return LoopSpec("vectorized", (one_range(start, stop, None, "T.vectorized"),), _notes(annotations))


Vectorized = vectorized


@public()
def grid(*extents: Any) -> LoopSpec:
    """A nest of serial loops from zero."""
    return LoopSpec("serial", tuple(one_range(n, None, None, "T.grid") for n in extents))


@public(ignored=("loop_layout", "prefer_async"))
def Parallel(
    *extents: Any,
    coalesced_width: Any = None,
    loop_layout: Any = None,
    prefer_async: Any = None,
    annotations: Any = None,
) -> LoopSpec:
    """A nest of loops from zero whose iterations are independent; the threads of the block share them."""
    if not extents:
        raise TileError("TL103", "T.Parallel has no extents", help="T.Parallel(n) or T.Parallel(m, n)")
    kept = {} if coalesced_width is None else {"tl.coalesced_width": int(coalesced_width)}
    return LoopSpec(
        "parallel", tuple(one_range(n, None, None, "T.Parallel") for n in extents), kept | _notes(annotations)
    )


@public()
def parallel(start: Any, stop: Any = None, *, annotations: Any = None) -> LoopSpec:
    """A single parallel loop; T.Parallel makes nests."""
    return LoopSpec("parallel", (one_range(start, stop, None, "T.parallel"),), _notes(annotations))


@public()
def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: int = 0,
    order: Any = None,
    stage: Any = None,
    annotations: Any = None,
) -> LoopSpec:
    """A serial loop whose copies run `num_stages` - 1 steps ahead of the work on them."""
    if (
        is_symbolic(num_stages)
        or isinstance(num_stages, bool)
        or not isinstance(num_stages, int)
        or num_stages < 0
    ):
        raise TileError("TL303", f"num_stages={num_stages!r} must be a whole number, zero or more")
    kept: dict[str, Any] = {"tl.num_stages": num_stages} if num_stages else {}
    if order is not None or stage is not None:
        note("T.Pipelined(order=…, stage=…): the schedule is planned instead")
    return LoopSpec("pipelined", (one_range(start, stop, None, "T.Pipelined"),), kept | _notes(annotations))
