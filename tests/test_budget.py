"""What the compiler may cost: seconds to import and to compile, lines to read.

The figures hold for wall time on an idle machine. Tests share two cores with others, so they count the time
that the process itself was at work, and take the best of several runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

import tilelab
import tilelab.language as T
from tests.kernels.matmul import matmul
from tilelab.driver.lowering import lower, print_code
from tilelab.settings import settings
from tilelab.targets import parse_target
from tilelab.trace.code import CodeText

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("cuda:sm_80", "cuda:sm_90a")
ARRAYS = (T.Tensor((512, 768), "float16"), T.Tensor((768, 1024), "float16"))
FILE_LINES = 350
# Tables: one row of data after another, with a comment or a source for each.
TABLES = ("hardware/", "emulate/gfx942/salu_table.py", "emulate/gfx942/valu_table.py")
# The compiler proper, without the emulators, which a reader of the compiler need not know.
CORE_LINES = 30_000

IMPORT = """
from time import process_time as clock
begun = clock()
import tilelab, tilelab.language
print(clock() - begun)
"""
# The first compile of a fresh process; imports, NVRTC's library among them, are done before the clock starts.
CUBIN = """
import sys
from time import process_time as clock
from tests.test_budget import source
from tilelab.runtime import nvrtc
nvrtc.nvrtc_version()
code = source(sys.argv[1])
begun = clock()
nvrtc.build_cuda(code.text, sys.argv[1].partition(":")[2])
print(clock() - begun)
"""


def source(target: str) -> CodeText:
    """The matmul of the first notebook as CUDA C++."""
    parsed = tilelab.jit(matmul).parse(*ARRAYS)
    chosen = parse_target(target)
    return print_code(lower(parsed, chosen)[0], chosen)


def seconds_of(program: str, *words: str) -> float:
    """What a fresh Python prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TILELAB_VERIFY": "0"}
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def best(runs: int, limit: float, measure: Callable[[], float]) -> float:
    """The shortest of some runs; the first within the limit is the last."""
    times: list[float] = []
    while len(times) < runs and min(times, default=limit + 1) > limit:
        times.append(measure())
    return min(times)


def test_importing_takes_at_most_half_a_second() -> None:
    assert best(3, 0.5, lambda: seconds_of(IMPORT)) <= 0.5


@pytest.mark.parametrize("target", TARGETS)
def test_the_matmul_becomes_source_within_150_ms_once_warm(target: str) -> None:
    def once() -> float:
        begun = process_time()
        source(target)
        return process_time() - begun

    with settings(verify=False):
        once()
        assert best(5, 0.150, once) <= 0.150


@pytest.mark.parametrize("target", TARGETS)
def test_the_matmul_becomes_a_cubin_within_a_second(target: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    assert best(3, 1.0, lambda: seconds_of(CUBIN, target)) <= 1.0


def lines_of_files() -> dict[str, int]:
    files = sorted((ROOT / "tilelab").rglob("*.py"))
    names = {path.relative_to(ROOT / "tilelab").as_posix(): path for path in files}
    return {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in names.items()}


def test_no_file_is_too_long_to_read_at_once() -> None:
    assert {n: k for n, k in lines_of_files().items() if k > FILE_LINES and not n.startswith(TABLES)} == {}


def test_the_compiler_stays_small() -> None:
    core = {name: lines for name, lines in lines_of_files().items() if not name.startswith("emulate/")}
    assert sum(core.values()) <= CORE_LINES
