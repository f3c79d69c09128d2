"""`tilelab.analyze` emulates a kernel and lists what it found; `pipeline` and `until` choose the IR."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tilelab.errors import TileError


@tilelab.jit
def reverse(A, block=64):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(N // block, threads=64) as bx:
        tile = T.alloc_shared((block,), A.dtype)
        for i in T.Parallel(block):
            tile[i] = A[bx * block + i]
        for i in T.Parallel(block):
            C[bx * block + i] = tile[block - 1 - i]
    return C


A = np.arange(128, dtype=np.float32)
RIGHT = np.concatenate([A[63::-1], A[:63:-1]])
BROKEN = tilelab.pipeline("cuda:sm_80", without="insert_barriers")


def test_a_right_kernel_has_its_values_and_no_race() -> None:
    found = tilelab.analyze(reverse, A, target="cuda:sm_80")
    np.testing.assert_array_equal(found.outputs[0], RIGHT)
    assert found.races == ()
    assert (found.step, found.stage, found.blocks) == (BROKEN[-1].name, "device", 2)
    assert str(found).endswith("; shared memory: no race; global memory is not checked yet")


def test_without_its_barrier_the_values_are_right_and_the_race_is_listed() -> None:
    found = tilelab.analyze(reverse, A, target="cuda:sm_80", passes=BROKEN)
    np.testing.assert_array_equal(found.outputs[0], RIGHT)
    race = found.races[0]
    lines = {side.place.line for side in (race.first, race.second) if side.place}
    first = reverse.parse(A).source.first_line
    assert lines == {first + 7, first + 9}
    assert race.buffer == "tile"
    text = str(found)
    assert "and nothing orders the two" in text
    assert "C[bx * block + i] = tile[block - 1 - i]" in text


def test_before_threads_run_free_nothing_can_race() -> None:
    found = tilelab.analyze(reverse, A, target="cuda:sm_80", until="lower_parallel")
    np.testing.assert_array_equal(found.outputs[0], RIGHT)
    assert (found.step, found.races) == ("lower_parallel", ())


def test_arguments_are_left_as_they_are_and_strides_are_kept() -> None:
    wide = np.arange(256, dtype=np.float32)
    kernel = reverse.compile(wide[::2], target="cuda:sm_80")
    found = tilelab.analyze(kernel, wide[::2])
    np.testing.assert_array_equal(found.outputs[0][:64], wide[::2][63::-1])
    np.testing.assert_array_equal(wide, np.arange(256))


def test_a_trace_stops_where_it_is_told() -> None:
    trace = tilelab.trace(reverse, A, target="cuda:sm_80", until="plan_layouts")
    assert trace.steps[-1].name == "plan_layouts"
    assert trace.code is None
    shorter = tilelab.trace(reverse, A, target="cuda:sm_80", passes=BROKEN)
    assert "insert_barriers" not in [step.name for step in shorter.steps]


def test_pass_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(TileError, match="TL405"):
        tilelab.trace(reverse, A, target="cuda:sm_80", until="plan_layout")
    with pytest.raises(TileError, match="TL405"):
        tilelab.pipeline("cuda", without="vectorise")


def test_a_factory_is_not_a_kernel() -> None:
    @tilelab.jit
    def factory(N):
        @T.prim_func
        def kernel(X: T.Tensor((N,), "float32")):
            with T.Kernel(1, threads=32):
                X[0] = 1.0

        return kernel

    with pytest.raises(TileError, match="call it first"):
        tilelab.analyze(factory, 32)
    x = np.zeros(32, np.float32)
    assert tilelab.analyze(factory(32), x).races == ()
