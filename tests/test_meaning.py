"""Every pass keeps the meaning of every test kernel on every target: the first that changes an answer is
named.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.kernels import CASES, KernelCase
from tilelab.emulate.compare import compare_steps
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.hip import HIP
from tilelab.pipelines.llvm import LLVM
from tilelab.pipelines.run import run, start_trace
from tilelab.settings import settings

PIPELINES = {"llvm": LLVM, "cuda:sm_80": CUDA, "hip:gfx942": HIP}
RUNS = [pytest.param(c, t, id=f"{c.name}-{t}") for c in CASES for t in c.targets]


@cache
def _steps(name: str, target: str):
    case = next(c for c in CASES if c.name == name)
    parsed = case.build()
    f = b.with_attrs(parsed.func, target=target)
    trace = start_trace(f, parsed.source)
    with settings(verify=True):
        run(f, PIPELINES[target], trace)
    return [(s.name, s.function) for s in trace.steps]


def steps_of(case: KernelCase, target: str):
    """The steps of one compile: name and function after each."""
    return _steps(case.name, target)


@pytest.mark.parametrize(("case", "target"), RUNS)
def test_every_pass_keeps_the_meaning(case: KernelCase, target: str) -> None:
    steps = steps_of(case, target)
    params = [str(p.name) for p in steps[0][1].params]
    inputs = case.inputs()
    outputs = returned(case)
    expected = case.expected()
    made = [n for i, n in enumerate(params) if i >= len(inputs)]

    def make_args() -> dict[str, np.ndarray]:
        args = dict(zip(params, case.inputs(), strict=False))
        shapes = {params[i]: want.shape for i, want in zip(outputs, expected, strict=True)}
        dtypes = {str(p.name): str(p.ty.dtype) for p in steps[0][1].params}
        for name in made:
            args[name] = poisoned(shapes[name], dtypes[name])
        return args

    reference = {params[i]: want for i, want in zip(outputs, expected, strict=True)}
    change = compare_steps(steps, make_args, reference, case.tolerance)
    assert change is None, str(change)


@cache
def _returned(name: str) -> tuple[int, ...]:
    return next(c for c in CASES if c.name == name).build().returns


def returned(case: KernelCase) -> tuple[int, ...]:
    """The parameters that the kernel returns, in the order of its return statement."""
    return _returned(case.name)


def poisoned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An output array full of values that no kernel should leave behind."""
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    return np.full(shape, 77 if kind.kind in "iub" else np.nan, kind)


def test_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 12
    for target in PIPELINES:
        assert sum(target in c.targets for c in CASES) >= 12


def test_a_wrong_pass_is_named() -> None:
    case = CASES[0]
    steps = steps_of(case, "cuda:sm_80")
    from tilelab.passes.insert_barriers import insert_barriers

    names = [n for n, _ in steps]
    before = steps[names.index("insert_barriers") - 1][1]
    unsynced = b.with_stage(before, "synced")
    broken = [*steps[: names.index("insert_barriers")], (insert_barriers.name, unsynced)]
    params = [str(p.name) for p in steps[0][1].params]
    expected = case.expected()

    def make_args() -> dict[str, np.ndarray]:
        args = dict(zip(params, case.inputs(), strict=False))
        args[params[-1]] = np.full(expected[0].shape, np.nan, np.float16)
        return args

    change = compare_steps(broken, make_args, {params[-1]: expected[0]}, case.tolerance)
    assert change is not None
    assert change.step == "insert_barriers"


def test_errors_of_a_pass_name_the_step() -> None:
    case = CASES[0]
    parsed = case.build()
    f = b.with_attrs(parsed.func, target="cuda:sm_80", threads=4096)
    with pytest.raises(TileError) as caught:
        run(f, CUDA, start_trace(f, parsed.source))
    assert caught.value.code == "TL302"
    assert "check_limits" in caught.value.step
