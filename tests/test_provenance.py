"""Every line of the final IR knows where it comes from: the user's lines, or the pass that made it."""

from __future__ import annotations

import pytest

from tests.kernels import CASES
from tests.test_meaning import PIPELINES
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, AttrStmt, Bind, Evaluate, For, IfThenElse, Store, TileCall, While
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import op_of
from tilelab.pipelines.run import run, start_trace

RUNS = [pytest.param(c, t, id=f"{c.name}-{t}") for c in CASES for t in c.targets]
SYNCHRONISATION = ("barrier", "commit_group", "wait_group", "fence", "mbarrier_init", "mbarrier_wait")
KINDS = (AllocBuffer, Bind, Evaluate, For, IfThenElse, Store, TileCall, While)


def trace_of(case, target):
    parsed = case.build()
    f = b.with_attrs(parsed.func, target=target)
    trace = start_trace(f, parsed.source)
    return run(f, PIPELINES[target], trace), trace, parsed


@pytest.mark.parametrize(("case", "target"), RUNS)
def test_statements_carry_the_users_lines(case, target) -> None:
    f, _, parsed = trace_of(case, target)
    first = parsed.source.first_line
    last = first + len(parsed.source.lines)
    wanted = found = 0
    for statement in each_statement(f.body):
        if not isinstance(statement, KINDS) or isinstance(statement, AttrStmt):
            continue
        if isinstance(statement, TileCall) and op_of(statement).name in SYNCHRONISATION:
            continue
        wanted += 1
        where = place_of(statement.span)
        if where is not None:
            assert where.file == parsed.source.file
            assert first <= where.line < last, f"{where} is outside the kernel"
            found += 1
    assert found >= 0.95 * wanted, f"{found} of {wanted} statements carry a source line"


@pytest.mark.parametrize("target", list(PIPELINES))
def test_every_line_names_the_pass_that_made_it(target) -> None:
    _, trace, _ = trace_of(CASES[0], target)
    names = {s.name for s in trace.steps}
    for step in trace.payload().steps:
        for line in step.lines:
            assert line.made_by in names


@pytest.mark.parametrize(("case", "target"), RUNS)
def test_every_step_of_every_kernel_can_be_shown(case, target) -> None:
    _, trace, _ = trace_of(case, target)
    for step in trace.payload().steps:
        body = [line for line in step.lines if line.source is not None]
        assert body, f"{step.name} shows no line of the kernel"


def test_a_barrier_is_made_by_its_pass_and_says_why() -> None:
    _, trace, _ = trace_of(CASES[0], "cuda:sm_80")
    step = next(s for s in trace.payload().steps if s.name == "insert_barriers")
    barriers = [line for line in step.lines if "T.barrier(" in line.text]
    assert barriers
    assert all(line.made_by == "insert_barriers" and "why=" in line.text for line in barriers)
    assert any("barrier" in n.text for n in step.notes)


def test_lines_that_no_pass_touches_keep_their_maker() -> None:
    _, trace, _ = trace_of(CASES[0], "cuda:sm_80")
    payload = trace.payload()
    parsed = {line.text.strip() for line in payload.steps[0].lines}
    for step in payload.steps:
        for line in step.lines:
            if line.text.strip() in parsed and line.source is not None:
                assert line.made_by == "parse", f"{step.name}: {line}"


def test_unchanged_and_skipped_steps_say_why() -> None:
    for target in PIPELINES:
        _, trace, _ = trace_of(CASES[0], target)
        for step in trace.payload().steps:
            if step.status in ("unchanged", "skipped"):
                assert len(step.reason) > 8, f"{step.name} is {step.status} without a reason"
