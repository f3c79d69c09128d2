"""Run a pipeline: time each pass, notice whether it changed anything, check stages, and leave a Trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from tilelab import settings
from tilelab.errors import InternalError, TileError
from tilelab.ir.build import stage_of, with_stage
from tilelab.ir.nodes import PrimFunc, same_structure
from tilelab.ir.rewrite import RuleHit, recording
from tilelab.ir.spans import place_of
from tilelab.ir.stages import check_stage
from tilelab.ir.text import last_line, snapshot
from tilelab.passes.base import Pass, PassNote, listening, target_of
from tilelab.trace.record import RecordedStep, Trace
from tilelab.trace.schema import Hit, Line, Note, Source, Status

__all__ = ["lines_of", "run", "start_trace", "without"]

Observer = Callable[[Pass, PrimFunc, PrimFunc], None]


def without(passes: Iterable[Pass], *names: str) -> tuple[Pass, ...]:
    """The pipeline less the named passes: how a notebook shows what a pass is worth."""
    kept = tuple(passes)
    known = {p.name for p in kept}
    for name in names:
        if name not in known:
            raise TileError(
                "TL405", f"the pipeline has no pass {name!r}", help="passes: " + ", ".join(sorted(known))
            )
    return tuple(p for p in kept if p.name not in names)


def lines_of(f: PrimFunc) -> list[Line]:
    """The function's text with the source of each line, as the trace keeps it."""
    return [Line(x.text, x.source, None, x.buffers, x.call_sites) for x in snapshot(f)]


def start_trace(f: PrimFunc, source: Source, *, seconds: float = 0.0, call: str = "") -> Trace:
    """A trace whose first step is the IR as parsed."""
    trace = Trace(str(f.attrs["global_symbol"]), str(target_of(f)), source, call=call)
    trace.steps.append(
        RecordedStep(
            "parse",
            "Read the Python source into tile IR.",
            stage_of(f),
            seconds,
            "changed",
            "",
            lambda: lines_of(f),
            function=f,
        )
    )
    return trace


def run(
    f: PrimFunc,
    passes: Iterable[Pass],
    trace: Trace,
    *,
    until: str | None = None,
    observers: Iterable[Observer] = (),
) -> PrimFunc:
    """The function after the passes; each leaves a step in `trace`.

    `until` names the last pass to run. Raises TileError with the step's name; a fault of ours becomes
    InternalError.
    """
    until = until or settings.get("until")
    verify = settings.get("verify")
    watchers = tuple(observers)
    steps = tuple(passes)
    for index, step in enumerate(steps):
        reason = _skipped(step, f)
        if reason is not None:
            trace.steps.append(
                RecordedStep(step.name, step.doc, stage_of(f), 0.0, "skipped", reason, list, function=f)
            )
        else:
            new = _run_one(step, f, trace, f"pass {step.name} (step {index + 1} of {len(steps)})", verify)
            for watch in watchers:
                watch(step, f, new)
            f = new
        if step.name == until:
            break
    return f


def _skipped(step: Pass, f: PrimFunc) -> str | None:
    if step.off and settings.get(step.off):
        return f"switched off by the setting {step.off}"
    return step.skip(target_of(f)) if step.skip else None


def _run_one(step: Pass, f: PrimFunc, trace: Trace, where: str, verify: bool) -> PrimFunc:
    hits: list[RuleHit] = []
    notes: list[PassNote] = []
    started = time.perf_counter()
    try:
        with recording(hits), listening(notes):
            new = step.run(f)
            if step.gives != stage_of(new):
                new = with_stage(new, step.gives)
            if verify:
                check_stage(new, step.gives, step.name)
    except TileError as error:
        _record(step, trace, f, started, "failed", str(error.message), hits, notes)
        raise error.at_step(where) from None
    except InternalError:
        _record(step, trace, f, started, "failed", "internal error", hits, notes)
        raise
    except Exception as error:
        _record(step, trace, f, started, "failed", f"{type(error).__name__}: {error}", hits, notes)
        raise InternalError(f"{where} failed on {trace.kernel}: {type(error).__name__}: {error}") from error
    changed = new is not f and not same_structure(new, f)
    status: Status = "changed" if changed else "unchanged"
    reason = "" if changed else next((n.text for n in notes if n.kind == "unchanged"), _nothing(step))
    # An unchanged function is kept as it was, so that variables stay the same ones from step to step.
    result = new if changed else f
    _record(step, trace, result, started, status, reason, hits, notes)
    return result


def _nothing(step: Pass) -> str:
    return "checked, nothing to report" if step.name.startswith("check_") else "found nothing to do"


def _record(
    step: Pass,
    trace: Trace,
    f: PrimFunc,
    started: float,
    status: Status,
    reason: str,
    hits: list[RuleHit],
    notes: list[PassNote],
) -> None:
    seconds = time.perf_counter() - started
    kept = tuple(Note(n.kind, n.text, n.line, n.data) for n in notes if n.kind != "unchanged")
    trace.steps.append(
        RecordedStep(
            step.name, step.doc, stage_of(f), seconds, status, reason, lambda: lines_of(f),
            lambda: tuple(_hit(h) for h in hits), kept, f,
        )
    )  # fmt: skip


def _hit(hit: RuleHit) -> Hit:
    where = place_of(hit.span)
    return Hit(hit.rule, where.line if where else None, _short(hit.before), _short(hit.after))


def _short(node: Any) -> str:
    try:
        return last_line(node)
    except Exception as error:
        return f"<{type(node).__name__}: {error}>"
