"""Operations and nests that take a part of a fragment."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab.language as T
from tests.kernels.case import KernelCase, floats
from tests.test_meaning import PIPELINES, poisoned
from tilelab.emulate.compare import compare_steps
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.pipelines.run import run, start_trace

GPUS = ("cuda:sm_80", "hip:gfx942")


def double_a_half(A, offset=8):
    C = T.empty((16, 32), T.float32)
    with T.Kernel(1, threads=64):
        tile = T.alloc_fragment((16, 32), T.float32)
        T.copy(A, tile)
        for i, j in T.Parallel(16, 16):
            tile[i, j + offset] = tile[i, j + offset] * 2
        T.copy(tile, C)
    return C


def two_parts(A):
    C = T.empty((16, 16), T.float32)
    with T.Kernel(1, threads=64):
        tile = T.alloc_fragment((16, 32), T.float32)
        half = T.alloc_fragment((16, 16), T.float32)
        T.copy(A, tile)
        for i, j in T.Parallel(16, 16):
            half[i, j] = tile[i, j + 16]
        T.copy(half, C)
    return C


def diagonal(A):
    C = T.empty((16,), T.float32)
    with T.Kernel(1, threads=64):
        tile = T.alloc_fragment((16, 16), T.float32)
        line = T.alloc_fragment((16,), T.float32)
        T.copy(A, tile)
        for i in T.Parallel(16):
            line[i] = tile[i, i]
        T.copy(line, C)
    return C


def multiply_into_a_part(A):
    C = T.empty((32, 16), T.float32)
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((16, 16), T.float16)
        sums = T.alloc_fragment((32, 16), T.float32)
        T.copy(A, tile)
        T.clear(sums)
        T.gemm(tile, tile, sums[0:16, 0:16])
        T.copy(sums, C)
    return C


def compiled(function, target: str, *shape: int, dtype: str = "float32", **constants):
    case = KernelCase("k", function, lambda: (floats(*shape, dtype=dtype),), lambda A: (A,), 0.0, constants)
    parsed = case.build()
    f = b.with_attrs(parsed.func, target=target)
    trace = start_trace(f, parsed.source)
    run(f, PIPELINES[target], trace)
    return trace


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("offset", [0, 8, 16])
def test_a_nest_over_a_part_leaves_the_rest_alone(target: str, offset: int) -> None:
    A = floats(16, 32, dtype="float32")
    trace = compiled(double_a_half, target, 16, 32, offset=offset)
    want = A.copy()
    want[:, offset : offset + 16] *= 2
    steps = [(s.name, s.function) for s in trace.steps]
    change = compare_steps(
        steps, lambda: {"A": A.copy(), "C": poisoned((16, 32), "float32")}, {"C": want}, 0.0, seeds=(0,)
    )
    assert change is None, str(change)
    assert not np.array_equal(want, A)


@pytest.mark.parametrize(
    ("function", "shape", "dtype", "code", "words"),
    [
        (two_parts, (16, 32), "float32", "TL205", "different parts"),
        (diagonal, (16, 16), "float32", "TL205", "indexed with i, i"),
        (multiply_into_a_part, (16, 16), "float16", "TL201", "0:16, 0:16"),
    ],
)
def test_what_threads_cannot_find_is_refused_with_the_line(function, shape, dtype, code, words) -> None:
    with pytest.raises(TileError) as caught:
        compiled(function, "cuda:sm_80", *shape, dtype=dtype)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert caught.value.places
    assert caught.value.help
