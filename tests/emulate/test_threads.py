"""Per-thread stages: the same matmul in lockstep and running free, and the defects that only free running
shows.
"""

import numpy as np
import pytest

from tests.emulate.kernels import simt_matmul
from tilelab.emulate import emulate
from tilelab.errors import TileError

EVERY = [(mode, seed) for mode in ("late", "early") for seed in range(3)]


def product(function, **how):
    random = np.random.default_rng(0)
    a = random.standard_normal((64, 128)).astype(np.float16)
    b = random.standard_normal((128, 64)).astype(np.float16)
    c = np.full((64, 64), np.nan, np.float16)
    report = emulate(function, [a, b, c], **how)
    want = a.astype(np.float64) @ b.astype(np.float64)
    return np.linalg.norm(c - want) / np.linalg.norm(want), report


def refusal(function, **how) -> TileError:
    with pytest.raises(TileError) as caught:
        product(function, **how)
    return caught.value


def test_threaded_matmul_gives_the_product():
    error, report = product(simt_matmul("threaded"))
    assert error < 1e-3
    assert report.issued["mma.m16n8k16.f32.f16"] == 64


def test_threaded_needs_no_wait_and_no_barrier():
    error, _ = product(simt_matmul("threaded", wait=None, barrier=False))
    assert error < 1e-3


@pytest.mark.parametrize(("mode", "seed"), EVERY)
def test_synced_matmul_runs_clean_whenever_copies_land(mode, seed):
    error, _ = product(simt_matmul("synced"), mode=mode, seed=seed)
    assert error < 1e-3


def test_a_synced_block_takes_less_than_half_a_second():
    function = simt_matmul("synced")
    product(function)
    assert min(product(function)[1].seconds for _ in range(3)) < 0.5


@pytest.mark.parametrize("wait", [None, 1])
def test_a_read_before_the_wait_finds_nothing_written(wait):
    error = refusal(simt_matmul("synced", wait=wait))
    assert error.code == "TL602"
    assert "cp.async.16 is still under way" in error.message
    assert len(error.places) == 2


def test_early_landing_hides_a_missing_wait():
    assert product(simt_matmul("synced", wait=None), mode="early")[0] < 1e-3


@pytest.mark.parametrize("mode", ["late", "early"])
def test_a_missing_barrier_is_a_race_that_names_both_accesses(mode):
    error = refusal(simt_matmul("synced", barrier=False), mode=mode)
    assert error.code == "TL603"
    assert "thread 1 reads A_shared[0, 1, 0], which thread 4 wrote" in error.message
    assert "ko = 0" in error.message
    assert len(error.places) == 2


def test_buffers_planned_onto_each_other_are_found():
    assert refusal(simt_matmul("synced", b_offset=4096)).code in ("TL602", "TL603")
    assert product(simt_matmul("synced", b_offset=8192))[0] < 1e-3


def test_unaligned_rows_of_ldmatrix_are_refused():
    error = refusal(simt_matmul("synced", b_offset=8192 + 8))
    assert error.code == "TL601"
    assert "16 aligned, contiguous bytes" in error.message
