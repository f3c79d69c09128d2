"""How many slots pipelined loops get when shared memory is short."""

from __future__ import annotations

import tilelab.language as T
from tests.kernels.case import KernelCase, floats
from tests.test_meaning import PIPELINES
from tilelab.ir import build as b
from tilelab.ir.scoped import allocations
from tilelab.pipelines.run import run, start_trace


def two_loops(A, B, num_stages=4):
    C = T.empty((256, 64), T.float32)
    with T.Kernel(1, threads=128):
        A_first = T.alloc_shared((128, 64), A.dtype)
        B_first = T.alloc_shared((64, 64), A.dtype)
        A_second = T.alloc_shared((128, 64), A.dtype)
        B_second = T.alloc_shared((64, 64), A.dtype)
        C_local = T.alloc_fragment((128, 64), T.float32)
        for m in T.serial(2):
            T.clear(C_local)
            for k in T.Pipelined(2, num_stages=num_stages):
                T.copy(A[m * 128, k * 64], A_first)
                T.copy(B[k * 64, 0], B_first)
                T.gemm(A_first, B_first, C_local)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[m * 128, k * 64], A_second)
                T.copy(B[k * 64, 0], B_second)
                T.gemm(A_second, B_second, C_local)
            T.copy(C_local, C[m * 128, 0])
    return C


def epilogue_through_shared(A, B):
    C = T.empty((128, 128), T.float32)
    with T.Kernel(1, threads=256):
        A_shared = T.alloc_shared((128, 32), A.dtype)
        B_shared = T.alloc_shared((32, 128), A.dtype)
        C_shared = T.alloc_shared((128, 128), T.float32)
        C_local = T.alloc_fragment((128, 128), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * 32], A_shared)
            T.copy(B[k * 32, 0], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C_shared)
        T.copy(C_shared, C)
    return C


def compiled(function, target: str, shapes, **constants):
    inputs = tuple(floats(*shape) for shape in shapes)
    case = KernelCase("k", function, lambda: inputs, lambda *a: a, 0.0, constants)
    parsed = case.build()
    trace = start_trace(b.with_attrs(parsed.func, target=target), parsed.source)
    run(trace.steps[0].function, PIPELINES[target], trace)
    return trace


def slots(trace) -> dict[str, int]:
    """The slots of each ring after the pipeline was expanded."""
    f = next(s.function for s in trace.steps if s.name == "expand_pipeline")
    rings = [a.buffer for a in allocations(f) if str(a.buffer.scope()) == "shared.dyn"]
    return {str(r.name): int(r.shape[0]) for r in rings if len(r.shape) == 3}


def test_each_ring_has_the_slots_of_its_own_loop() -> None:
    trace = compiled(two_loops, "cuda:sm_80", ((256, 128), (128, 64)), num_stages=3)
    assert slots(trace) == {"A_first": 3, "B_first": 3, "A_second": 2, "B_second": 2}


def test_loops_whose_rings_do_not_fit_together_get_fewer_slots_and_say_so() -> None:
    trace = compiled(two_loops, "cuda:sm_80", ((256, 128), (128, 64)), num_stages=8)
    assert slots(trace)["A_first"] == 4
    texts = [
        n.text for s in trace.steps if s.name == "plan_pipeline" for n in s.notes if n.kind == "slow_path"
    ]
    assert any(text.startswith("4 slots instead of 8") for text in texts)


def test_a_tile_that_is_used_after_the_loop_takes_no_slot_away() -> None:
    trace = compiled(epilogue_through_shared, "hip:gfx942", ((128, 64), (64, 128)))
    assert slots(trace) == {"A_shared": 2, "B_shared": 2}
