"""Every test kernel through the whole pipeline: clean cubins, right values, lines with their sources."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import CASES
from tilelab.codegen.cuda import cuda_text
from tilelab.codegen.hip import hip_text
from tilelab.driver.lowering import lower
from tilelab.emulate.gfx942 import run
from tilelab.ir import nodes as n
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import op_of
from tilelab.runtime.arguments import numpy_dtype
from tilelab.runtime.hip_build import build_hip
from tilelab.runtime.nvrtc import build_cuda
from tilelab.targets import parse_target

SYNCHRONISATION = {"barrier", "commit_group", "wait_group", "fence"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kernel_becomes_a_clean_cubin(case):
    f, _ = lower(case.build(), parse_target("cuda:sm_80"))
    binary = build_cuda(cuda_text(f).text, "sm_80")
    assert binary.resources[0].is_clean, binary.log
    assert binary.seconds < 10


@pytest.mark.parametrize("case", CASES, ids=str)
def test_mi300x_code_gives_the_values_of_the_reference(case):
    parsed = case.build()
    f, _ = lower(parsed, parse_target("hip:gfx942"))
    code = hip_text(f)
    binary = build_hip(code.text)
    given = iter(case.inputs())
    arguments = [
        np.zeros(tuple(int(e) for e in p.shape), numpy_dtype(p.dtype))
        if p.output
        else np.ascontiguousarray(next(given)).copy()
        for p in parsed.parameters
    ]
    # The emulator takes NumPy's own dtypes: bfloat16 goes in as its bits, in the same memory.
    passed = [arguments[p.index] for p in code.parameters if p.index is not None]
    passed = [a.view(np.uint16) if a.dtype.name == "bfloat16" else a for a in passed]
    run(binary.code_object, code.entry, tuple(int(e) for e in code.grid), code.block, passed)
    assert case.error(tuple(arguments[i] for i in parsed.returns)) <= case.tolerance


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_statements_that_do_work_carry_their_source(case, target):
    f, _ = lower(case.build(), parse_target(target))
    work = [
        s
        for s in each_statement(f.body)
        if isinstance(s, n.Store | n.Bind | n.Evaluate)
        or (isinstance(s, n.TileCall) and op_of(s).name not in SYNCHRONISATION)
    ]
    assert work
    assert sum(s.span is not None for s in work) >= 0.95 * len(work)
    code = (cuda_text if target.startswith("cuda") else hip_text)(f)
    begin = next(
        i
        for i, line in enumerate(code.lines)
        if "__launch_bounds__" in line.text or "amdgpu_flat" in line.text
    )
    body = [line for line in code.lines[begin:] if line.text.strip().endswith(";")]
    known = [line for line in body if line.source is not None]
    assert len(known) >= 0.95 * (len(body) - _scaffolding(body))


def _scaffolding(body) -> int:
    """Lines of the frame and of synchronisation, which stand for no statement of the user's."""
    frame = ("const int b", "const int t", "__builtin_assume", "extern __shared__", "static __attribute__")
    waits = ("__syncthreads", "cp_async_wait", "cp_async_commit", "block_barrier", "__syncwarp")
    words = (*frame, *waits)
    return sum(line.source is None and line.text.strip().startswith(words) for line in body)
