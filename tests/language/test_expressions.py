"""Arithmetic on values of the kernel: dtypes, conversions, functions."""

from __future__ import annotations

import pytest

from tests.language.reading import lines, read

HALF, SINGLE, WHOLE = "A[0, 0]", "B[0, 0]", "C[0]"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f"{HALF} + {HALF}", 'T.Cast("float32", A[0, 0] + A[0, 0])'),
        (f"{HALF} * 2", 'T.Cast("float32", A[0, 0] * T.float16(2.0))'),
        (f"{HALF} * 2.0", 'T.Cast("float32", A[0, 0]) * T.float32(2.0)'),
        (f"{HALF} + {SINGLE}", 'T.Cast("float32", A[0, 0]) + B[0, 0]'),
        (f"{WHOLE} + {SINGLE}", 'T.Cast("float32", C[0]) + B[0, 0]'),
        (f"{WHOLE} * 0.5", 'T.Cast("float32", C[0]) * T.float32(0.5)'),
        (f"{WHOLE} // 2 % 3", 'T.Cast("float32", C[0] // 2 % 3)'),
        (f"{SINGLE} // 2.0", "T.floor(B[0, 0] / T.float32(2.0))"),
        (f"-{SINGLE}", "B[0, 0] * T.float32(-1.0)"),
        (f"2 ** {SINGLE}", "T.pow(T.float32(2.0), B[0, 0])"),
        (f"{SINGLE} ** 2", "B[0, 0] * B[0, 0]"),
        (f"T.exp({WHOLE})", 'T.exp(T.Cast("float32", C[0]))'),
        (f"T.max({HALF}, 0)", 'T.Cast("float32", T.max(A[0, 0], T.float16(0.0)))'),
        (f"T.clamp({SINGLE}, 0, 1)", "T.min(T.max(B[0, 0], T.float32(0.0)), T.float32(1.0))"),
        (f"T.cast({SINGLE}, 'float16')", 'T.Cast("float32", T.Cast("float16", B[0, 0]))'),
        (f"T.float16({SINGLE})", 'T.Cast("float32", T.Cast("float16", B[0, 0]))'),
        (f"T.reinterpret({WHOLE}, 'float32')", 'T.reinterpret("float32", C[0])'),
        (f"T.Select(bx > 1, {SINGLE}, 0)", "T.if_then_else(bx > 1, B[0, 0], T.float32(0.0))"),
        (f"T.floordiv({WHOLE}, 4)", 'T.Cast("float32", C[0] // 4)'),
        (f"T.shift_left({WHOLE}, 1) | 3", 'T.Cast("float32", C[0] << 1 | 3)'),
        ("bx * 32 + 0", 'T.Cast("float32", bx * 32)'),
    ],
)
def test_expressions_meet_in_the_right_dtype(tmp_path, expression, text):
    assert lines(read(tmp_path, f"V[0] = {expression}")) == [f"V[0] = {text}"]


def test_thread_and_block_indices(tmp_path):
    text = """
    tx = T.get_thread_binding()
    assert T.get_thread_extents() == [128] and T.get_block_extent(0) == 2
    V[tx % 32] = T.get_block_binding() + tx
    """
    assert lines(read(tmp_path, text)) == ['V[tx % 32] = T.Cast("float32", bx + tx)']


def test_whole_tile_operations(tmp_path):
    text = """
    T.gemm(S, S, F, transpose_A=True, policy=T.GemmWarpPolicy.FullCol)
    T.gemm(S, S, F, clear_accum=True)
    T.reduce_absmax(F, V, dim=-2, clear=False)
    T.reduce(F, V, "max", 1)
    T.cumsum(F, S, dim=-1, reverse=True)
    T.atomic_add(B[0, 0], F)
    T.sync_threads()
    T.print(V, msg="values")
    """
    assert lines(read(tmp_path, text)) == [
        'T.gemm(S[0:32, 0:32], S[0:32, 0:32], F[0:32, 0:32], policy="FullCol", transpose_A=True)',
        "T.gemm(S[0:32, 0:32], S[0:32, 0:32], F[0:32, 0:32], clear_accum=True)",
        'T.reduce(F[0:32, 0:32], V[0:32], clear=False, dim=0, kind="absmax")',
        'T.reduce(F[0:32, 0:32], V[0:32], clear=True, dim=1, kind="max")',
        "T.cumsum(F[0:32, 0:32], S[0:32, 0:32], dim=1, reverse=True)",
        "T.atomic_add(B[0:32, 0:32], F[0:32, 0:32])",
        'T.barrier(why="T.sync_threads")',
        'T.print(V[0:32], message="values")',
    ]
