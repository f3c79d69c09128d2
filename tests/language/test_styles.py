"""The two styles, sizes from annotations, dynamic sizes, strides, and what belongs to a cache's key."""

from __future__ import annotations

import pytest

import tilelab.language as T
from tests.kernels.matmul import matmul, matmul_annotated, matmul_factory
from tests.language.reading import write
from tilelab.errors import TileError
from tilelab.ir.nodes import Var
from tilelab.ir.rewrite import collect
from tilelab.language.parser import Parameter, TensorSpec, parse_eager, parse_lazy, style_of

ROWS = 3


def scaled(X, factor, n: T.int32, block=32):
    (N,) = X.shape
    Y = T.empty(N, dtype=X.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=ROWS * 32) as bx:
        for i in T.Parallel(block):
            if i < n:
                Y[bx * block + i] = X[bx * block + i] * factor
    return Y


def dynamic_rows(X, block=32):
    rows = T.dynamic("rows")
    N = T.const("N")
    X: T.Tensor[(rows, N), T.float32]
    Y = T.empty((rows, N), T.float32)
    with T.Kernel(T.ceildiv(rows, block), threads=64) as bx:
        for i, j in T.Parallel(block, N):
            Y[bx * block + i, j] = X[bx * block + i, j] + 1
    return Y


def strided(X):
    M, N, S = T.const("M, N, S")
    X: T.StridedTensor((M, N), (S, 1), T.float32)
    Y = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=32) as bx:
        T.copy(X[bx, 0:N], Y[bx, 0:N])
    return Y


def two_outputs(X):
    (N,) = X.shape
    first = T.empty((N,), X.dtype)
    second = T.empty((N,), X.dtype)
    third = T.empty((N,), X.dtype)
    with T.Kernel(1):
        T.copy(X, first)
        T.copy(X, second)
        T.copy(X, third)
    return second, X, first


def sizes_of(parameter: Parameter) -> tuple[object, ...]:
    return parameter.shape


def test_the_style_is_seen_from_the_source():
    assert style_of(matmul) == "eager"
    assert style_of(matmul_factory) == "lazy"


def test_annotated_numbers_are_parameters_and_others_are_constants():
    parsed = parse_eager(scaled, {"X": TensorSpec((64,), "float32"), "factor": 2.5, "n": 7})
    assert [(p.name, p.kind, p.dtype) for p in parsed.parameters] == [
        ("X", "tensor", "float32"),
        ("n", "scalar", "int32"),
        ("Y", "tensor", "float32"),
    ]
    assert dict(parsed.constants) == {"factor": 2.5, "block": 32}
    assert "T.float32(2.5)" in parsed.script()


def test_globals_that_the_source_reads_are_captured():
    parsed = parse_eager(scaled, {"X": TensorSpec((64,), "float32"), "factor": 2.5, "n": 7})
    assert dict(parsed.captured)["ROWS"] == 3
    assert "T" not in dict(parsed.captured)


def test_closure_values_are_captured():
    parsed = parse_lazy(matmul_factory, (64, 64, 64))
    assert dict(parsed.captured)["block_M"] == 64
    assert dict(parsed.captured)["dtype"] == "float16"


def test_a_dynamic_size_is_a_variable_of_the_shape():
    parsed = parse_eager(dynamic_rows, {"X": TensorSpec((100, 64), "float32")})
    assert [sizes_of(p) for p in parsed.parameters] == [("rows", 64), ("rows", 64)]
    names = {str(v.name) for v in collect(parsed.func.body, Var)}
    assert "rows" in names
    assert 'T.launch_thread("blockIdx.x", (rows + 31) // 32)' in parsed.script()


def test_a_size_that_is_not_given_becomes_one_variable_for_all_that_share_its_name():
    parsed = parse_eager(
        matmul_annotated, {"A": TensorSpec((None, 64), "float16"), "B": TensorSpec((64, 128), "float16")}
    )
    assert [sizes_of(p) for p in parsed.parameters] == [("M", 64), (64, 128), ("M", 128)]


def test_an_unnamed_size_that_is_not_given_takes_the_name_of_its_axis():
    parsed = parse_eager(scaled, {"X": TensorSpec((None,), "float32"), "factor": 1, "n": 7})
    assert sizes_of(parsed.parameters[0]) == ("X_0",)


def test_strides_belong_to_the_buffer_unless_they_are_those_of_a_contiguous_tensor():
    parsed = parse_eager(scaled, {"X": TensorSpec((64,), "float32", (2,)), "factor": 1, "n": 7})
    assert parsed.parameters[0].strides == (2,)
    parsed = parse_eager(scaled, {"X": TensorSpec((64,), "float32", (1,)), "factor": 1, "n": 7})
    assert parsed.parameters[0].strides is None
    parsed = parse_eager(scaled, {"X": TensorSpec((64,), "float32", (None,)), "factor": 1, "n": 7})
    assert parsed.parameters[0].strides == ("X_stride_0",)


def test_a_strided_annotation_binds_its_strides():
    parsed = parse_eager(strided, {"X": TensorSpec((8, 16), "float32", (40, 1))})
    assert parsed.parameters[0].strides == (40, 1)


def test_a_zero_size_argument_reads():
    parsed = parse_eager(matmul, {"A": TensorSpec((0, 64), "float16"), "B": TensorSpec((64, 32), "float16")})
    assert 'T.launch_thread("blockIdx.y", 0)' in parsed.script()


def test_outputs_follow_the_order_of_return_and_inputs_may_be_returned():
    parsed = parse_eager(two_outputs, {"X": TensorSpec((64,), "float32")})
    assert parsed.returns == (2, 0, 1)
    assert parsed.outputs == (2, 1, 3)
    assert not parsed.single


def test_prim_func_reads_at_its_definition_with_dynamic_sizes_and_numbers():
    m = T.dynamic("m")

    @T.prim_func
    def main(X: T.Tensor((m, 8), "float32"), n: T.int32, Y: T.Tensor[(m, 8), T.float32]):
        with T.Kernel(m, threads=32) as bx:
            for j in T.serial(n):
                Y[bx, j] = X[bx, j]

    assert [(p.name, p.kind, p.shape) for p in main.parameters] == [
        ("X", "tensor", ("m", 8)),
        ("n", "scalar", ()),
        ("Y", "tensor", ("m", 8)),
    ]
    assert "for j in range(n):" in main.script()
    assert main.with_outputs(-1).outputs == (2,)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ({"A": TensorSpec((64,), "float16"), "B": TensorSpec((64, 64), "float16")}, "TL502", "1 axes (64)"),
        ({"A": TensorSpec((8, 8), "float32"), "B": TensorSpec((8, 8), "float16")}, "TL503", "A is float32"),
        ({"A": TensorSpec((8, 16), "float16"), "B": TensorSpec((8, 8), "float16")}, "TL502",
         "axis 0 of B has 8 elements, and K is 16 from axis 1 of A"),
        ({"A": TensorSpec((8, 8), "float16")}, "TL501", "lacks the argument B"),
        ({"A": TensorSpec((8, 8), "float16"), "Q": 1}, "TL501", "no parameter 'Q'"),
        ({"A": TensorSpec((8, 8), "complex64"), "B": 1}, "TL112", "complex64"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(arguments, code, words):
    with pytest.raises(TileError) as caught:
        parse_eager(matmul_annotated, arguments)
    assert caught.value.code == code
    assert words in caught.value.message


def test_a_factory_that_returns_no_kernel_is_refused():
    with pytest.raises(TileError, match=r"returns a int and no T\.prim_func") as caught:
        parse_lazy(lambda: 3)
    assert caught.value.code == "TL105"


def test_outputs_must_be_tensor_parameters():
    with pytest.raises(TileError, match="no tensor parameter 7"):
        parse_lazy(matmul_factory, (64, 64, 64), out_idx=7)


SIGNATURES = {
    "no annotation": "def main(X):",
    "the annotation 'nonsense'": "def main(X: 'str(\"nonsense\")'):",
}


@pytest.mark.parametrize("words", SIGNATURES)
def test_a_prim_func_needs_annotations(tmp_path, words):
    head, tail = "import tilelab.language as T\n\n@T.prim_func\n", "\n    with T.Kernel(1):\n        pass\n"
    with pytest.raises(TileError) as caught:
        write(tmp_path, head + SIGNATURES[words] + tail)
    assert caught.value.code == "TL105"
    assert words in caught.value.message
    assert caught.value.places[0].line == 4
