"""TMA, mbarriers and wgmma, free running: the right kernel is clean in every mode, and each defect is
named.
"""

import numpy as np
import pytest

from tests.emulate.kernels import hopper_matmul
from tilelab.emulate import emulate
from tilelab.errors import TileError

ARRIVE = "T.mbarrier_arrive(empty[ko % 2:ko % 2 + 1])"
DRAIN = 'T.wait_group(kind="wgmma", pending=0)'
FENCE = 'T.fence(kind="proxy.async")'
MEET = "T.barrier(id=1, threads=128)"

DEFECTS = {
    "wrong phase of the consumer": ({"wait_phase": "(ko // 2 + 1) % 2"}, {"TL602"}),
    "wrong phase of the producer": ({"acquire_phase": "ko // 2 % 2"}, {"TL604"}),
    "producer never waits": ({"acquire_phase": "1"}, {"TL304", "TL603", "TL604"}),
    "release before reading": ({"early_release": ARRIVE, "release": ""}, {"TL603"}),
    "release before wgmma has read": ({"wgmma_wait": ARRIVE, "release": DRAIN}, {"TL603"}),
    "no release": ({"release": ""}, {"TL604"}),
    "no wait for wgmma": ({"wgmma_wait": ""}, {"TL602", "TL603"}),
    "too many bytes expected": ({"bytes": "8192"}, {"TL604"}),
    "too few bytes expected": ({"bytes": "2048"}, {"TL602", "TL603"}),
    "no wgmma fence": ({"wgmma_fence": ""}, {"TL605"}),
    "no proxy fence": ({"fence": ""}, {"TL605"}),
    "proxy fence after the barrier": ({"fence": MEET, "epilogue_barrier": FENCE}, {"TL605"}),
    "no barrier before the store": ({"epilogue_barrier": ""}, {"TL603"}),
}


def run(function, rows: int = 64, **how):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    c = np.full((rows, 64), np.nan, np.float16)
    report = emulate(function, [a, b, c], **how)
    want = (a.astype(np.float64) @ b.astype(np.float64))[:rows]
    return np.linalg.norm(c - want) / np.linalg.norm(want), report


@pytest.mark.parametrize("mode", ["late", "early"])
@pytest.mark.parametrize("seed", range(4))
def test_the_ring_runs_clean_in_every_interleaving(mode, seed):
    error, report = run(hopper_matmul(), mode=mode, seed=seed)
    assert error < 1e-3
    assert report.issued == {
        "tma.load.2d.64x16.float16.s32": 4, "tma.load.2d.16x64.float16.s128": 4,
        "wgmma.m64n64k16.f32.f16.ss.k.mn": 4, "tma.store.2d.64x64.float16.s128": 1,
    }  # fmt: skip


def test_lockstep_gives_the_same_values():
    assert run(hopper_matmul("threaded"))[0] < 1e-3


def test_tma_stores_clip_what_lies_outside():
    assert run(hopper_matmul(rows="50"), rows=50)[0] < 1e-3


@pytest.mark.parametrize("mode", ["late", "early"])
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_caught(defect, mode):
    planted, codes = DEFECTS[defect]
    with pytest.raises(TileError) as caught:
        run(hopper_matmul(**planted), mode=mode)
    assert caught.value.code in codes
    assert caught.value.places


def test_a_store_still_reading_when_the_block_ends_is_caught():
    with pytest.raises(TileError, match=r"the block ends while tma\.store") as caught:
        run(hopper_matmul(bulk_wait=""))
    assert caught.value.code == "TL603"


def test_a_deadlock_says_who_waits_for_what():
    with pytest.raises(TileError) as caught:
        run(hopper_matmul(release=""))
    message = caught.value.message
    assert "producer waits for empty[0], parity 0" in message
    assert "consumer waits for full[0], parity 1" in message
    assert "128 of 128 arrivals" in message


def test_races_can_be_collected_instead_of_raised():
    _, report = run(hopper_matmul(epilogue_barrier=""), mode="early", collect_races=True)
    (race,) = report.races
    assert (race.buffer, race.first.kind, race.second.kind) == ("C_shared", "write", "read")
    assert race.first.thread == "thread 129"
