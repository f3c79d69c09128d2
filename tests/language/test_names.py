"""The names of the language: what is there, what is missing and says so, and that they cost no TVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tilelab.language as T
from tests.kernels import CASES
from tilelab.errors import TileError
from tilelab.language.names import RANKING, TILELANG_NAMES

EXTRA = """
import tilelab.language as T
import tilelab.layout

def kernel(X):
    n = T.dynamic("n")
    C = T.empty((4, 4), T.dtype("bfloat16"))
    with T.Kernel(T.floordiv(T.min(8, 9), 2)) as bx:
        S = T.alloc_shared((4, 4), T.float8_e4m3fn)
        T.annotate_layout({S: "(4,4):(4,1)"})
        x = T.alloc_var(T.uint32, init=1)
        y = T.cast(T.log2(T.float(x)), T.bfloat16)
        C[0, 0] = T.float32(y)
    return C
"""


def test_the_forty_names_that_kernels_use_most_exist():
    assert len(RANKING) == 40
    for name in RANKING:
        assert hasattr(T, name), name


def test_the_forty_names_are_used_by_kernels_that_read(tmp_path):
    from tests.language.reading import write
    from tilelab.language.parser import TensorSpec, parse_eager

    text = EXTRA + "\n".join(line for c in CASES for line in c.build().source.lines)
    parsed = parse_eager(write(tmp_path, EXTRA).module.kernel, {"X": TensorSpec((4,), "float32")})
    assert '"tl.layout": "(4,4):(4,1)"' in parsed.script()
    folder = Path(__file__).parents[1] / "kernels"
    text += "".join(p.read_text() for p in folder.glob("*.py"))
    assert [name for name in RANKING if f"T.{name}" not in text] == []


def test_every_name_in_all_exists_and_is_described():
    for name in T.__all__:
        value = getattr(T, name)
        assert value.__doc__, name


@pytest.mark.parametrize("name", ["tcgen05_gemm", "Persistent", "alloc_barrier", "float4_e2m1fn", "int8x4"])
def test_a_name_of_tilelang_that_is_missing_says_so(name):
    with pytest.raises(TileError, match="TileLang name") as caught:
        getattr(T, name)
    assert caught.value.code == "TL102"


def test_all_names_of_tilelang_are_either_there_or_known_to_be_missing():
    assert len(TILELANG_NAMES) > 550
    for name in TILELANG_NAMES:
        if not hasattr(T, name):
            with pytest.raises(TileError, match="TileLang name"):
                getattr(T, name)


def test_misspelt_names_suggest_the_nearest_ones():
    with pytest.raises(TileError) as caught:
        T.alloc_sharde  # noqa: B018  the look-up is what is tested
    assert "T.alloc_shared" in caught.value.help


def test_importing_the_language_loads_neither_tvm_nor_numpy():
    code = (
        "import sys, tilelab.language as T\n"
        "T.Tensor((4, 4), T.float16), T.macro(lambda x: x), T.Tensor[(4,), T.int8]\n"
        "print([m for m in ('tvm', 'torch', 'numpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_dtypes_equal_their_names_and_come_from_other_libraries():
    import numpy as np

    assert T.float16 == "float16"
    assert T.dtype(np.dtype("int8")) == T.int8
    assert T.dtype(float) == T.float32 == T.float
    assert (T.bfloat16.bits, T.bool.bytes, T.float8_e4m3fn.is_float, T.uint8.is_signed) == (
        16,
        1,
        True,
        False,
    )


def test_arithmetic_of_known_numbers_gives_numbers():
    assert T.ceildiv(5, 2) == 3
    assert float(T.max(2, 3.0)) == 3.0
    assert T.exp2(3) == 8.0
    assert T.if_then_else(1 > 0, 5, 6) == 5
    assert float(-T.infinity("float32")) == float("-inf")
