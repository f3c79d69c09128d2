"""Channels, roles and proxy fences on small functions: what the passes make of them, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tilelab.emulate import emulate
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, PrimFunc, TileCall
from tilelab.ir.statements import each_statement
from tilelab.ir.text import parse_function
from tilelab.ir.tile_ops import op_of
from tilelab.passes.base import Pass
from tilelab.passes.insert_barriers import insert_barriers
from tilelab.passes.insert_proxy_fences import insert_proxy_fences
from tilelab.passes.insert_register_limits import insert_register_limits
from tilelab.passes.lower_channels import lower_channels
from tilelab.passes.plan_shared_memory import plan_shared_memory
from tilelab.pipelines.cuda import CUDA

# Two warps write a ring of three slots by themselves; two roles each take every tile into a half of the
# result.
RING = """
@T.prim_func
def ring(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 128), "float32")):
    T.func_attr({"tl.stage": "laid_out", "tl.target": "cuda:sm_90a", "tl.threads": 192})
    with T.launch_thread("threadIdx.x", 192) as tx:
        S = T.alloc_buffer((3, 64), "float32", scope="shared.dyn", annotations={"tl.layout": "(3,64):(64,1)"})
        slots = T.alloc_buffer((3,), "uint64", scope="shared.barrier", annotations={"tl.transport": "mbarrier"})
        with T.attr({"tl.group": "producer:0:64"}):
            for k in T.serial(8):
                T.acquire(slots[k % 3], k // 3 % 2 ^ 1)
                T.copy(A[k, 0:64], S[k % 3, 0:64], row="ld.global.b32+st.shared.b32", vector=1, channel="slots")
                T.commit(slots[k % 3])
        with T.attr({"tl.group": "left:64:64"}):
            for k in T.serial(8):
                T.wait(slots[k % 3], k // 3 % 2)
                T.copy(S[k % 3, 0:64], B[k, 0:64], row="ld.shared.b32+st.global.b32", vector=1)
                T.release(slots[k % 3])
        with T.attr({"tl.group": "right:128:64"}):
            for k in T.serial(8):
                T.wait(slots[k % 3], k // 3 % 2)
                T.copy(S[k % 3, 0:64], B[k, 64:128], row="ld.shared.b32+st.global.b32", vector=1)
                T.release(slots[k % 3])
"""  # noqa: E501


def after(f: PrimFunc, *passes: Pass) -> PrimFunc:
    for step in passes:
        f = b.with_stage(step.run(f), step.gives)
    return f


def through(f: PrimFunc, last: str = "simplify_device") -> PrimFunc:
    names = [p.name for p in CUDA]
    return after(f, *CUDA[names.index("lower_parallel") : names.index(last) + 1])


def calls(f: PrimFunc, name: str) -> list[TileCall]:
    return [s for s in each_statement(f.body) if isinstance(s, TileCall) and op_of(s).name == name]


def function(body: str, threads: int = 64, stage: str = "threaded") -> PrimFunc:
    head = f"""
@T.prim_func
def main(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16")):
    T.func_attr({{"tl.stage": "{stage}", "tl.target": "cuda:sm_90a", "tl.threads": {threads}}})
    with T.launch_thread("threadIdx.x", {threads}) as tx:
"""
    return parse_function(head + "\n".join("        " + line for line in body.strip("\n").splitlines()))


@pytest.mark.parametrize("stage", ["lower_channels", "insert_proxy_fences", "simplify_device"])
@pytest.mark.parametrize("seed", range(4))
def test_threads_hand_tiles_over_through_mbarriers(stage: str, seed: int) -> None:
    f = through(parse_function(RING), stage)
    a = np.arange(512, dtype=np.float32).reshape(8, 64)
    c = np.full((8, 128), np.nan, np.float32)
    emulate(f, [a, c], seed=seed)
    np.testing.assert_array_equal(c, np.concatenate([a, a], axis=1))


def test_every_warp_that_writes_or_reads_a_slot_arrives() -> None:
    f = through(parse_function(RING))
    assert [b.as_int(c.args[1]) for c in calls(f, "mbarrier_init")] == [2, 4]
    (setup, *warps) = [b.plain(c.config) for c in calls(f, "barrier")]
    assert "threads" not in setup
    assert [w["threads"] for w in warps] == [32, 32, 32]


def test_a_channels_tiles_are_marked_and_ask_for_no_barrier() -> None:
    f = through(parse_function(RING), "insert_barriers")
    (tile,) = [s for s in each_statement(f.body) if isinstance(s, AllocBuffer) and str(s.buffer.name) == "S"]
    assert b.plain(tile.annotations)["tl.channel"] == "slots"


def test_a_slot_that_is_not_committed_is_refused() -> None:
    text = RING.replace("                T.commit(slots[k % 3])\n", "")
    with pytest.raises(TileError, match="slots is not committed in the same sequence") as caught:
        through(parse_function(text))
    assert caught.value.code == "TL304"


LOADS = """
S = T.alloc_buffer((2, 8, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "(2,8,64):(512,64,1)"})
c = T.alloc_buffer((2,), "uint64", scope="shared.barrier", annotations={"tl.transport": "mbarrier"})
T.acquire(c[0], 1)
for i in T.serial(EXTENT):
    if tx == 0:
        T.issue(S[0, 0:8, 0:64], A[i * 8:i * 8 + 8, 0:64], c[0], row="tma.load.2d.8x64.float16.s0")
T.commit(c[0])
T.wait(c[0], 0)
T.release(c[0])
"""  # noqa: E501


def test_the_bytes_of_loads_in_a_loop_are_counted() -> None:
    f = after(function(LOADS.replace("EXTENT", "4")), lower_channels)
    (expect,) = calls(f, "mbarrier_expect")
    assert b.as_int(expect.args[1]) == 4 * 8 * 64 * 2


def test_loads_in_a_loop_of_unknown_length_are_refused() -> None:
    with pytest.raises(TileError, match="unknown length") as caught:
        after(function(LOADS.replace("EXTENT", "tx")), lower_channels)
    assert caught.value.code == "TL304"


# ---- roles

APART = """
S = T.alloc_buffer((64,), "float16", scope="shared.dyn", annotations={"tl.layout": "64:1"})
R = T.alloc_buffer((64,), "float16", scope="shared.dyn", annotations={"tl.layout": "64:1"})
with T.attr({"tl.group": "one:0:64"}):
    S[tx] = A[0, tx]
    B[0, tx] = S[63 - tx]
with T.attr({"tl.group": "two:64:64"}):
    R[tx - 64] = A[1, tx - 64]
    B[1, tx - 64] = R[127 - tx]
"""


def offsets(f: PrimFunc) -> list[int]:
    return [b.plain(s.annotations)["tl.offset"] for s in each_statement(f.body) if isinstance(s, AllocBuffer)]


def test_tiles_of_roles_that_run_together_do_not_share_bytes() -> None:
    assert offsets(after(function(APART, 128), plan_shared_memory)) == [0, 128]


def test_each_role_gets_barriers_of_its_own_threads() -> None:
    f = after(function(APART, 128), plan_shared_memory, insert_barriers)
    found = [b.plain(c.config) for c in calls(f, "barrier")]
    assert [(x["id"], x["threads"]) for x in found] == [(1, 64), (2, 64)]
    a, c = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)
    emulate(f, [a, c])
    assert c[:2].all()


def test_two_roles_that_share_a_tile_without_a_channel_are_refused() -> None:
    text = APART.replace("R[", "S[")
    with pytest.raises(TileError, match="two roles use S, which one of them writes") as caught:
        after(function(text, 128), plan_shared_memory, insert_barriers)
    assert caught.value.code == "TL304"


def test_what_came_before_the_roles_is_waited_for_by_the_block() -> None:
    body = """
S = T.alloc_buffer((128,), "float16", scope="shared.dyn", annotations={"tl.layout": "128:1"})
S[tx] = A[tx // 64, tx % 64]
with T.attr({"tl.group": "one:0:64"}):
    B[0, tx] = S[127 - tx]
with T.attr({"tl.group": "two:64:64"}):
    B[1, tx - 64] = S[127 - tx]
"""
    f = after(function(body, 128), plan_shared_memory, insert_barriers)
    (only,) = calls(f, "barrier")
    assert "id" not in b.plain(only.config)
    emulate(f, [np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)])


@pytest.mark.parametrize(
    ("counts", "said"), [((48, 248), "240"), ((40, 240), "66560 of 65536"), ((40, 44), "by 8s")]
)
def test_registers_that_a_multiprocessor_does_not_have_are_refused(counts: Sequence[int], said: str) -> None:
    body = f"""
with T.attr({{"tl.group": "producer:0:128"}}):
    with T.attr({{"tl.registers": {counts[0]}}}):
        B[0, 0] = T.float16(0)
with T.attr({{"tl.group": "consumers:128:256"}}):
    with T.attr({{"tl.registers": {counts[1]}}}):
        B[0, 1] = T.float16(0)
"""
    with pytest.raises(TileError, match=said) as caught:
        after(function(body, 384), insert_register_limits)
    assert caught.value.code == "TL302"


# ---- fences

STORE = """
S = T.alloc_buffer((8, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "(8,64):(64,1)", "tl.offset": 0})
R = T.alloc_buffer((8, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "(8,64):(64,1)", "tl.offset": OFFSET})
for k in T.serial(2):
    for i in T.serial(8):
        S[i, tx] = A[k * 8 + i, tx]
    T.barrier()
    if tx == 0:
        T.issue(B[k * 8:k * 8 + 8, 0:64], TILE[0:8, 0:64], row="tma.store.2d.8x64.float16.s0")
        T.commit_group(kind="bulk")
        T.wait_group(kind="bulk.read", pending=0)
    T.barrier()
"""  # noqa: E501


def store(offset: int, tile: str) -> PrimFunc:
    text = STORE.replace("OFFSET", str(offset)).replace("TILE", tile)
    return after(function(text, stage="synced"), insert_proxy_fences)


def test_a_fence_stands_between_the_writes_and_the_barrier() -> None:
    f = store(1024, "S")
    order = [op_of(s).name for s in each_statement(f.body) if isinstance(s, TileCall)]
    assert order == ["fence", "barrier", "issue", "commit_group", "wait_group", "barrier"]
    a, c = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float16)
    for mode in ("late", "early"):
        emulate(f, [a, c], mode=mode)
    assert c[:16].all()


def test_tiles_that_share_bytes_count_as_one() -> None:
    assert len(calls(store(512, "R"), "fence")) == 1
    assert not calls(store(1024, "R"), "fence")


def test_reads_before_a_load_overwrites_them_are_fenced() -> None:
    body = """
S = T.alloc_buffer((8, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "(8,64):(64,1)", "tl.offset": 0})
full = T.alloc_buffer((1,), "uint64", scope="shared.barrier", annotations={"tl.offset": 1024})
empty = T.alloc_buffer((1,), "uint64", scope="shared.barrier", annotations={"tl.offset": 1032})
T.mbarrier_wait(full[0], 0)
B[0, tx] = S[0, tx]
T.barrier(threads=32)
if tx % 32 == 0:
    T.mbarrier_arrive(empty[0])
if tx == 0:
    T.mbarrier_expect(full[0], 1024)
    T.issue(S[0:8, 0:64], A[0:8, 0:64], full[0], row="tma.load.2d.8x64.float16.s0")
"""  # noqa: E501
    f = after(function(body, stage="synced"), insert_proxy_fences)
    (fence,) = calls(f, "fence")
    assert "read by threads, then overwritten" in b.plain(fence.config)["why"]
    order = [op_of(s).name for s in each_statement(f.body) if isinstance(s, TileCall)]
    assert order[:3] == ["mbarrier_wait", "fence", "barrier"]
