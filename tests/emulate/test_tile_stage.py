import ml_dtypes
import numpy as np
import pytest

from tilelab.emulate import emulate
from tilelab.errors import TileError
from tilelab.ir.text import parse_function

MATMUL = """
@T.prim_func
def matmul(A: T.Buffer(({M}, {K}), "{dtype}"), B: T.Buffer(({K}, {N}), "{dtype}"), C: T.Buffer(({M}, {N}), "{dtype}")):
    T.func_attr({{"tl.stage": "tile", "tl.threads": 128}})
    with T.launch_thread("blockIdx.x", {gx}) as bx:
        with T.launch_thread("blockIdx.y", {gy}) as by:
            with T.launch_thread("threadIdx.x", 128) as tx:
                A_shared = T.alloc_buffer((64, 32), "{dtype}", scope="shared.dyn")
                B_shared = T.alloc_buffer((32, 64), "{dtype}", scope="shared.dyn")
                C_local = T.alloc_buffer((64, 64), scope="local.fragment")
                T.fill(C_local[0:64, 0:64], T.float32(0))
                for ko in T.serial({steps}, annotations={{"tl.num_stages": 3}}):
                    T.copy(A[by * 64:by * 64 + 64, ko * 32:ko * 32 + 32], A_shared[0:64, 0:32])
                    T.copy(B[ko * 32:ko * 32 + 32, bx * 64:bx * 64 + 64], B_shared[0:32, 0:64])
                    T.gemm(A_shared[0:64, 0:32], B_shared[0:32, 0:64], C_local[0:64, 0:64])
                T.copy(C_local[0:64, 0:64], C[by * 64:by * 64 + 64, bx * 64:bx * 64 + 64])
"""  # noqa: E501


def matmul(m: int, n: int, k: int, dtype: str = "float16"):
    sizes = {
        "M": m,
        "N": n,
        "K": k,
        "gx": -(-n // 64),
        "gy": -(-m // 64),
        "steps": -(-k // 32),
        "dtype": dtype,
    }
    return parse_function(MATMUL.format(**sizes))


def run_matmul(m: int, n: int, k: int, kind=np.float16, dtype: str = "float16", **how):
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(s).astype(kind) for s in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, kind)
    report = emulate(matmul(m, n, k, dtype), {"A": a, "B": b, "C": c}, **how)
    want = a.astype(np.float64) @ b.astype(np.float64)
    return c, want, report


@pytest.mark.parametrize(("kind", "dtype", "tolerance"), [
    (np.float16, "float16", 1e-3), (ml_dtypes.bfloat16, "bfloat16", 8e-3), (np.float32, "float32", 1e-6),
])  # fmt: skip
def test_tile_matmul_gives_the_product(kind, dtype, tolerance):
    c, want, report = run_matmul(128, 64, 96, kind, dtype)
    assert np.linalg.norm(c.astype(np.float64) - want) < tolerance * np.linalg.norm(want)
    assert report.blocks == 2


def test_ragged_edges_read_zero_and_are_not_written():
    c, want, _ = run_matmul(77, 65, 50)
    assert np.linalg.norm(c.astype(np.float64) - want) < 1e-3 * np.linalg.norm(want)


def test_a_subset_of_the_grid_writes_only_its_blocks():
    c, _, report = run_matmul(128, 128, 32, grid=[(1, 0)])
    assert report.blocks == 1
    assert np.isnan(c[:64, :64].astype(np.float32)).all()
    assert not np.isnan(c[:64, 64:].astype(np.float32)).any()


def test_arguments_are_taken_in_order_and_a_missing_one_is_named():
    f = matmul(64, 64, 32)
    a = np.ones((64, 32), np.float16)
    b, c = np.ones((32, 64), np.float16), np.zeros((64, 64), np.float16)
    emulate(f, [a, b, c])
    assert (c == 32).all()
    with pytest.raises(TileError, match=r"TL501.*argument is given for C"):
        emulate(f, {"A": a, "B": b})
