"""Roles that hand tiles over through channels, at the stages where copies complete at once."""

import numpy as np
import pytest

from tilelab.emulate import emulate
from tilelab.errors import TileError
from tilelab.ir.text import parse_function

# One role loads a ring of two slots, two others each double every tile into their half of the result.
RING = """
@T.prim_func
def ring(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 128), "float32")):
    T.func_attr({{"tl.stage": "{stage}", "tl.threads": 384}})
    with T.launch_thread("threadIdx.x", 384) as tx:
        S = T.alloc_buffer((2, 64), "float32", scope="shared.dyn")
        slots = T.alloc_buffer((2,), "uint64", scope="shared.barrier", annotations={{"tl.transport": "mbarrier"}})
        with T.attr({{"tl.group": "producer:0:128"}}):
            for k in T.serial(8):
                T.acquire(slots[k % 2], {acquire})
                T.copy(A[k, 0:64], S[k % 2, 0:64])
                T.commit(slots[k % 2])
        with T.attr({{"tl.group": "left:128:128"}}):
            for k in T.serial(8):
                T.wait(slots[k % 2], {wait})
                F = T.alloc_buffer((64,), "float32", scope="local.fragment")
                T.copy(S[k % 2, 0:64], F[0:64])
                T.release(slots[k % 2])
                for i in T.parallel(64):
                    B[k, i] = F[i] * T.float32(2)
        with T.attr({{"tl.group": "right:256:128"}}):
            for k in T.serial(8):
                T.wait(slots[k % 2], k // 2 % 2)
                for i in T.parallel(64):
                    B[k, i + 64] = S[k % 2, i] * T.float32(3)
{release}
"""  # noqa: E501


def ring(
    stage: str = "laid_out", acquire="(k // 2 + 1) % 2", wait="k // 2 % 2", release="T.release(slots[k % 2])"
):
    indent = " " * 16 if release else ""
    return parse_function(RING.format(stage=stage, acquire=acquire, wait=wait, release=indent + release))


def run(function, **how):
    a = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    b = np.full((8, 128), np.nan, np.float32)
    report = emulate(function, [a, b], **how)
    return np.array_equal(b, np.concatenate([a * 2, a * 3], axis=1)), report


@pytest.mark.parametrize("seed", range(5))
def test_any_interleaving_gives_the_same_values(seed):
    right, report = run(ring(), seed=seed)
    assert right
    assert report.has_roles


def test_seeds_try_different_interleavings():
    told = "                T.print(k, message={})"
    text = RING.format(
        stage="laid_out",
        acquire="(k // 2 + 1) % 2",
        wait="k // 2 % 2",
        release=" " * 16 + "T.release(slots[k % 2])\n" + told.format('"right"'),
    )
    commit = "T.commit(slots[k % 2])\n"
    f = parse_function(text.replace(commit, commit + told.format('"loaded"') + "\n"))
    assert len({run(f, seed=seed)[1].prints for seed in range(6)}) > 1


def test_a_slot_that_one_consumer_never_releases_stops_the_producer():
    with pytest.raises(TileError) as caught:
        run(ring(release=""))
    assert caught.value.code == "TL604"
    assert "producer waits for slots[0] to be released" in caught.value.message


def test_a_wrong_phase_is_a_deadlock_with_the_waits_of_all_roles():
    with pytest.raises(TileError) as caught:
        run(ring(acquire="k // 2 % 2"))
    assert caught.value.code == "TL604"
    for words in (
        "producer waits for slots[0] to be released",
        "left waits for slots[0] to be committed",
        "right",
    ):
        assert words in caught.value.message
    assert len(caught.value.places) == 3


@pytest.mark.parametrize("seed", range(4))
def test_a_consumer_that_does_not_wait_is_caught(seed):
    with pytest.raises(TileError) as caught:
        run(ring(wait="(k // 2 + 1) % 2"), seed=seed)
    assert caught.value.code in ("TL602", "TL304", "TL604")


def test_one_group_commits_and_waits_ahead_of_itself():
    text = """
@T.prim_func
def ahead(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    T.func_attr({"tl.stage": "laid_out", "tl.threads": 128})
    with T.launch_thread("threadIdx.x", 128) as tx:
        S = T.alloc_buffer((2, 32), "float32", scope="shared.dyn")
        loads = T.alloc_buffer((2,), "uint64", scope="shared.barrier", annotations={"tl.transport": "cp.async"})
        T.copy(A[0, 0:32], S[0, 0:32])
        T.commit(loads[0])
        for k in T.serial(4):
            T.wait(loads[k % 2], k // 2 % 2, pending=0)
            if k + 1 < 4:
                T.copy(A[k + 1, 0:32], S[(k + 1) % 2, 0:32])
            T.commit(loads[(k + 1) % 2])
            T.copy(S[k % 2, 0:32], B[k, 0:32])
"""  # noqa: E501
    a, b = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32), np.zeros((4, 32), np.float32)
    emulate(parse_function(text), [a, b])
    assert np.array_equal(a, b)


def test_device_functions_take_strided_arrays_as_memory():
    text = """
@T.prim_func
def shift(A: T.Buffer((58,), "float32"), n: T.int32, B: T.Buffer((n,), "float32")):
    T.func_attr({"tl.stage": "device", "tl.threads": 32})
    with T.launch_thread("blockIdx.x", 2) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            S = T.alloc_buffer((32,), "float32", scope="shared.dyn", annotations={"tl.offset": 128})
            if tx < n:
                S[tx ^ 1] = A[bx * 16 + tx]
            T.barrier()
            if tx < n:
                B[tx] = B[tx] + S[tx]
"""
    memory = np.arange(60, dtype=np.float32).reshape(6, 10)
    b = np.zeros(8, np.float32)
    # Six rows of eight, ten elements apart: the function sees the 58 elements of memory that they span.
    emulate(parse_function(text), {"A": memory[:, :8], "n": 8, "B": b})
    first = np.arange(8) ^ 1
    assert (b == first + (16 + first)).all()
