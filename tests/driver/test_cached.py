"""What is kept on disk: a second process builds nothing, and a damaged entry is built again and recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tilelab
from tests.driver.kernels import add, jit, lazy_add, matmul
from tilelab.driver.building import cache_key
from tilelab.driver.lowering import pipeline_of
from tilelab.errors import TileError
from tilelab.settings import settings
from tilelab.targets import parse_target

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("llvm", "cuda:sm_80", "hip:gfx942")
ONES = np.ones(40, np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with settings(cache=str(tmp_path / "kept")):
        yield tmp_path / "kept"


def fresh(target, **options):
    """The kernel of a jit function that has compiled nothing yet."""
    return jit(add, target=target, **options).compile(ONES, ONES)


@pytest.mark.parametrize("target", TARGETS)
def test_a_second_compile_comes_from_the_cache_and_gives_the_same(folder, target):
    first, second = fresh(target), fresh(target)
    assert not first.variant().from_cache
    assert second.variant().from_cache
    np.testing.assert_array_equal(second(ONES, ONES), 2 * ONES)
    assert second.get_kernel_source() == first.get_kernel_source()
    assert second.resource_usage == first.resource_usage
    assert second.variant().binary == first.variant().binary


@pytest.mark.parametrize("target", TARGETS)
def test_a_cached_kernel_still_has_its_trace(folder, target):
    fresh(target)
    second = fresh(target)
    assert second.variant().trace is None
    steps = second.trace.steps
    assert steps[0].name == "parse"
    assert steps[-1].stage == "device"
    assert second.trace.code.lines


def test_a_damaged_entry_is_built_again_and_recorded(folder):
    fresh("llvm")
    (path,) = folder.rglob("*.tile")
    held = bytearray(path.read_bytes())
    held[-1] ^= 1
    path.write_bytes(held)
    second = fresh("llvm")
    assert not second.variant().from_cache
    assert any("damaged" in n.text for n in second.trace.steps[0].notes)
    np.testing.assert_array_equal(second(ONES, ONES), 2 * ONES)
    assert fresh("llvm").variant().from_cache


def test_an_entry_that_is_whole_but_not_ours_is_built_again(folder):
    from tilelab.runtime import cache

    kernel = fresh("llvm")
    cache.store(kernel.variant().key, {"meta": b"{}", "other": b""})
    again = fresh("llvm")
    assert not again.variant().from_cache
    np.testing.assert_array_equal(again(ONES, ONES), 2 * ONES)


def test_a_refused_kernel_leaves_nothing(folder):
    wrong = jit(matmul)
    a = np.ones((32, 32), np.float16)
    with pytest.raises(TileError):
        wrong.compile(a, a, block_M=-32)
    assert not folder.exists() or not [p for p in folder.rglob("*") if p.is_file()]


def test_keys_follow_source_target_passes_alignment_and_settings():
    parsed = lazy_add(8)
    llvm, cuda = parse_target("llvm"), parse_target("cuda:sm_80")
    passes = pipeline_of(llvm)
    keys = [
        cache_key(parsed, llvm, passes, 16),
        cache_key(lazy_add(9), llvm, passes, 16),
        cache_key(parsed, cuda, passes, 16),
        cache_key(parsed, llvm, passes[:-1], 16),
        cache_key(parsed, llvm, passes, 4),
    ]
    with settings(line_info=True):
        keys.append(cache_key(parsed, llvm, passes, 16))
    with settings(disable_pipelining=True):
        gpu = pipeline_of(cuda)
        assert cache_key(parsed, cuda, gpu, 16) != keys[2]
    assert len(set(keys)) == len(keys)
    assert cache_key(lazy_add(8), llvm, passes, 16) == keys[0]


def test_with_the_cache_off_nothing_is_written(tmp_path):
    with settings(cache="off"):
        assert not fresh("llvm").variant().from_cache
        assert not fresh("llvm").variant().from_cache
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_traces_are_written_where_the_setting_says(tmp_path):
    with settings(trace=str(tmp_path / "traces"), cache="off"):
        fresh("llvm")
    held = json.loads((tmp_path / "traces" / "add-llvm.json").read_text())
    assert held["schema"] == "tilelab.trace.v1"


def test_a_pipeline_that_stops_early_cannot_be_run():
    with settings(until="plan_layouts_cpu"), pytest.raises(TileError, match="TILELAB_UNTIL"):
        fresh("llvm")


PROCESS = """
import numpy as np, sys
from tests.driver.kernels import add, jit
ones = np.ones(40, np.float32)
kernel = jit(add).compile(ones, ones)
assert (kernel(ones, ones) == 2).all()
print("cached" if kernel.variant().from_cache else "built")
"""


def in_a_process(folder) -> str:
    environment = {**os.environ, "TILELAB_CACHE": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_two_processes_that_compile_the_same_leave_one_good_entry(folder):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(in_a_process, (folder, folder)))
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert len(files) == 1
    assert in_a_process(folder) == "cached"


def test_a_pipeline_of_ones_own_is_used_and_traced():
    from tilelab.pipelines.run import without

    shorter = without(pipeline_of(parse_target("llvm")), "lower_print_cpu")
    kernel = fresh("llvm", passes=shorter)
    assert "lower_print_cpu" not in [s.name for s in kernel.trace.steps]
    np.testing.assert_array_equal(kernel(ONES, ONES), 2 * ONES)
    assert isinstance(kernel, tilelab.Kernel)
