"""Statements and expressions, per thread and per iteration, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

from tilelab.emulate import emulate
from tilelab.errors import TileError
from tilelab.ir.text import parse_function

HEADER = """
@T.prim_func
def kernel({params}):
    T.func_attr({{"tl.stage": "{stage}", "tl.threads": {threads}}})
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", {threads}) as tx:
"""


def kernel(body: str, params: str, stage: str = "threaded", threads: int = 32):
    lines = [" " * 12 + line for line in body.strip("\n").splitlines()]
    text = HEADER.format(params=params, stage=stage, threads=threads) + "\n".join(lines) + "\n"
    return parse_function(text)


def buffer(name: str, shape: tuple[int, ...], dtype: str = "int32") -> str:
    return f'{name}: T.Buffer({shape}, "{dtype}")'


A32, B32 = buffer("A", (32,)), buffer("B", (32,))


def refusal(function, *args, **how) -> TileError:
    with pytest.raises(TileError) as caught:
        emulate(function, list(args), **how)
    return caught.value


def test_branches_run_under_masks():
    f = kernel(
        """
if tx % 3 == 0:
    B[tx] = A[tx] * 2
else:
    if tx > 20:
        B[tx] = -A[tx]
    else:
        B[tx] = T.max(A[tx], 9)
""",
        f"{A32}, {B32}",
    )
    a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    emulate(f, [a, b])
    t = np.arange(32)
    assert (b == np.where(t % 3 == 0, a * 2, np.where(t > 20, -a, np.maximum(a, 9)))).all()


def test_each_lane_leaves_a_while_loop_by_itself():
    f = kernel(
        """
n = T.alloc_buffer((1,), "int32", scope="local.var")
count = T.alloc_buffer((1,), "int32", scope="local.var")
n[0] = A[tx] + 1
count[0] = 0
while n[0] != 1:
    n[0] = T.if_then_else(n[0] % 2 == 0, n[0] // 2, n[0] * 3 + 1)
    count[0] = count[0] + 1
B[tx] = count[0]
""",
        f"{A32}, {B32}",
    )
    a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    emulate(f, [a, b])

    def collatz(n: int) -> int:
        return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert b.tolist() == [collatz(n + 1) for n in range(32)]


def test_loops_may_have_another_trip_count_on_each_lane():
    f = kernel(
        """
total = T.alloc_buffer((1,), "int32", scope="local.var")
total[0] = 0
for i in T.serial(A[tx] % 5):
    total[0] = total[0] + i + 1
B[tx] = total[0]
""",
        f"{A32}, {B32}",
    )
    a, b = np.arange(32, dtype=np.int32), np.full(32, -1, np.int32)
    emulate(f, [a, b])
    assert b.tolist() == [sum(range(1, n % 5 + 1)) for n in range(32)]


def test_break_and_continue_of_some_lanes():
    f = kernel(
        """
total = T.alloc_buffer((1,), "int32", scope="local.var")
total[0] = 0
for i in T.serial(10):
    if i == tx:
        break
    if i % 2 == 1:
        continue
    total[0] = total[0] + i
B[tx] = total[0]
""",
        f"{A32}, {B32}",
    )
    a, b = np.zeros(32, np.int32), np.full(32, -1, np.int32)
    emulate(f, [a, b])
    assert b.tolist() == [sum(i for i in range(min(n, 10)) if i % 2 == 0) for n in range(32)]


def test_a_break_of_all_lanes_ends_the_loop():
    f = kernel(
        """
for i in T.serial(10):
    if i == 3:
        break
    B[tx] = i
""",
        B32,
    )
    b = np.zeros(32, np.int32)
    assert emulate(f, [b]).steps < 10
    assert (b == 2).all()


def test_guards_keep_both_sides_of_a_choice_inside():
    f = kernel("B[tx] = T.if_then_else(tx < 8, A[tx], 7)", f"{buffer('A', (8,))}, {B32}", stage="synced")
    a, b = np.arange(8, dtype=np.int32), np.zeros(32, np.int32)
    emulate(f, [a, b])
    assert b.tolist() == [*range(8), *[7] * 24]


def test_accesses_outside_are_faults_only_where_threads_run_free():
    body, params = "B[tx] = A[tx + 1]", f"{A32}, {B32}"
    a, b = np.arange(32, dtype=np.int32), np.full(32, -1, np.int32)
    emulate(kernel(body, params), [a, b])
    assert b.tolist() == [*range(1, 32), 0]
    error = refusal(kernel(body, params, stage="synced"), a, b)
    assert error.code == "TL601"
    assert "A[32] is outside A's shape (32,) (thread 31)" in error.message


def test_a_local_read_before_any_write_names_its_threads():
    f = kernel(
        """
x = T.alloc_buffer((4,), "int32", scope="local")
if tx < 30:
    x[1] = tx
B[tx] = x[1]
""",
        B32,
    )
    error = refusal(f, np.zeros(32, np.int32))
    assert error.code == "TL602"
    assert "x[1] is read by threads 30, 31 before it was written" in error.message
    assert error.places[0].line > 0


def test_vectors_move_as_one():
    f = kernel(
        """
x = T.alloc_buffer((8,), "float16", scope="local")
x[T.Ramp(0, 1, 8)] = A[tx, T.Ramp(0, 1, 8)]
B[tx, T.Ramp(0, 1, 4)] = T.Cast("float32x4", x[T.Ramp(4, 1, 4)]) * T.Broadcast(T.float32(2), 4)
""",
        f"{buffer('A', (32, 8), 'float16')}, {buffer('B', (32, 4), 'float32')}",
    )
    a, b = np.arange(256, dtype=np.float16).reshape(32, 8), np.zeros((32, 4), np.float32)
    emulate(f, [a, b])
    assert (b == a[:, 4:].astype(np.float32) * 2).all()


def test_bfloat16_rounds_at_every_operation():
    f = kernel(
        "B[tx] = A[tx] * A[tx] + T.bfloat16(1)",
        f"{buffer('A', (32,), 'bfloat16')}, {buffer('B', (32,), 'bfloat16')}",
    )
    a = np.linspace(0.1, 3, 32).astype(ml_dtypes.bfloat16)
    b = np.zeros(32, ml_dtypes.bfloat16)
    emulate(f, [a, b])
    assert (b == a * a + ml_dtypes.bfloat16(1)).all()
    assert (b.astype(np.float32) != a.astype(np.float32) ** 2 + 1).any()


def test_conversions_truncate_and_integers_wrap():
    f = kernel(
        'B[tx] = T.Cast("uint32", T.Cast("int32", A[tx])) + T.uint32(4294967295)',
        f"{buffer('A', (32,), 'float32')}, {buffer('B', (32,), 'uint32')}",
    )
    a, b = np.linspace(1.0, 9.9, 32).astype(np.float32), np.zeros(32, np.uint32)
    emulate(f, [a, b])
    assert (b == a.astype(np.int32).astype(np.uint32) - np.uint32(1)).all()


def test_two_threads_that_write_one_element_race_unless_they_agree():
    b = np.zeros(32, np.int32)
    emulate(kernel("B[tx // 2] = tx // 2", B32), [b])
    assert b[:16].tolist() == list(range(16))
    error = refusal(kernel("B[tx // 2] = tx", B32), b)
    assert error.code == "TL603"
    assert "write different values to B[0]" in error.message


def test_atomics_of_many_threads_add_up():
    f = kernel("T.atomic_add(B[tx % 4:tx % 4 + 1], A[tx])", f"{A32}, {B32}")
    a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    emulate(f, [a, b])
    assert b[:4].tolist() == [sum(range(i, 32, 4)) for i in range(4)]


def test_an_endless_loop_is_stopped():
    f = kernel(
        """
i = T.alloc_buffer((1,), "int32", scope="local.var")
i[0] = 0
while i[0] < 1:
    i[0] = 0
""",
        "",
    )
    assert "no end after 500 steps" in refusal(f, max_steps=500).message


def test_a_barrier_that_some_threads_miss_is_a_deadlock():
    f = kernel("if tx < 20:\n    T.barrier()", "", stage="synced")
    error = refusal(f)
    assert error.code == "TL604"
    assert "the barrier of 32 threads, 20 have come" in error.message


# ---- parallel nests


def test_parallel_nests_run_all_iterations():
    f = kernel(
        """
for i, j in T.grid(1, 1):
    for p in T.parallel(30):
        for q in T.parallel(20):
            if p > q:
                B[p, q] = A[p, q] * 2.0 + T.Cast("float32", q)
""",
        f"{buffer('A', (28, 20), 'float32')}, {buffer('B', (30, 20), 'float32')}",
        stage="tile",
    )
    a, b = (
        np.random.default_rng(0).standard_normal((28, 20)).astype(np.float32),
        np.zeros((30, 20), np.float32),
    )
    emulate(f, [a, b])
    padded = np.zeros((30, 20), np.float32)
    padded[:28] = a
    p, q = np.indices((30, 20))
    assert np.array_equal(b, np.where(p > q, padded * 2 + q, 0).astype(np.float32))


@pytest.mark.parametrize(
    "body",
    ["B[i // 2] = i", "B[i] = B[(i + 1) % 32]", "B[0] = B[0] + i", "B[0] = B[0] + 1"],
    ids=["two writers", "reads a neighbour", "a sum", "a uniform update"],
)
def test_iterations_that_touch_one_another_race(body):
    f = kernel(f"for i in T.parallel(32):\n    {body}", B32, stage="tile")
    assert refusal(f, np.zeros(32, np.int32)).code == "TL603"


@pytest.mark.parametrize(
    "body",
    ["B[i] = B[i] + i", "B[i // 2] = i // 2", "T.atomic_add(B[i % 3:i % 3 + 1], i)"],
    ids=["own element", "the same value", "atomic"],
)
def test_iterations_that_keep_to_themselves_do_not_race(body):
    f = kernel(f"for i in T.parallel(32):\n    {body}", B32, stage="tile")
    emulate(f, [np.zeros(32, np.int32)])


def test_a_serial_loop_inside_a_nest_may_sum_into_its_own_element():
    f = kernel(
        """
for i in T.parallel(32):
    B[i] = 0
    for k in T.serial(4):
        B[i] = B[i] + A[k]
""",
        f"{A32}, {B32}",
        stage="tile",
    )
    a, b = np.arange(32, dtype=np.int32), np.full(32, -1, np.int32)
    emulate(f, [a, b])
    assert (b == 6).all()


# ---- whole tiles


def test_reductions_and_running_sums():
    f = kernel(
        """
S = T.alloc_buffer((8, 16), "float32", scope="shared.dyn")
R = T.alloc_buffer((8,), "float32", scope="local.fragment")
T.copy(A[0:8, 0:16], S[0:8, 0:16])
T.reduce(S[0:8, 0:16], R[0:8], kind="absmax", dim=1, clear=True)
T.reduce(S[0:8, 0:16], R[0:8], kind="sum", dim=1, clear=False)
T.copy(R[0:8], B[0:8])
T.cumsum(S[0:8, 0:16], S[0:8, 0:16], dim=1, reverse=True)
T.copy(S[0:8, 0:16], A[0:8, 0:16])
""",
        f"{buffer('A', (8, 16), 'float32')}, {buffer('B', (8,), 'float32')}",
        stage="tile",
    )
    a, b = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32), np.zeros(8, np.float32)
    old = a.copy()
    emulate(f, [a, b])
    assert np.allclose(b, np.abs(old).max(1) + old.sum(1), rtol=1e-6)
    assert np.allclose(a, np.cumsum(old[:, ::-1], 1)[:, ::-1], rtol=1e-5, atol=1e-6)


def test_a_tile_read_before_it_was_filled_is_refused():
    f = kernel(
        """
S = T.alloc_buffer((8,), "int32", scope="shared.dyn")
T.fill(S[0:4], 1)
T.copy(S[0:8], B[0:8])
""",
        B32,
        stage="tile",
    )
    error = refusal(f, np.zeros(32, np.int32))
    assert error.code == "TL602"
    assert "S[4]" in error.message


def test_a_fragment_moves_through_its_layout_and_copies_must_agree():
    body = """
F = T.alloc_buffer((4,), "int32", scope="local", annotations={{"tl.layout": "(16,4)@((16,2),4):((1,0),16)"}})
T.copy(A[0:16, 0:4], F[0:4])
{spoil}
T.copy(F[0:4], B[0:16, 0:4])
"""
    params = f"{buffer('A', (16, 4))}, {buffer('B', (16, 4))}"
    a, b = np.arange(64, dtype=np.int32).reshape(16, 4), np.zeros((16, 4), np.int32)
    emulate(kernel(body.format(spoil="F[2] = F[2] + 1"), params), [a, b])
    assert (b == a + np.array([0, 0, 1, 0])).all()
    error = refusal(kernel(body.format(spoil="F[2] = F[2] + tx"), params), a, b)
    assert "different copies of one element of F" in error.message


def test_printed_values_are_in_the_report():
    f = kernel('if tx == 3:\n    T.print(tx * 2, message="twice")', "")
    assert emulate(f, []).prints == ("twice 6",)


def test_one_thread_runs_scalar_loops_as_lanes():
    text = """
@T.prim_func
def scalar(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((256,))):
    T.func_attr({"tl.stage": "device", "tl.threads": 1})
    for block in T.parallel(2):
        for i in range(8):
            for v in T.vectorized(16):
                C[(block * 8 + i) * 16 + v] = T.float32(0)
            for k in range(16):
                for v in T.vectorized(16):
                    C[(block * 8 + i) * 16 + v] = C[(block * 8 + i) * 16 + v] + A[block * 8 + i, k] * B[k, v]
        for i in range(15):
            B[block, i + 1] = B[block, i] + T.float32(1)
"""
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 16, 16)).astype(np.float32)
    old, c = b.copy(), np.full((16, 16), np.nan, np.float32)
    report = emulate(parse_function(text), [a, b, c])
    assert np.allclose(c[0], a[0] @ old, rtol=1e-4, atol=1e-5)
    assert np.allclose(b[0], old[0, 0] + np.arange(16), rtol=1e-6)
    assert report.steps < 400
