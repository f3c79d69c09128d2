"""What a nest does with places that stay while its points move, and with tensors beyond 32-bit offsets."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tilelab.language as T
from tilelab.emulate import emulate
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.language.parser import TensorSpec, parse_eager
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.hip import HIP
from tilelab.pipelines.run import run, start_trace


def compiled(function, target="cuda:sm_80", **arguments):
    parsed = parse_eager(function, arguments)
    f = b.with_attrs(parsed.func, target=target)
    return run(f, HIP if target.startswith("hip") else CUDA, start_trace(f, parsed.source))


def last_one(A):
    C = T.empty((1,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            C[0] = A[i]
    return C


def total(A):
    C = T.empty((1,), "float32")
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((1,), "float32")
        for i in T.Parallel(1):
            S[i] = 0.0
        for i in T.Parallel(64):
            S[0] += A[i]
        for i in T.Parallel(1):
            C[i] = S[i]
    return C


@pytest.mark.parametrize("function", [last_one, total])
def test_many_writers_of_one_element_compile_and_are_found_as_a_race(function) -> None:
    f = compiled(function, A=TensorSpec((64,), "float32"))
    with pytest.raises(TileError) as caught:
        emulate(f, [np.arange(64, dtype=np.float32), np.zeros(1, np.float32)])
    assert caught.value.code == "TL603"
    compiled(function, "hip:gfx942", A=TensorSpec((64,), "float32"))


def scaled(A):
    M, N = A.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, 256), M, threads=128) as (bx, by):
        for i in T.Parallel(256):
            C[by, bx * 256 + i] = A[by, bx * 256 + i] * 2.0
    return C


@pytest.mark.parametrize("shape", [(2**16, 2**16), (3, 2**31)])
def test_tensors_beyond_32_bit_offsets_are_refused(shape) -> None:
    with pytest.raises(TileError) as caught:
        compiled(scaled, A=TensorSpec(shape, "int8"))
    assert caught.value.code == "TL305"


def test_the_longest_tensor_that_32_bits_count_is_taken() -> None:
    compiled(scaled, A=TensorSpec((2**15, 2**16), "int8"))


def test_barriers_of_many_statements_are_found_in_time_that_grows_with_them() -> None:
    def repeated(count):
        def many(A):
            C = T.empty((64,), "float32")
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    for _ in [None] * count:
                        C[i] = A[i] + C[i]
            return C

        started = time.process_time()
        compiled(many, A=TensorSpec((64,), "float32"))
        return time.process_time() - started

    repeated(10)
    assert repeated(200) < 40 * max(repeated(20), 0.02)
