"""What the planning passes decide on GPUs, and that each refusal and slower path says why."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab.language as T
from tilelab.emulate import emulate
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.language.parser import TensorSpec, parse_eager
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.hip import HIP
from tilelab.pipelines.run import run, start_trace


def gemm(A, B, block=64, block_K=32, stages=3, dtype="float32", accumulate="float32"):
    M, K = A.shape
    _, N = B.shape
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block), B.dtype)
        C_local = T.alloc_fragment((block, block), accumulate)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
            T.copy(A[by * block, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block, bx * block])
    return C


def compiled(function, target="cuda:sm_80", **arguments):
    parsed = parse_eager(function, arguments)
    f = b.with_attrs(parsed.func, target=target)
    trace = start_trace(f, parsed.source)
    return run(f, HIP if target.startswith("hip") else CUDA, trace), trace


def gemm_of(m=64, n=64, k=128, target="cuda:sm_80", a_dtype="float16", **constants):
    specs = {"A": TensorSpec((m, k), a_dtype), "B": TensorSpec((k, n), a_dtype)}
    return compiled(gemm, target, **specs, **constants)


def notes(trace, step, *kinds):
    return [n.text for n in trace[step].notes if not kinds or n.kind in kinds]


# ---- pipelines


def test_aligned_loads_run_ahead_by_cp_async() -> None:
    _, trace = gemm_of()
    assert notes(trace, "plan_pipeline") == [
        "A_shared, B_shared loaded 2 iterations ahead into 3 slots by cp.async"
    ]
    assert all("cp.async.16" in t for t in notes(trace, "plan_copies", "decision")[:2])
    assert notes(trace, "plan_copies", "slow_path") == []


def test_one_stage_is_refused_with_its_reason() -> None:
    _, trace = gemm_of(stages=1)
    assert "num_stages=1 leaves one slot" in notes(trace, "plan_pipeline", "refusal")[0]
    assert trace["expand_pipeline"].status == "unchanged"


def test_rows_of_odd_length_go_through_registers_and_say_so() -> None:
    _, trace = gemm_of(k=93)
    slow = notes(trace, "plan_copies", "slow_path")
    assert any("A_shared goes through registers instead of cp.async" in t and "2 bytes" in t for t in slow)


def test_a_ring_that_does_not_fit_is_made_shallower_and_recorded() -> None:
    _, trace = gemm_of(256, 256, 512, block=128, block_K=128, stages=4)
    slow = notes(trace, "plan_pipeline", "slow_path")
    assert slow == [
        (
            "2 slots instead of 4: a slot takes 65536 bytes, the block has 166912 bytes of shared memory "
            "and 65536 are used without slots"
        )
    ]


def test_tiles_beyond_the_shared_memory_are_an_error_with_numbers() -> None:
    with pytest.raises(TileError, match=r"a block needs \d+ bytes of shared memory") as caught:
        gemm_of(512, 512, 512, block=256, block_K=256, stages=0)
    assert caught.value.code == "TL301"
    assert "A_shared 131072" in caught.value.message


def test_mi300x_loads_wait_in_registers_one_iteration_ahead() -> None:
    _, trace = gemm_of(target="hip:gfx942")
    assert "two slots instead of 3" in notes(trace, "plan_pipeline")[0]
    assert "1 iterations ahead into 2 slots by registers" in notes(trace, "plan_pipeline")[1]


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("k", [8, 32, 40, 64, 96])
def test_short_loops_are_right(target, k) -> None:
    f, _ = gemm_of(64, 64, k, target)
    rng = np.random.default_rng(k)
    A, B = (rng.standard_normal(s).astype(np.float16) for s in ((64, k), (k, 64)))
    C = np.full((64, 64), np.nan, np.float32)
    emulate(f, [A, B, C])
    want = A.astype(np.float64) @ B.astype(np.float64)
    assert np.linalg.norm(C - want) <= 1e-5 * np.linalg.norm(want)


def conditional(A, block=32):
    M, N = A.shape
    C = T.empty((M, N), "float32")
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((M, block), "float32")
        F = T.alloc_fragment((M, block), "float32")
        for k in T.Pipelined(N // block, num_stages=2):
            if k > 0:
                T.copy(A[0, k * block], S)
            else:
                T.clear(S)
            T.copy(S, F)
            T.copy(F, C[0, k * block])
    return C


def test_a_load_under_a_condition_keeps_its_place_and_says_so() -> None:
    _, trace = compiled(conditional, A=TensorSpec((16, 64), "float32"))
    assert "not pipelined" in notes(trace, "plan_pipeline", "refusal")[-1]


def dependent(A, index, block=32):
    M, N = A.shape
    C = T.empty((M, N), "float32")
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((M, block), "float32")
        F = T.alloc_fragment((M, block), "float32")
        for k in T.Pipelined(N // block, num_stages=2):
            page = index[k]
            T.copy(A[0, page * block], S)
            T.copy(S, F)
            T.copy(F, C[0, k * block])
    return C


def test_a_load_from_a_computed_place_says_why_it_stays() -> None:
    specs = {"A": TensorSpec((16, 64), "float32"), "index": TensorSpec((2,), "int32")}
    _, trace = compiled(dependent, **specs)
    assert "its source depends on values computed in the loop" in notes(trace, "plan_pipeline", "refusal")[0]


# ---- instructions and layouts


def test_the_refused_instructions_are_listed_with_reasons() -> None:
    _, trace = gemm_of()
    data = trace["plan_gemms"].notes[0].data
    assert data["row"] == "mma.m16n8k16.f32.f16"
    assert data["refused"]["mma.m16n8k16.f32.bf16"] == "A is float16, the instruction takes bfloat16"


def test_float32_inputs_fall_to_scalar_sums_and_say_so() -> None:
    _, trace = gemm_of(32, 32, 32, block=32, a_dtype="float32")
    assert "fma.scalar" in notes(trace, "lower_gemm", "slow_path")[0]


def test_matrix_operands_get_the_widest_swizzle_their_rows_fill() -> None:
    _, trace = gemm_of()
    texts = notes(trace, "plan_layouts")
    assert "A_shared: 64-byte swizzle for operand A of mma.m16n8k16.f32.f16" in texts
    assert "B_shared: 128-byte swizzle for operand B of mma.m16n8k16.f32.f16" in texts


def two_gemms(A, B):
    M, K = A.shape
    C = T.empty((M, K), "float32")
    with T.Kernel(1, threads=128):
        A_shared = T.alloc_shared((M, K), A.dtype)
        B_shared = T.alloc_shared((K, K), B.dtype)
        first = T.alloc_fragment((M, K), "float32")
        second = T.alloc_fragment((M, K), "float32")
        T.copy(A, A_shared)
        T.copy(B, B_shared)
        T.clear(first)
        T.clear(second)
        T.gemm(A_shared, B_shared, first, policy=T.GemmWarpPolicy.FullRow)
        T.gemm(A_shared, B_shared, second, policy=T.GemmWarpPolicy.FullCol)
        for i, j in T.Parallel(M, K):
            first[i, j] = first[i, j] + second[i, j]
        T.copy(first, C)
    return C


def test_layouts_that_clash_name_both_operations() -> None:
    with pytest.raises(TileError) as caught:
        compiled(two_gemms, A=TensorSpec((64, 64), "float16"), B=TensorSpec((64, 64), "float16"))
    error = caught.value
    assert error.code == "TL202"
    assert [p.line - two_gemms.__code__.co_firstlineno for p in error.places] == [15, 13]
    assert "the accumulator of mma.m16n8k16.f32.f16" in error.message


def b_in_registers(A, B):
    C = T.empty((64, 64), "float32")
    with T.Kernel(1, threads=128):
        A_shared = T.alloc_shared((64, 64), A.dtype)
        B_local = T.alloc_fragment((64, 64), B.dtype)
        acc = T.alloc_fragment((64, 64), "float32")
        T.copy(A, A_shared)
        T.copy(B, B_local)
        T.clear(acc)
        T.gemm(A_shared, B_local, acc)
        T.copy(acc, C)
    return C


def test_b_in_registers_is_refused_with_the_way_out() -> None:
    with pytest.raises(TileError) as caught:
        compiled(b_in_registers, A=TensorSpec((64, 64), "float16"), B=TensorSpec((64, 64), "float16"))
    assert caught.value.code == "TL203"
    assert "T.alloc_shared" in caught.value.help


def stray(A):
    C = T.empty((32,), "float32")
    with T.Kernel(1, threads=32):
        F = T.alloc_fragment((32,), "float32")
        T.copy(A, F)
        F[3] = 0.0
        T.copy(F, C)
    return C


def test_a_fragment_element_outside_a_nest_is_refused() -> None:
    with pytest.raises(TileError, match=r"is used outside T\.Parallel") as caught:
        compiled(stray, A=TensorSpec((32,), "float32"))
    assert caught.value.code == "TL205"


def mirrored(A):
    C = T.empty((32,), "float32")
    with T.Kernel(1, threads=32):
        F = T.alloc_fragment((64,), "float32")
        T.copy(A, F)
        for i in T.Parallel(32):
            C[i] = F[31 - i]
    return C


def test_a_mirrored_fragment_index_is_refused_with_the_index() -> None:
    with pytest.raises(TileError, match=r"F is a fragment and is indexed with 31 - i") as caught:
        compiled(mirrored, A=TensorSpec((64,), "float32"))
    assert caught.value.code == "TL205"


# ---- barriers


def divergent(A):
    C = T.empty((32,), "float32")
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((32,), "float32")
        tx = T.get_thread_binding()
        if tx < 16:
            S[tx] = A[tx]
            C[tx] = S[15 - tx]
    return C


def test_a_barrier_that_only_some_threads_would_reach_is_refused() -> None:
    with pytest.raises(TileError) as caught:
        compiled(divergent, A=TensorSpec((32,), "float32"))
    assert caught.value.code == "TL304"


def reversed_rows(A):
    M, N = A.shape
    C = T.empty((M, N), "float32")
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((N,), "float32")
        for m in T.serial(M):
            for i in T.Parallel(N):
                S[i] = A[m, i]
            for i in T.Parallel(N):
                C[m, i] = S[N - 1 - i]
    return C


def test_a_loop_gets_a_barrier_after_the_write_and_one_before_the_next() -> None:
    f, trace = compiled(reversed_rows, A=TensorSpec((4, 64), "float32"))
    assert [t.split(" (")[0] for t in notes(trace, "insert_barriers")] == [
        "a barrier for S: written, then read", "a barrier for S: read, then written",
    ]  # fmt: skip
    A = np.arange(256, dtype=np.float32).reshape(4, 64)
    C = np.full((4, 64), np.nan, np.float32)
    emulate(f, [A, C])
    assert np.array_equal(C, A[:, ::-1])


def in_place(A):
    (N,) = A.shape
    C = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((N,), "float32")
        for i in T.Parallel(N):
            S[i] = A[i]
        for i in T.Parallel(N):
            S[i] = S[i] * 2.0
        for i in T.Parallel(N):
            C[i] = S[i]
    return C


def test_elements_that_stay_with_their_thread_need_no_barrier() -> None:
    _, trace = compiled(in_place, A=TensorSpec((128,), "float32"))
    assert trace["insert_barriers"].status == "unchanged" or "barrier" not in trace["insert_barriers"].reason
    assert notes(trace, "insert_barriers") == []
