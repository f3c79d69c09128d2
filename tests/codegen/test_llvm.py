"""The CPU target from whole tiles to numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.codegen.cpu import compiled, kernel, lowered, matmul
from tilelab.codegen import llvm
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.targets import parse_target

torch = pytest.importorskip("torch")

# Half the spacing of each dtype's numbers next to 1, and float32's for sums: the error of one rounding of C,
# relative.
ROUNDING = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-22, "float64": 2**-50, "int32": 0.0}


def relative_error(c: torch.Tensor, reference: torch.Tensor) -> float:
    return float((c.double() - reference).norm() / reference.norm())


def operands(m: int, n: int, k: int, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m * n + k)
    if dtype == "int8":
        return tuple(
            torch.randint(-9, 9, shape, generator=generator, dtype=torch.int8) for shape in ((m, k), (k, n))
        )
    kind = getattr(torch, dtype)
    return tuple(
        torch.randn(shape, generator=generator, dtype=torch.float32).to(kind) for shape in ((m, k), (k, n))
    )


@pytest.mark.parametrize("shape", [(256, 256, 64), (509, 767, 1021), (1, 1, 1), (130, 3, 40)], ids=str)
@pytest.mark.parametrize("transposes", ["NN", "NT", "TN", "TT"])
def test_float32_matmul_of_any_shape_and_transposition(shape: tuple[int, int, int], transposes: str) -> None:
    a, w = operands(*shape, "float32")
    ta, tb = (letter == "T" for letter in transposes)
    c = torch.full((shape[0], shape[1]), torch.nan)
    f = matmul(*shape, transpose_a=ta, transpose_b=tb)
    compiled(f)(a.t().contiguous() if ta else a, w.t().contiguous() if tb else w, c)
    assert relative_error(c, a.double() @ w.double()) <= ROUNDING["float32"] * 4


@pytest.mark.parametrize("ragged", [False, True], ids=["aligned", "ragged"])
@pytest.mark.parametrize(
    ("dtype", "sums", "out"),
    [("float16", "float32", "float16"), ("bfloat16", "float32", "bfloat16"),
     ("float64", "float64", "float64"),
     ("int8", "int32", "int32"), ("float16", "float16", "float16"), ("float16", "float32", "float32")],
)  # fmt: skip
def test_matmul_in_every_dtype(dtype: str, sums: str, out: str, ragged: bool) -> None:
    m, n, k = (201, 139, 77) if ragged else (256, 128, 64)
    a, w = operands(m, n, k, dtype)
    c = torch.zeros(m, n, dtype=getattr(torch, out))
    compiled(matmul(m, n, k, dtype, sums, out))(a, w, c)
    # Sums kept in float16 are rounded once a k-step.
    steps = -(-k // 32) if sums == "float16" else 1
    assert relative_error(c, a.double() @ w.double()) <= ROUNDING[out] * steps


@pytest.mark.parametrize(
    "block", [(96, 112, 48), (64, 64, 32), (16, 8, 16), (5, 7, 3), (128, 256, 64)], ids=str
)
def test_blocks_that_do_not_divide_into_registers(block: tuple[int, int, int]) -> None:
    a, w = operands(150, 170, 90, "float32")
    c = torch.zeros(150, 170)
    compiled(matmul(150, 170, 90, block=block))(a, w, c)
    assert relative_error(c, a.double() @ w.double()) <= ROUNDING["float32"] * 4


@pytest.mark.parametrize("cpu", ["cpu", "cpu-avx2", "cpu-avx512"])
def test_every_width_of_vectors_gives_the_same_numbers(cpu: str) -> None:
    a, w = operands(150, 170, 90, "float32")
    c = torch.zeros(150, 170)
    compiled(b.with_attrs(matmul(150, 170, 90), cpu=cpu))(a, w, c)
    assert relative_error(c, a.double() @ w.double()) <= ROUNDING["float32"] * 4


def test_one_function_serves_every_dynamic_shape() -> None:
    run = compiled(matmul(b.var("M"), b.var("N"), b.var("K")))
    for shape in ((256, 128, 64), (37, 300, 111), (1, 1, 1), (128, 128, 31)):
        a, w = operands(*shape, "float32")
        c = torch.full((shape[0], shape[1]), torch.nan)
        run(a, w, c)
        assert relative_error(c, a.double() @ w.double()) <= ROUNDING["float32"] * 4


def test_a_dynamic_kernel_takes_empty_tensors() -> None:
    run = compiled(matmul(b.var("M"), b.var("N"), b.var("K")))
    run(torch.zeros(0, 8), torch.zeros(8, 5), torch.zeros(0, 5))
    c = torch.full((3, 5), torch.nan)
    run(torch.zeros(3, 0), torch.zeros(0, 5), c)
    assert torch.equal(c, torch.zeros(3, 5))


def test_numpy_arrays_are_arguments_too() -> None:
    rng = np.random.default_rng(0)
    a, w = rng.random((40, 50), dtype=np.float32), rng.random((50, 60), dtype=np.float32)
    c = np.zeros((40, 60), np.float32)
    compiled(matmul(40, 60, 50))(a, w, c)
    np.testing.assert_allclose(c, a @ w, rtol=1e-5)


def test_tensors_need_no_alignment_beyond_their_dtype() -> None:
    base = torch.randn(64 * 64 + 1)
    a = base[1:].view(64, 64)
    assert a.data_ptr() % 64
    c = torch.zeros(64 * 64 + 1)[1:].view(64, 64)
    compiled(matmul(64, 64, 64))(a, a, c)
    assert relative_error(c, a.double() @ a.double()) <= ROUNDING["float32"] * 4


def test_strided_rows_are_read_in_place() -> None:
    stride = b.var("stride")
    a, out = b.buffer("A", (40, 32), "float32", strides=(stride, 1)), b.buffer("B", (40, 32), "float32")
    tile = b.buffer("S", (40, 32), "float32", "shared.dyn")
    bx, tx = b.var("bx"), b.var("tx")
    body = b.seq(
        b.alloc(tile), b.tile("copy", b.whole(a), b.whole(tile)), b.tile("copy", b.whole(tile), b.whole(out))
    )
    body = b.launch("blockIdx.x", bx, 1, b.launch("threadIdx.x", tx, 32, body))
    f = b.function("strided", [a, out], body, stage="tile", outputs=[1], threads=32, target="llvm")
    source, result = torch.randn(40, 100), torch.zeros(40, 32)
    compiled(f)(source[:, 10:42], result)
    assert torch.equal(result, source[:, 10:42])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (lambda a, w, c: (a, w), "Expected 3 arguments"),
        (lambda a, w, c: (a[0], w, c), "A.ndim"),
        (lambda a, w, c: (a.double(), w, c), "A.dtype"),
        (lambda a, w, c: (a, w[:-1], c), r"B.shape\[0\]"),
        (lambda a, w, c: (a.t(), w, c), "A.strides"),
    ],
    ids=["count", "rank", "dtype", "shape", "strides"],
)
def test_a_wrong_argument_is_named(arguments, says: str) -> None:
    run = compiled(matmul(32, 32, 32))
    with pytest.raises((TypeError, ValueError), match=says):
        run(*arguments(torch.zeros(32, 32), torch.zeros(32, 32), torch.zeros(32, 32)))


def test_the_sums_of_a_gemm_stay_in_registers() -> None:
    assembly = compiled(matmul(256, 256, 256)).assembly
    products = re.findall(r"(?:vfmadd\w+|fmla)\s.*", assembly)
    assert products
    assert not [line for line in products if re.search(r"\((?:%rsp|%rbp)", line)], (
        "a sum was spilled to the stack"
    )


def test_the_llvm_text_can_be_read_as_lines() -> None:
    module = compiled(matmul(64, 64, 64))
    assert module.lines[0].text == module.llvm.splitlines()[0]
    assert "fmul" in module.llvm


def test_the_number_of_threads_can_be_chosen() -> None:
    before = llvm.threads()
    try:
        assert llvm.set_threads(1) == 1
        assert llvm.set_threads(2) in (1, 2)
        a, w = operands(256, 256, 64, "float32")
        c = torch.zeros(256, 256)
        compiled(matmul(256, 256, 64))(a, w, c)
        assert relative_error(c, a.double() @ w.double()) <= ROUNDING["float32"] * 4
    finally:
        llvm.set_threads(before)


def test_another_target_is_refused() -> None:
    with pytest.raises(TileError, match="compiles for the CPU"):
        llvm.build(lowered(matmul(32, 32, 32))[0], parse_target("cuda:sm_80"))


SOFTMAX = """
@T.prim_func
def main(A: T.Buffer((96, 70), "float32"), B: T.Buffer((96, 70), "float32")):
    with T.launch_thread("blockIdx.x", 3) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            x = T.alloc_buffer((32, 70), "float32", scope="local.fragment")
            m = T.alloc_buffer((32,), "float32", scope="local.fragment")
            s = T.alloc_buffer((32,), "float32", scope="local.fragment")
            T.copy(A[bx * 32:bx * 32 + 32, 0:70], x[0:32, 0:70])
            T.reduce(x[0:32, 0:70], m[0:32], kind="max", dim=1, clear=True)
            for i in T.parallel(32):
                for j in T.parallel(70):
                    x[i, j] = T.exp(x[i, j] - m[i])
            T.reduce(x[0:32, 0:70], s[0:32], kind="sum", dim=1, clear=True)
            for i in T.parallel(32):
                for j in T.parallel(70):
                    B[bx * 32 + i, j] = x[i, j] / s[i]
"""


def test_softmax_of_reductions_and_parallel_loops() -> None:
    a, out = torch.randn(96, 70), torch.zeros(96, 70)
    compiled(kernel(SOFTMAX))(a, out)
    torch.testing.assert_close(out, a.softmax(1))


def reduction(kind: str, dim: int, dtype: str, clear: bool) -> str:
    kept = (24, 32)[1 - dim]
    return f"""
@T.prim_func
def main(A: T.Buffer((24, 32), "{dtype}"), B: T.Buffer(({kept},), "{dtype}")):
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            x = T.alloc_buffer((24, 32), "{dtype}", scope="shared.dyn")
            r = T.alloc_buffer(({kept},), "{dtype}", scope="local.fragment")
            T.copy(A[0:24, 0:32], x[0:24, 0:32])
            T.copy(B[0:{kept}], r[0:{kept}])
            T.reduce(x[0:24, 0:32], r[0:{kept}], kind="{kind}", dim={dim}, clear={clear})
            T.copy(r[0:{kept}], B[0:{kept}])
"""


@pytest.mark.parametrize("clear", [True, False], ids=["clear", "go_on"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", ["sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor"])
def test_every_kind_of_reduction_along_either_axis(kind: str, dim: int, clear: bool) -> None:
    dtype = "int32" if kind.startswith("bit") else "float32"
    rng = np.random.default_rng(1)
    a, old = (rng.integers(-99, 99, shape).astype(dtype) for shape in ((24, 32), ((24, 32)[1 - dim],)))
    names = {"sum": "add", "max": "maximum", "min": "minimum", "abssum": "add", "absmax": "maximum"}
    numpy_kind = getattr(np, names.get(kind) or "bitwise_" + kind.removeprefix("bit"))
    wanted = numpy_kind.reduce(np.abs(a) if kind.startswith("abs") else a, axis=dim)
    wanted = wanted if clear else numpy_kind(old, wanted)
    out = old.copy()
    compiled(kernel(reduction(kind, dim, dtype, clear)))(a, out)
    np.testing.assert_array_equal(out, wanted)


def test_a_nan_wins_a_maximum_that_propagates_it() -> None:
    text = reduction("max", 1, "float32", True).replace("clear=True", "clear=True, nan_propagate=True")
    a, out = torch.randn(24, 32), torch.zeros(32)[:24].clone()
    a[3, 7] = torch.nan
    compiled(kernel(text))(a, out)
    assert out.isnan().tolist() == [row == 3 for row in range(24)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums_along_either_axis_and_direction(dim: int, reverse: bool) -> None:
    text = f"""
@T.prim_func
def main(A: T.Buffer((24, 32), "float32"), B: T.Buffer((24, 32), "float32")):
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            x = T.alloc_buffer((24, 32), "float32", scope="shared.dyn")
            T.copy(A[0:24, 0:32], x[0:24, 0:32])
            T.cumsum(x[0:24, 0:32], x[0:24, 0:32], dim={dim}, reverse={reverse})
            T.copy(x[0:24, 0:32], B[0:24, 0:32])
"""
    a, out = torch.randint(-9, 9, (24, 32)).float(), torch.zeros(24, 32)
    compiled(kernel(text))(a, out)
    wanted = a.flip(dim).cumsum(dim).flip(dim) if reverse else a.cumsum(dim)
    assert torch.equal(out, wanted)


ADD = """
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), B: T.Buffer((10,), "float32")):
    with T.launch_thread("blockIdx.x", 100) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            x = T.alloc_buffer((16,), "float32", scope="local.fragment")
            T.copy(A[bx * 10:bx * 10 + 16], x[0:16])
            T.atomic_add(B[0:16], x[0:16])
"""


def test_atomic_additions_of_many_blocks_all_arrive_and_the_slow_path_is_said() -> None:
    f = kernel(ADD)
    a, out = torch.randint(-9, 9, (1000,)).float(), torch.zeros(10)
    compiled(f)(a, out)
    assert torch.equal(out, a.view(100, 10).sum(0))
    notes = [note for step in lowered(f)[1].steps for note in step.notes]
    assert any(note.kind == "slow_path" and "one after another" in note.text for note in notes)


def test_half_operands_are_rounded_before_they_are_held_wider() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            x = T.alloc_buffer((32, 32), "float16", scope="shared.dyn")
            y = T.alloc_buffer((32, 32), "float16", scope="shared.dyn")
            c = T.alloc_buffer((32, 32), "float32", scope="local.fragment")
            T.copy(A[0:32, 0:32], x[0:32, 0:32])
            for i in T.parallel(32):
                for j in T.parallel(32):
                    y[i, j] = T.if_then_else(i == j, T.float16(1), T.float16(0))
            T.gemm(x[0:32, 0:32], y[0:32, 0:32], c[0:32, 0:32], clear_accum=True)
            T.copy(c[0:32, 0:32], B[0:32, 0:32])
"""
    a, out = torch.randn(32, 32), torch.zeros(32, 32)
    compiled(kernel(text))(a, out)
    assert torch.equal(out, a.half().float())
