"""Planted defects in compiled kernels: each is caught, and the message says what and where."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.emulate.gfx942 import run
from tilelab.emulate.gfx942.decode import Instruction, program
from tilelab.errors import InternalError, TileError


def gemm_arguments(m: int = 64, n: int = 64, k: int = 64) -> list:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    return [a, b, np.zeros((m, n), np.float32), m, n, k]


def run_gemm(code: bytes, args: list | None = None) -> list:
    args = args or gemm_arguments()
    run(code, "gemm", (1, 1, 1), (256, 1, 1), args)
    return args


def fault_of(code: bytes, *args, **kwargs) -> TileError:
    with pytest.raises(TileError) as caught:
        run(code, *args, **kwargs)
    return caught.value


def gemm_fault(code: bytes) -> TileError:
    return fault_of(code, "gemm", (1, 1, 1), (256, 1, 1), gemm_arguments())


def waits_for(counter: str):
    return lambda i: i.name == "s_waitcnt" and counter in i.raw_operands[0]


def test_the_kernel_is_right_before_anything_is_planted(build):
    a, b, c, *_ = run_gemm(build("gemm"))
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.linalg.norm(c - wanted) < 3e-7 * np.linalg.norm(wanted)


def test_removed_wait_for_global_loads(build, patch):
    fault = gemm_fault(patch(build("gemm"), waits_for("vmcnt")))
    assert fault.code == "TL602"
    assert "s_waitcnt vmcnt is missing" in fault.message
    assert "ds_write_b128" in fault.message
    assert "kernel gemm" in fault.message
    assert "pc 0x" in fault.message


def test_removed_wait_for_scalar_loads(build, patch):
    fault = gemm_fault(patch(build("gemm"), waits_for("lgkmcnt")))
    assert fault.code == "TL602"
    assert "before its load has arrived: s_waitcnt lgkmcnt is missing" in fault.message


def test_removed_wait_for_lds_reads(build, patch):
    def before_matrix(instruction: Instruction) -> bool:
        following = code_of_gemm.get(instruction.pc + instruction.size)
        return waits_for("lgkmcnt")(instruction) and following is not None and "mfma" in following.name

    code_of_gemm = program(build("gemm"))
    fault = gemm_fault(patch(build("gemm"), before_matrix))
    assert fault.code == "TL602"
    assert "lgkmcnt is missing" in fault.message
    assert "v_mfma_f32_32x32x8_f16" in fault.message


def test_removed_wait_for_lds_writes_before_the_barrier(build, patch):
    def before_barrier(instruction: Instruction) -> bool:
        following = code_of_gemm.get(instruction.pc + instruction.size)
        return waits_for("lgkmcnt")(instruction) and following is not None and following.name == "s_barrier"

    code_of_gemm = program(build("gemm"))
    fault = gemm_fault(patch(build("gemm"), before_barrier))
    assert fault.code == "TL603"
    assert "without s_waitcnt lgkmcnt before the barrier" in fault.message


def test_removed_barrier(build, patch):
    fault = gemm_fault(patch(build("gemm"), lambda i: i.name == "s_barrier"))
    assert fault.code == "TL603"
    assert "LDS race at byte" in fault.message
    assert "with no barrier between" in fault.message
    assert "ds_read_b128" in fault.message
    assert "lanes" in fault.message


def test_short_array_names_the_argument_and_the_lanes(build):
    n = 256
    a, b, c = np.ones(n, np.float32), np.ones(n - 10, np.float32), np.zeros(n, np.float32)
    fault = fault_of(build("vector_add"), "vector_add_unguarded", (1, 1, 1), (256, 1, 1), [a, b, c])
    assert fault.code == "TL601"
    assert "4 bytes at byte 984 of argument b, which has 984 bytes" in fault.message
    assert "workgroup (0, 0, 0) wave 3 lanes 54-63" in fault.message


def test_short_array_behind_a_buffer_that_promises_more(build):
    args = gemm_arguments()
    args[1] = args[1][:60]
    fault = fault_of(build("gemm"), "gemm", (1, 1, 1), (256, 1, 1), args)
    assert fault.code == "TL601"
    assert "argument B" in fault.message


def test_write_past_the_end_is_caught_before_memory_changes(build):
    c = np.zeros(100, np.float32)
    a = np.ones(256, np.float32)
    fault = fault_of(build("vector_add"), "vector_add_unguarded", (1, 1, 1), (256, 1, 1), [a, a, c])
    assert fault.code == "TL601"
    assert "argument c" in fault.message
    assert not c.any()


def test_wrong_dtype_of_a_matrix_instruction_gives_wrong_values(build, patch):
    code = build("gemm")
    shown = {"v_mfma_f32_32x32x8_f16": "v_mfma_f32_32x32x8_bf16"}

    def other_opcode(words: bytes) -> bytes:
        # the opcode of the VOP3P-MAI encoding is in bits 16 to 22: 0x4c is 32x32x8_f16, 0x60 is 32x32x8_bf16
        first = int.from_bytes(words[:4], "little")
        return (first & ~(0x7F << 16) | 0x60 << 16).to_bytes(4, "little") + words[4:]

    wrong = patch(code, lambda i: i.name in shown, other_opcode)
    assert {i.name for i in program(wrong).values() if "mfma" in i.name} == set(shown.values())
    a, b, c, *_ = run_gemm(wrong)
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.linalg.norm(c - wanted) > 0.5 * np.linalg.norm(wanted)


def test_missing_wait_of_a_direct_to_lds_copy_is_seen(build):
    x, y = np.arange(256, dtype=np.uint32) + 1, np.zeros(256, np.uint32)
    report = run(build("direct_to_lds", "-DNO_WAIT"), "reverse", (1, 1, 1), (256, 1, 1), [x, y])
    assert not (y == x[::-1]).any()
    messages = " ".join(d.message for d in report.diagnostics)
    assert "never written" in messages
    assert [d.times for d in report.diagnostics if "never written" in d.message] == [1024]


def test_lds_access_past_its_size(assemble):
    code = assemble("  v_mov_b32 v6, 0x400\n  ds_write_b32 v6, v2\n", lds=1024)
    arrays = [np.zeros((64, 4), np.uint32), np.zeros((64, 2), np.uint32)]
    fault = fault_of(code, "snippet", (1, 1, 1), (64, 1, 1), arrays)
    assert fault.code == "TL601"
    assert "4 bytes at byte 1024 of LDS, which has 1024 bytes" in fault.message


def test_unknown_instruction_is_named_with_its_address(assemble):
    code = assemble("  v_sad_u8 v20, v2, v3, v4")
    arrays = [np.zeros((64, 4), np.uint32), np.zeros((64, 2), np.uint32)]
    with pytest.raises(InternalError, match=r"v_sad_u8 at pc 0x[0-9a-f]+"):
        run(code, "snippet", (1, 1, 1), (64, 1, 1), arrays)


def test_unknown_modifier_is_refused(assemble):
    code = assemble("  v_mfma_f32_32x32x1_2b_f32 v[32:63], v2, v3, 0 cbsz:1 abid:1")
    arrays = [np.zeros((64, 4), np.uint32), np.zeros((64, 2), np.uint32)]
    with pytest.raises(InternalError, match="matrix modifier"):
        run(code, "snippet", (1, 1, 1), (64, 1, 1), arrays)


def test_endless_loop_is_stopped(assemble):
    code = assemble(".Lagain:\n  s_branch .Lagain")
    arrays = [np.zeros((64, 4), np.uint32), np.zeros((64, 2), np.uint32)]
    fault = fault_of(code, "snippet", (1, 1, 1), (64, 1, 1), arrays, instruction_limit=1000)
    assert fault.code == "TL604"
    assert "s_branch" in fault.message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda args: args[:-1], "TL501"),
        (lambda args: [*args, 1], "TL501"),
        (lambda args: [args[0], args[1], 5, args[3]], "TL503"),
        (lambda args: [args[0], args[1], args[2], args[0]], "TL503"),
        (lambda args: [args[0], args[1], args[2], np.int64(4)], "TL503"),
        (lambda args: [args[0], args[1], args[2], 1 << 40], "TL503"),
        (lambda args: [args[0], args[0][1:], args[2], 1], "TL505"),
    ],
)
def test_unsuitable_arguments_are_refused(build, change, code):
    x = np.zeros(8, np.float32)
    args = change([x, x.copy(), x.copy(), 8])
    assert fault_of(build("vector_add"), "vector_add", (1, 1, 1), (256, 1, 1), args).code == code


def test_block_larger_than_the_kernel_was_built_for(build):
    x = np.zeros(8, np.float32)
    fault = fault_of(build("vector_add"), "vector_add", (1, 1, 1), (512, 1, 1), [x, x, x, 8])
    assert fault.code == "TL302"
    assert "at most 256 threads" in fault.message
