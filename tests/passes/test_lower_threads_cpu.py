"""Thread indices on a CPU: lockstep meaning, private values, and what a single thread cannot do."""

from __future__ import annotations

import pytest

from tests.codegen.cpu import compiled, kernel, lowered
from tilelab.errors import TileError

torch = pytest.importorskip("torch")

HEAD = """
@T.prim_func
def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    with T.launch_thread("blockIdx.x", 4) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            S = T.alloc_buffer((32,), "float32", scope="shared.dyn")
"""


def program(*lines: str) -> str:
    return HEAD + "".join(f"            {line}\n" for line in lines)


def result(*lines: str) -> tuple[torch.Tensor, torch.Tensor]:
    a, out = torch.randn(128), torch.zeros(128)
    compiled(kernel(program(*lines)))(a, out)
    return a.view(4, 32), out.view(4, 32)


def test_a_statement_ends_on_all_threads_before_the_next_begins() -> None:
    a, out = result("S[tx] = A[bx * 32 + tx]", "B[bx * 32 + tx] = S[31 - tx]")
    assert torch.equal(out, a.flip(1))


def test_private_variables_keep_a_value_for_each_thread_across_a_barrier() -> None:
    a, out = result(
        'x = T.alloc_buffer((1,), "float32", scope="local.var")',
        'y = T.alloc_buffer((2,), "float32", scope="local")',
        "x[0] = A[bx * 32 + tx]",
        "for i in range(2):",
        "    y[i] = x[0] + T.float32(i)",
        "T.barrier()",
        "B[bx * 32 + tx] = x[0] + y[1]",
    )
    torch.testing.assert_close(out, a + a + 1)


def test_a_named_value_is_each_threads_own() -> None:
    a, out = result(
        "k: T.let[T.int32] = 31 - tx", "S[k] = A[bx * 32 + tx]", "T.barrier()", "B[bx * 32 + tx] = S[tx]"
    )
    assert torch.equal(out, a.flip(1))


def test_a_branch_keeps_the_condition_that_held_when_it_was_entered() -> None:
    a, out = result(
        "S[tx] = A[bx * 32 + tx]",
        "if S[tx] > T.float32(0):",
        "    S[tx] = T.float32(0) - S[tx]",
        "    B[bx * 32 + tx] = S[tx]",
        "else:",
        "    B[bx * 32 + tx] = T.float32(7)",
    )
    assert torch.equal(out, torch.where(a > 0, -a, torch.tensor(7.0)))


def test_loops_may_have_other_trip_counts_on_each_thread() -> None:
    _, out = result(
        'x = T.alloc_buffer((1,), "float32", scope="local.var")',
        "x[0] = T.float32(0)",
        "for i in range(tx % 5):",
        "    x[0] = x[0] + T.float32(1)",
        "B[bx * 32 + tx] = x[0]",
    )
    assert torch.equal(out, (torch.arange(32) % 5).float().expand(4, 32))


def test_a_uniform_statement_runs_once() -> None:
    _, out = result(
        'x = T.alloc_buffer((1,), "float32", scope="local.var")',
        "x[0] = T.float32(1)",
        "x[0] = x[0] + T.float32(1)",
        "B[bx * 32 + tx] = x[0]",
    )
    assert torch.equal(out, torch.full((4, 32), 2.0))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["if tx < 16:", "    T.fill(S[0:32], T.float32(0))"], "fill where only some threads arrive"),
        (["for i in range(tx):", "    T.fill(S[0:32], T.float32(0))"], "trip count differs"),
        (
            ["S[tx] = A[tx]", "for i in range(tx):", "    S[tx] = S[(tx + 1) % 32]"],
            "its threads exchange values",
        ),
    ],
    ids=["fill", "loop", "exchange"],
)
def test_what_needs_all_threads_at_once_is_refused(lines: list[str], says: str) -> None:
    with pytest.raises(TileError, match="a CPU cannot run") as caught:
        lowered(kernel(program(*lines, "B[tx] = S[tx]")))
    assert caught.value.code == "TL402"
    assert says in caught.value.message


@pytest.mark.parametrize("jump", ["break", "continue"])
def test_a_jump_out_of_a_loop_is_refused_with_its_line(jump: str) -> None:
    with pytest.raises(TileError, match=f"{jump} in a loop of the kernel") as caught:
        result("for i in range(32):", "    if i > 3:", f"        {jump}", "    B[i] = A[i]")
    assert caught.value.code == "TL402"
