"""What a user gets wrong ends in a TileError naming the line or the argument; odd but right inputs run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelab as tilelang
import tilelab.language as T
from tilelab.errors import TileError
from tilelab.testing import relative_error

TARGETS = ("llvm", "cuda:sm_80", "hip:gfx942")
LIMIT = 1e-3  # relative error that a right product of float16 inputs stays below


def make_matmul(target: str) -> Any:
    @tilelang.jit(target=target, emulate=target != "llvm")
    def matmul(A, B, block_M=32, block_N=32, block_K=32, threads=64):
        M, K = A.shape
        K, N = B.shape
        C = T.empty((M, N), A.dtype)
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), A.dtype)
            B_shared = T.alloc_shared((block_K, block_N), B.dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])
        return C

    return matmul


def half(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@dataclass(frozen=True)
class WrongCall:
    """A call of the matmul that must be refused, with the code and words of the message."""

    name: str
    call: Callable[[Any], Any]
    code: str
    words: str


def overlapping(*shape: int) -> np.ndarray:
    row = half(shape[-1])
    return np.lib.stride_tricks.as_strided(row, shape, (0, row.itemsize))


WRONG_CALLS = (
    WrongCall("one axis", lambda f: f(half(64), half(32, 32)), "TL502", "A has 1 axis"),
    WrongCall("three axes", lambda f: f(half(2, 32, 32), half(32, 32)), "TL502", "A has 3 axes"),
    WrongCall("a number", lambda f: f(half(32, 32), 3.5), "TL503", "the value is of type float"),
    WrongCall("a list", lambda f: f([[1.0]], half(32, 32)), "TL503", "the value is of type list"),
    WrongCall("None", lambda f: f(half(32, 32), None), "TL503", "the value is None"),
    WrongCall("strings", lambda f: f(np.full((4, 4), "x"), half(32, 32)), "TL503", "A"),
    WrongCall("complex", lambda f: f(half(4, 4).astype(complex), half(4, 4)), "TL503", "complex128"),
    WrongCall("two dtypes", lambda f: f(half(32, 32), np.ones((32, 32), np.float32)), "TL201", "B_shared"),
    WrongCall("inner sizes", lambda f: f(half(32, 48), half(32, 32)), "TL502", "axis 0 of B"),
    WrongCall("overlapping", lambda f: f(overlapping(32, 32), half(32, 32)), "TL505", "A overlap"),
    WrongCall("backwards", lambda f: f(half(32, 32)[::-1], half(32, 32)), "TL505", "A has negative strides"),
    WrongCall("byte order", lambda f: f(half(32, 32).astype(">f2"), half(32, 32)), "TL503", "A has the byte"),
    WrongCall("missing", lambda f: f(half(32, 32)), "TL501", "argument B"),
    WrongCall("one too many", lambda f: f(*[half(32, 32)] * 7), "TL501", "7 were given"),
    WrongCall("misspelt", lambda f: f(half(32, 32), half(32, 32), blok_M=16), "TL501", "'blok_M'"),
    WrongCall(
        "twice", lambda f: f(half(32, 32), half(32, 32), A=half(2, 2)), "TL501", "A of matmul is given"
    ),
    WrongCall("no threads", lambda f: f(half(32, 32), half(32, 32), threads=0), "TL106", "threads=0"),
    WrongCall("negative", lambda f: f(half(32, 32), half(32, 32), threads=-64), "TL106", "threads=-64"),
    WrongCall("half a thread", lambda f: f(half(32, 32), half(32, 32), threads=0.5), "TL106", "threads=0.5"),
    WrongCall("zero block", lambda f: f(half(32, 32), half(32, 32), block_M=0), "TL106", "block size"),
    WrongCall("part of a block", lambda f: f(half(32, 32), half(32, 32), block_N=8.5), "TL109", "8.5"),
    WrongCall("negative block", lambda f: f(half(32, 32), half(32, 32), block_K=-8), "TL112", "-8"),
    WrongCall("block of text", lambda f: f(half(32, 32), half(32, 32), block_K="x"), "TL", "x"),
)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILELAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refused(call: Callable[[], Any], cache: Path) -> TileError:
    with pytest.raises(TileError) as caught:
        call()
    error = caught.value
    text = str(error)
    assert "TVM" not in text
    assert "Traceback" not in text
    assert error.places or any(name in error.message for name in ("A", "B", "matmul")), text
    left = [p for p in cache.rglob("*") if p.is_file()] if cache.exists() else []
    assert left == [], f"a refused kernel left {left} in the cache"
    return error


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrong", WRONG_CALLS, ids=lambda w: w.name)
def test_a_wrong_call_names_the_argument_or_the_line(
    wrong: WrongCall, target: str, empty_cache: Path
) -> None:
    matmul = make_matmul(target)
    error = refused(lambda: wrong.call(matmul), empty_cache)
    assert error.code.startswith(wrong.code), str(error)
    assert wrong.words in error.message, str(error)


def test_an_argument_on_another_device_is_named(empty_cache: Path) -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.ones(32, 32), torch.ones(32, 32, device="meta")
    error = refused(lambda: make_matmul("llvm")(a, b), empty_cache)
    assert error.code == "TL504"
    assert "B is on meta" in error.message


def test_sparse_tensors_are_refused(empty_cache: Path) -> None:
    torch = pytest.importorskip("torch")
    error = refused(lambda: make_matmul("llvm")(torch.eye(8).to_sparse(), torch.eye(8)), empty_cache)
    assert (error.code, "A is a sparse" in error.message) == ("TL505", True), str(error)


@dataclass(frozen=True)
class WrongKernel:
    """A change of the matmul's text that must be refused on the changed line."""

    name: str
    old: str
    new: str
    code: str
    words: str


TEXT = """
import tilelab as tilelang
import tilelab.language as T

@tilelang.jit
def matmul(A, B):
    M, K = A.shape
    K, N = B.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
        a = T.alloc_shared((32, 16), A.dtype)
        b = T.alloc_shared((16, 32), B.dtype)
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for ko in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
            T.copy(A[by * 32, ko * 16], a)
            T.copy(B[ko * 16, bx * 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 32, bx * 32])
    return C
"""
WRONG_KERNELS = (
    WrongKernel("misspelt name", "T.clear(c)", "T.claer(c)", "TL102", "claer"),
    WrongKernel(
        "misspelt keyword", "T.gemm(a, b, c)", "T.gemm(a, b, c, transposeA=True)", "TL103", "transposeA"
    ),
    WrongKernel("a tile as an index", "A[by * 32, ko * 16]", "A[by * 32, a]", "TL107", "the tile a"),
    WrongKernel("text as an index", "A[by * 32, ko * 16]", 'A[by * 32, "k"]', "TL107", "'k'"),
    WrongKernel("a fraction as an index", "A[by * 32, ko * 16]", "A[by * 32, 0.5]", "TL107", "0.5"),
    WrongKernel("gemm the wrong way round", "T.gemm(a, b, c)", "T.gemm(b, a, c)", "TL201", "does not fit"),
    WrongKernel("gemm of a number", "T.gemm(a, b, c)", "T.gemm(a, 3, c)", "TL201", "the number 3"),
    WrongKernel("gemm into shared memory", "T.gemm(a, b, c)", "T.gemm(a, b, b)", "TL201", "b"),
    WrongKernel("no clear", "        T.clear(c)\n", "", "TL204", "c is read before"),
    WrongKernel("a negative tile", "(32, 16)", "(-32, 16)", "TL112", "-32"),
    WrongKernel("an unknown dtype", '"float32")', '"float31")', "TL112", "float31"),
    WrongKernel("a name without value", "T.copy(c, C[", "T.copy(d, C[", "TL108", "d has no value"),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrong", WRONG_KERNELS, ids=lambda w: w.name)
def test_a_wrong_kernel_names_the_line(
    wrong: WrongKernel, target: str, empty_cache: Path, tmp_path: Path
) -> None:
    assert wrong.old in TEXT
    text = TEXT.replace(wrong.old, wrong.new)
    path = tmp_path / "kernel.py"
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    matmul = names["matmul"]
    error = refused(
        lambda: matmul.compile(half(32, 32), half(32, 32), target=target)(half(32, 32)), empty_cache
    )
    assert error.code == wrong.code, str(error)
    assert wrong.words in error.message, str(error)
    assert error.help, str(error)
    where = error.places[0]
    line = text.splitlines()[where.line - 1]
    assert wrong.new.strip().splitlines()[0] in line if wrong.new else "T.gemm" in line


# ---- odd inputs that are right


SHAPES = (
    ("one element", 1, 1, 1), ("ragged", 37, 45, 29), ("one row", 1, 64, 32), ("one column", 64, 1, 32),
    ("no rows", 0, 32, 32), ("no columns", 32, 0, 32), ("nothing to sum", 32, 32, 0), ("nothing", 0, 0, 0),
)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "m", "n", "k"), SHAPES, ids=[s[0] for s in SHAPES])
def test_ragged_empty_and_tiny_inputs_are_right(name: str, m: int, n: int, k: int, target: str) -> None:
    a, b = half(m, k), half(k, n, seed=1)
    c = make_matmul(target)(a, b)
    assert c.shape == (m, n)
    assert c.dtype == np.float16
    want = a.astype(np.float64) @ b.astype(np.float64)
    if want.size:
        assert np.isfinite(c).all()
        assert relative_error(c, want) < LIMIT


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", ["transposed", "sliced", "stepped"])
def test_strided_inputs_are_right_and_recorded(how: str, target: str) -> None:
    a, b = half(33, 40), half(40, 35, seed=1)
    if how == "transposed":
        a = np.ascontiguousarray(a.T).T
    elif how == "sliced":
        a = np.pad(a, ((0, 0), (3, 5)))[:, 3:43]
    else:
        a = np.repeat(a, 2, axis=1)[:, ::2]
    assert not a.flags.c_contiguous
    matmul = make_matmul(target)
    c = matmul(a, b)
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < LIMIT
    notes = [n.text for n in matmul.compile(a, b).notes if n.kind == "slow_path"]
    assert any("A is not contiguous" in text for text in notes), notes


def test_a_slower_path_for_ragged_rows_is_recorded() -> None:
    """Rows of 45 float16 are no multiples of 16 bytes, so copies move fewer bytes at a time and say so."""
    matmul = make_matmul("cuda:sm_80")
    ragged = matmul.trace(half(64, 45), half(45, 64)).payload()
    whole = matmul.trace(half(64, 64), half(64, 64)).payload()

    def slow(payload: Any) -> list[str]:
        return [n.text for s in payload.steps for n in s.notes if n.kind == "slow_path"]

    assert len(slow(ragged)) > len(slow(whole)), slow(ragged)


def test_an_argument_at_an_odd_address_gets_its_own_variant() -> None:
    torch = pytest.importorskip("torch")
    memory = torch.from_numpy(half(32 * 32 + 1))
    a, b = memory[1:].reshape(32, 32), torch.from_numpy(half(32, 32, seed=1))
    matmul = make_matmul("cuda:sm_80")
    c = matmul(a, b)
    assert relative_error(c, a.double() @ b.double()) < LIMIT
    kernel = matmul.compile(a, b)
    assert any("multiple of" in n.text for n in kernel.notes), [n.text for n in kernel.notes]
