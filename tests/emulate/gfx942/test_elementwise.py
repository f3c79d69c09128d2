"""Everyday arithmetic as the compiler expands it (division, bit counts, narrow integers), against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tilelab.emulate.gfx942 import run

TABLE = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], np.uint32)


@dataclass(frozen=True)
class Function:
    """A kernel of elementwise.hip: dtypes in and out, what it computes, and the relative error allowed."""

    kernel: str
    source: type
    result: type
    wanted: Callable[[np.ndarray, np.ndarray], np.ndarray]
    tolerance: float = 0


def round_half_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def truncating_divide(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    quotient = np.abs(x) // np.abs(z)
    return np.where((x < 0) != (z < 0), -quotient, quotient)


def bfloat_bits(x: np.ndarray) -> np.ndarray:
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def bfloat_value(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def count(x: np.ndarray, what: Callable[[int], int]) -> np.ndarray:
    return np.array([what(int(v)) for v in x], np.uint32)


def bits32(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    zeros_above = count(z | 1, lambda v: 32 - v.bit_length())
    zeros_below = count(x | 0x80000000, lambda v: (v & -v).bit_length() - 1)
    return count(x, lambda v: bin(v).count("1")) + 100 * zeros_above + 10000 * zeros_below


def bits64(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return count(x, lambda v: bin(v).count("1")) + 100 * count(z | 1, lambda v: 64 - v.bit_length())


F32, F16, F64 = np.float32, np.float16, np.float64
FUNCTIONS = (
    Function("divide_f32", F32, F32, lambda x, z: x / z, 1e-7),
    Function("square_root_f32", F32, F32, lambda x, z: np.sqrt(np.abs(x)), 1e-7),
    Function("exponential_f32", F32, F32, lambda x, z: np.exp(x), 1e-6),
    Function("logarithm_f32", F32, F32, lambda x, z: np.log(np.abs(x)), 1e-6),
    Function("sine_f32", F32, F32, lambda x, z: np.sin(x), 1e-6),
    Function("remainder_f32", F32, F32, lambda x, z: np.fmod(x, z), 1e-5),
    Function("round_f32", F32, F32, lambda x, z: round_half_away(x)),
    Function("sigmoid_f32", F32, F32, lambda x, z: 1 / (1 + np.exp(-x)), 1e-6),
    Function("clamp_f32", F32, F32, lambda x, z: np.clip(x, -1, 1)),
    Function("copysign_f32", F32, F32, np.copysign),
    Function("multiply_add_f64", F64, F64, lambda x, z: x * z + x, 1e-15),
    Function("divide_f64", F64, F64, lambda x, z: x / z, 1e-15),
    Function("square_root_f64", F64, F64, lambda x, z: np.sqrt(np.abs(x)), 1e-15),
    Function("divide_i32", np.int32, np.int32, lambda x, z: truncating_divide(x.astype(np.int64), z | 1)),
    Function("modulo_u32", np.uint32, np.uint32, lambda x, z: x % (z | 1)),
    Function("divide_i64", np.int64, np.int64, lambda x, z: truncating_divide(x, z | 1)),
    Function("multiply_i64", np.int64, np.int64, lambda x, z: x * z),
    Function("shift_i64", np.int64, np.int64, lambda x, z: x >> (z & 63)),
    Function("average_u8", np.uint8, np.uint8, lambda x, z: (x.astype(int) + z + 1) // 2),
    Function("absolute_i8", np.int8, np.int16, lambda x, z: np.abs(x.astype(int))),
    Function("product_i16", np.int16, np.int32, lambda x, z: x.astype(int) * z),
    Function("sum_u16", np.uint16, np.uint16, lambda x, z: x + z),
    Function("rotate_u32", np.uint32, np.uint32, lambda x, z: x << (z & 31) | x >> ((32 - (z & 31)) & 31)),
    Function("bits_u32", np.uint32, np.uint32, bits32),
    Function("bits_u64", np.uint64, np.uint32, bits64),
    Function("multiply_add_f16", F16, F16, lambda x, z: x.astype(F64) * z + x, 2**-11),
    Function("divide_f16", F16, F16, lambda x, z: x.astype(F64) / z, 2**-11),
    Function("to_float_i32", np.int32, F32, lambda x, z: x.astype(F32)),
    Function("to_integer_f32", F32, np.int32, lambda x, z: np.trunc(x * F32(1000))),
    Function("to_half_f32", F32, F16, lambda x, z: x.astype(F16)),
    Function("to_bfloat_f32", F32, np.uint16, lambda x, z: bfloat_bits(x)),
    Function("add_bfloat", np.uint16, np.uint16, lambda x, z: bfloat_bits(bfloat_value(x) + bfloat_value(z))),
    Function("table_u32", np.uint32, np.uint32, lambda x, z: TABLE[x & 15] + z),
)


def inputs(function: Function) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    dtype = np.dtype(function.source)
    if function.kernel == "add_bfloat":
        return tuple(bfloat_bits(rng.standard_normal(100)) for _ in range(2))
    if dtype.kind == "f":
        return tuple((rng.standard_normal(100) * 3).astype(dtype) for _ in range(2))
    info = np.iinfo(dtype)
    return tuple(rng.integers(info.min, info.max, 100, dtype, endpoint=True) for _ in range(2))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kernel)
def test_elementwise_function(build, function):
    x, z = inputs(function)
    y = np.zeros(100, function.result)
    run(build("elementwise"), function.kernel, (2, 1, 1), (64, 1, 1), [x, z, y, 100])
    with np.errstate(over="ignore"):
        if np.dtype(function.source) == np.float32 and function.tolerance:
            x, z = x.astype(np.float64), z.astype(np.float64)
        wanted = function.wanted(x, z)
    if function.tolerance:
        np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=function.tolerance, atol=1e-7)
    else:
        np.testing.assert_array_equal(y, wanted.astype(function.result))
