"""Importing tilelab is cheap and loads neither TVM nor torch; kernels run on NumPy arrays without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilelab
from tilelab.errors import TileError

ROOT = Path(__file__).resolve().parents[2]


def python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_neither_tvm_nor_torch():
    said = python(
        "import tilelab as tilelang, tilelab.language as T, sys\n"
        "tilelang.settings, T.float16, T.Kernel\n"
        "print(*[m for m in ('tvm', 'torch', 'numpy', 'IPython') if m in sys.modules])"
    )
    assert "tvm" not in said
    assert "torch" not in said


def test_kernels_run_on_numpy_arrays_where_torch_is_not_installed():
    said = python(
        """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'")

sys.meta_path.insert(0, NoTorch())
import numpy as np
import tilelab
from tests.driver.kernels import add, jit, lazy_add, matmul
a = np.arange(40, dtype=np.float32)
for target in ("llvm", "cuda:sm_80", "hip:gfx942"):
    assert (jit(add, target=target)(a, a) == 2 * a).all(), target
half = np.ones((5, 7), np.float16)
assert (jit(matmul)(half, half.T.copy()) == 7).all()
assert jit(lazy_add, out_idx=-1)(8).get_profiler().do_bench(warmup=1, rep=1) > 0
tilelab.testing.set_random_seed(0)
tilelab.testing.assert_close(a, a)
print("torch" in sys.modules)
"""
    )
    assert said.strip() == "False"


def test_every_public_name_is_there():
    for name in tilelab.__all__:
        assert getattr(tilelab, name) is not None
        assert name in dir(tilelab)


def test_names_that_are_not_in_this_version_say_so():
    with pytest.raises(TileError, match=r"tilelab\.autotune is not in this version"):
        _ = tilelab.autotune
    with pytest.raises(AttributeError, match="did you mean compile"):
        _ = tilelab.compil


def test_packages_that_are_also_functions_are_both():
    from tilelab.trace.record import Trace

    assert tilelab.trace.record.Trace is Trace
    assert callable(tilelab.trace)
    with tilelab.settings(verify=False):
        assert tilelab.settings.get("verify") is False


def test_ceiling_division():
    assert [tilelab.cdiv(a, 4) for a in (0, 1, 4, 5)] == [0, 1, 1, 2]


NOTEBOOK = """
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_cell('''
import numpy as np
import tilelab as tilelang
import tilelab.language as T
''').raise_error()
kept = []
shell.display_pub.publish = lambda *a, **k: None
shell.displayhook.write_format_data = lambda data, md=None: kept.append(data)
shell.user_ns["source"] = None
import tests.driver.kernels as kernels
shell.user_ns["add"] = kernels.jit(kernels.add)
done = shell.run_cell("tilelang.trace(add, np.ones(8, np.float32), np.ones(8, np.float32))")
done.raise_error()
print(sorted(kept[-1]))
print("tilelab" in shell.magics_manager.magics["cell"])
"""


def test_a_cell_that_ends_in_a_trace_shows_it_without_any_other_line():
    pytest.importorskip("IPython")
    from importlib.metadata import entry_points

    if not entry_points(group="tilelab.display"):
        pytest.skip("tilelab is on the path but not installed, so its viewers are not announced")
    said = python(NOTEBOOK)
    assert "application/vnd.tilelab.trace.v1+json" in said
    assert "text/html" in said
    assert said.strip().endswith("True")
