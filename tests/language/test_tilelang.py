"""What TileLang's own sources rely on: sizes given to `compile`, promotion of small integers, its names."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab as tilelang
import tilelab.language as T
from tests.language.reading import lines, read
from tilelab.errors import TileError


@tilelang.jit
def product(A, B, block_M, block_N, block_K=32, dtype=T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.annotate_layout({A_shared: tilelang.layout.make_swizzled_layout(A_shared)})
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def unpack(Q, scale=1):
    M, N = T.const("M, N")
    Q: T.Tensor((M, N // 2), T.uint8)
    X = T.empty((M, N), T.int32)
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(N // 2):
            X[bx, 2 * j] = ((Q[bx, j] & 0x0F) - 8) * scale
            X[bx, 2 * j + 1] = ((Q[bx, j] >> 4) - 8) * scale
    return X


@tilelang.jit
def through_names(A, B, transposed=False):
    M, N, K = T.const("M, N, K")
    shape = [N, K] if transposed else [K, N]
    A: T.Tensor((M, K), T.float32)
    B: T.Tensor(shape, T.float32)
    C = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(N):
            C[bx, j] = A[bx, j] + (B[j, bx] if transposed else B[bx, j])
    return C


@tilelang.jit
def open_rows(A, block=32):
    rows = T.dynamic("rows")
    A: T.Tensor((rows, 32), T.float32)
    C = T.empty((rows, 32), T.float32)
    with T.Kernel(T.ceildiv(rows, block), threads=32) as bx:
        for i, j in T.Parallel(block, 32):
            C[bx * block + i, j] = A[bx * block + i, j] + 1
    return C


SIZES = {"M": 64, "N": 32, "K": 64, "block_M": 32, "block_N": 32}


def test_an_eager_kernel_compiles_from_the_sizes_that_const_names():
    kernel = product.compile(**SIZES)
    assert [p.shape for p in kernel.parsed.parameters] == [(64, 64), (64, 32), (64, 32)]
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype("float16") for s in ((64, 64), (64, 32)))
    wanted = a.astype("float64") @ b.astype("float64")
    assert np.linalg.norm(kernel(a, b) - wanted) < 1e-3 * np.linalg.norm(wanted)
    assert product.get_tir(**SIZES).same_as(kernel.parsed.func) or "T.gemm" in product.parse(**SIZES).script()


def test_sizes_and_tensors_come_to_the_same_kernel():
    tensors = T.Tensor((64, 64), "float16"), T.Tensor((64, 32), "float16")
    assert product.compile(*tensors, 32, 32) is product.compile(**SIZES)


def test_a_trace_takes_sizes_and_repeats_them_in_its_call():
    trace = product.trace(**SIZES, target="llvm")
    assert "M=64" in trace.call


def test_a_size_that_no_extent_shows_is_given_in_the_call():
    Q = np.arange(256, dtype=np.uint8).reshape(4, 64)
    wanted = np.stack([(Q & 15).astype(int) - 8, (Q >> 4).astype(int) - 8], -1).reshape(4, 128)
    assert (unpack(Q, N=128) == wanted).all()
    assert (unpack(Q, scale=2, N=128) == 2 * wanted).all()
    assert (unpack.compile(M=4, N=128)(Q) == wanted).all()


@pytest.mark.parametrize("transposed", [False, True])
def test_sizes_are_found_in_shapes_that_variables_hold(transposed):
    a = np.arange(16, dtype="float32").reshape(4, 4)
    b = np.arange(24, dtype="float32").reshape((6, 4) if transposed else (4, 6))[:4, :4].copy()
    assert (through_names(a, b, transposed) == a + (b.T if transposed else b)).all()
    wrong = np.zeros((3, 4), "float32") if not transposed else np.zeros((4, 3), "float32")
    with pytest.raises(TileError) as caught:
        through_names(a, wrong, transposed)
    assert caught.value.code == "TL502"


def test_a_kernel_whose_sizes_are_all_open_compiles_without_arguments():
    kernel = open_rows.compile()
    for rows in (5, 64):
        assert (kernel(np.zeros((rows, 32), "float32")) == 1).all()
    assert "open_rows" in open_rows.get_kernel_source(target="cuda:sm_80")


@pytest.mark.parametrize(
    ("sizes", "code", "word"),
    [
        ({"M": 64, "N": 32, "block_M": 32, "block_N": 32}, "TL501", "size K is not given"),
        ({**SIZES, "Kk": 1}, "TL501", "no argument 'Kk'"),
        ({"M": 64, "N": 32, "K": 64, "block_M": 32}, "TL501", "block_N"),
    ],
)
def test_sizes_that_are_missing_or_strange_are_named(sizes, code, word):
    with pytest.raises(TileError, match=word) as caught:
        product.compile(**sizes)
    assert caught.value.code == code


def test_a_size_that_contradicts_a_tensor_is_refused():
    with pytest.raises(TileError) as caught:
        product(np.zeros((64, 64), "float16"), np.zeros((64, 32), "float16"), 32, 32, M=128)
    assert caught.value.code == "TL502"


def test_a_python_int_widens_a_small_integer_but_not_in_bit_operations(tmp_path):
    text = """
    u = T.alloc_var("uint8", init=200)
    s = T.alloc_var("int8", init=3)
    w = T.alloc_var("int64", init=3)
    F[0, 0] = u + 100
    F[0, 1] = 1 - u
    F[0, 2] = s * 1000
    F[0, 3] = w * 4294967296
    F[0, 4] = (u & 15) >> 4
    F[0, 5] = T.if_then_else(bx > 0, u, 0)
    """
    stores = [line.split(" = ")[1] for line in lines(read(tmp_path, text)) if line.startswith("F[")]
    assert stores == [
        'T.Cast("float32", T.Cast("int32", u) + 100)',
        'T.Cast("float32", 1 - T.Cast("int32", u))',
        'T.Cast("float32", T.Cast("int32", s) * 1000)',
        'T.Cast("float32", w * T.int64(4294967296))',
        'T.Cast("float32", (u & T.uint8(15)) >> T.uint8(4))',
        'T.Cast("float32", T.if_then_else(bx > 0, T.Cast("int32", u), 0))',
    ]


def test_orders_of_the_grid_have_tilelangs_names(tmp_path):
    for given, kept in (("row", "row:4"), ("column", "col:4")):
        parsed = read(tmp_path, f"T.use_swizzle(4, order={given!r})\nT.clear(F)")
        assert parsed.func.attrs["tl.swizzle"] == kept


def test_names_beside_the_language_are_where_tilelang_has_them():
    from tilelab.layout import make_swizzled_layout
    from tilelab.math import cdiv, next_power_of_2
    from tilelab.profiler import do_bench

    assert tilelang.profiler.do_bench is do_bench
    assert tilelang.layout.make_swizzled_layout is make_swizzled_layout
    assert [next_power_of_2(n) for n in (1, 2, 3, 64, 65)] == [1, 2, 4, 64, 128]
    assert tilelang.cdiv(7, 2) == cdiv(7, 2) == 4
    assert T.float16.itemsize == 2
    assert tilelang.JITKernel is tilelang.Kernel
    with pytest.raises(TileError):
        next_power_of_2(0)


def test_references_of_the_profiler_get_torch_tensors_when_torch_is_loaded():
    torch = pytest.importorskip("torch")
    profiler = product.compile(**SIZES).get_profiler()
    assert all(isinstance(x, torch.Tensor) for x in profiler.inputs())
    profiler.assert_allclose(lambda a, b: (a.float() @ b.float()).half())
