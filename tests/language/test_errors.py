"""What a user can get wrong: code, line, column and the numbers in the message."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.language.reading import SPECS, body, failure, write
from tilelab.language.parser import TensorSpec


@dataclass(frozen=True)
class Wrong:
    """Statements inside of T.Kernel with a mark where the error must point."""

    text: str
    code: str
    words: str
    help: str = ""


WRONG = (
    # names and keywords
    Wrong("§T.gem(S, S, F)", "TL102", "no name T.gem", "T.gemm"),
    Wrong("x = §T.alloc_fragmant((2, 2), 'float32')", "TL102", "alloc_fragmant", "T.alloc_fragment"),
    Wrong("§T.tma_copy(S, F)", "TL102", "T.tma_copy is a TileLang name", "T.copy"),
    Wrong("x = §T.float32x4(0)", "TL102", "T.float32x4 is a TileLang name", "T.float32"),
    Wrong("§T.gemm(S, S, F, transpose_b=True)", "TL103", "'transpose_b'", "did you mean transpose_B?"),
    Wrong("§T.copy(S)", "TL103", "missing a required argument: 'dst'", "T.copy takes src, dst"),
    Wrong("x = §undefined + 1", "TL108", "undefined has no value"),
    Wrong("x = §Sx[0, 0]", "TL108", "Sx has no value", "did you mean S"),
    # shapes
    Wrong("x = §T.alloc_shared((0, 4), 'float16')", "TL112", "extent 0 in shape (0, 4)"),
    Wrong("x = §T.alloc_shared((32 / 3, 4), 'float16')", "TL112", "is not a whole number", "//"),
    Wrong("x = §T.alloc_fragment((bx, 4), 'float16')", "TL104", "the extent bx"),
    Wrong("x = §T.alloc_fragment((4,), 'float17')", "TL112", "'float17'", "float16"),
    Wrong("§T.copy(S, V)", "TL201", "S 32 × 32 to V 32: the extents differ"),
    Wrong("§T.copy(A[0:16, 0:16], S)", "TL201", "A 16 × 16 to S 32 × 32"),
    Wrong("§T.copy(V[0], S)", "TL201", "does not fit in V"),
    Wrong("§T.copy(3, S)", "TL201", "the source of T.copy is the number 3"),
    Wrong("§T.reduce_sum(F, S[0:16, 0], dim=1)", "TL201", "along axis 1 gives (32,)", "(32,) or (32, 1)"),
    Wrong("§T.reduce_max(F, V, dim=2)", "TL201", "has no axis 2", "0 to 1"),
    Wrong("T.fill(§V[3:2], 1)", "TL107", "slice 3:2"),
    # gemm
    Wrong("§T.gemm(S[0:16, :], S, F)", "TL201", "S 16×32 @ S 32×32 does not fit F 32×32"),
    Wrong("G = T.alloc_shared((16, 32), 'float16')\n§T.gemm(S, G, F[:, 0:16])", "TL201",
          "S 32×32 @ G 16×32 does not fit F 32×16", "transpose_A=False, transpose_B=True"),
    Wrong("G = T.alloc_shared((32, 32), 'float32')\n§T.gemm(S, G, F)", "TL201", "float16 and G is float32"),
    Wrong("§T.gemm(S, S, S)", "TL201", "lives in shared.dyn", "T.alloc_fragment((32, 32)"),
    Wrong("§T.gemm(A[0:32, 0:32], S, F)", "TL201", "A lives in global memory", "T.alloc_shared"),
    Wrong("§T.gemm(S, S, V)", "TL201", "must have two axes"),
    Wrong("§T.gemm(S, S, F, policy=9)", "TL103", "policy=9", "T.GemmWarpPolicy.FullRow"),
    # indices
    Wrong("V[0] = §F[0.5, 1]", "TL107", "axis 0 of F is indexed with 0.5"),
    Wrong("V[0] = §F[S, 1]", "TL107", "the tile S"),
    Wrong("V[0] = §F[0, 1, 2]", "TL107", "F has 2 axes (32, 32) and is indexed with 3"),
    Wrong("V[0] = §V[40]", "TL107", "index 40 is outside axis 0 of V, which has 32"),
    Wrong("V[0] = §F[V[0], 1]", "TL107", "a float32", "T.cast"),
    Wrong("T.copy(§F[0:32:2, :], S)", "TL107", "step 2"),
    Wrong("§V[0] = S", "TL107", "one element and is given the tile S"),
    Wrong("§for x in V:\n    pass", "TL107", "V is a tile"),
    # operators
    Wrong("x = §S + 1", "TL109", "+ of the whole tile S", "T.Parallel"),
    Wrong("V[0] = §bx / 2", "TL109", "/ works on floats, and its operands are int32", "a // b"),
    Wrong("V[0] = §V[0] & 1", "TL109", "works on integers"),
    Wrong("V[0] = §V[1] / 0", "TL109", "/ by zero", "T.infinity"),
    Wrong("V[0] = §~V[1]", "TL109", "~ works on integers and booleans, and its operand is float32"),
    Wrong("x = §~S", "TL109", "~ of the whole tile S"),
    Wrong("V[0] = §bx // 0", "TL109", "by zero"),
    Wrong("V[0] = §T.exp(S)", "TL109", "T.exp of the whole tile S"),
    Wrong("§C[0] = 2.5", "TL109", "2.5 is not a whole number"),
    Wrong("V[0] = §T.ceildiv(5, 0)", "TL106", "a block size must be at least 1"),
    Wrong("V[0] = §T.infinity('int32')", "TL109", "int32 has no infinity"),
    # control flow
    Wrong("x = 0\nfor i in T.serial(4):\n    §x = x + i", "TL101", "x has a value from", "T.alloc_var"),
    Wrong("if bx > 0:\n    x = 1\nV[0] = §x", "TL108", "inside a branch and is gone", "T.alloc_var"),
    Wrong("§for i in T.Parallel(4, 4):\n    pass", "TL101", "2 indices and 1 names"),
    Wrong("§try:\n    pass\nexcept ValueError:\n    pass", "TL101", "a try statement"),
    Wrong("§class X:\n    pass", "TL101", "a class cannot"),
    Wrong("§async def f():\n    pass", "TL101", "an async function", "plain def"),
    Wrong("§T.clear", "TL101", "T.clear is named and not called", "T.clear(…)"),
    Wrong("if §A:\n    pass", "TL107", "A is a whole tile (64, 64)", "A[i, j] > 0"),
    Wrong("while §S[0:4, :]:\n    pass", "TL107", "S is a whole tile (4, 32)"),
    Wrong("if §not V:\n    pass", "TL107", "V is a whole tile"),
    Wrong("x = (§y := 2)", "TL101", "assignment inside an expression"),
    Wrong("for i in T.Parallel(4):\n    §break", "TL101", "break stands in a parallel loop"),
    Wrong("for i in (1, 2):\n    if bx > i:\n        §break", "TL101", "decided when the kernel"),
    Wrong("§return 3", "TL101", "inside a kernel"),
    Wrong("for i in T.Parallel(4):\n    §for j in T.Parallel(4):\n        V[j] = 1", "TL205", "inside"),
    Wrong("§T.Pipelined(4)", "TL101", "is made and not run"),
    Wrong("for i in §T.Pipelined(4, num_stages=-1):\n    pass", "TL303", "num_stages=-1"),
    Wrong("§with T.Kernel(2) as by:\n    pass", "TL106", "T.Kernel stands twice"),
    Wrong("x = §[1, 2][bx]", "TL104", "bx is known only when"),
    # Python's own errors
    Wrong("x = §[1, 2][5]", "TL111", "IndexError: list index out of range"),
    Wrong("§x, y = 1, 2, 3", "TL111", "3 values are given to 2 names"),
    Wrong("§raise ValueError(f'size {2 + 2}')", "TL111", "ValueError: size 4"),
    Wrong("§assert 2 > 3, f'{2} is not above {3}'", "TL110", "assertion failed: 2 is not above 3"),
    Wrong("§assert 2 > 3", "TL110", "assertion failed: 2 > 3"),
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w.text.replace("§", "")[:40])
def test_the_error_names_the_place_and_the_reason(tmp_path, wrong):
    error = failure(body(tmp_path, wrong.text))
    assert error.code == wrong.code, str(error)
    assert wrong.words in error.message, str(error)
    assert wrong.help in error.help, str(error)


def kernel_line(line: str, before: str = "pass") -> str:
    return f"import tilelab.language as T\n\ndef kernel(A, B, C):\n    {before}\n    {line}\n        pass\n"


LAUNCHES = (
    ("with §T.Kernel(2, threads=-1) as bx:", "TL106", "threads=-1 of T.Kernel is -1"),
    ("with §T.Kernel(2, threads=0) as bx:", "TL106", "must be at least 1"),
    ("with §T.Kernel(2.5) as bx:", "TL106", "grid extent 0 of T.Kernel is 2.5"),
    ("with §T.Kernel(64 / 32) as bx:", "TL106", "is 2.0, which is not a whole number"),
    ("with §T.Kernel(-1) as bx:", "TL106", "is -1, and it must be at least 0"),
    ("with §T.Kernel(1, 2, 3, 4) as bx:", "TL106", "4 grid extents"),
    ("with T.Kernel(§T.ceildiv(8, 0)) as bx:", "TL106", "a block size must be at least 1"),
    ("§with T.Kernel(1, 2) as (bx, by, bz):", "TL106", "2 grid extents and 3 names"),
    ("with §T.Kernel(2, thread=4) as bx:", "TL103", "no keyword 'thread'"),
    ("with §T.Kernell(2) as bx:", "TL102", "Kernell"),
)


@pytest.mark.parametrize(("line", "code", "words"), LAUNCHES)
def test_a_wrong_launch_is_refused(tmp_path, line, code, words):
    error = failure(write(tmp_path, kernel_line(line)))
    assert (error.code, words in error.message) == (code, True), str(error)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("§def kernel(A, B, C):\n    pass\n", "TL106", "kernel has no T.Kernel"),
        ("def kernel(A, B, C):\n    x = §T.alloc_shared((4,), 'float16')\n", "TL106", "outside of T.Kernel"),
        ("def kernel(A, B, C):\n    §A[0, 0] = 1\n", "TL106", "outside of T.Kernel"),
        ("def kernel(A, B, C):\n    N = §T.const('N')\n", "TL104", "the size N is no extent"),
        ("§def kernel(A, *B, C=1):\n    pass\n", "TL105", "takes any number of arguments"),
        ("§def kernel(A, **B):\n    pass\n", "TL105", "takes any number of arguments"),
        ("def kernel(A, B, C):\n    §T.Kernel(1)\n", "TL106", "called and not entered"),
    ],
)  # fmt: skip
def test_statements_around_the_launch(tmp_path, text, code, words):
    specs = {"A": SPECS["A"]} if "*B" in text else SPECS
    error = failure(write(tmp_path, "import tilelab.language as T\n\n" + text), specs)
    assert (error.code, words in error.message) == (code, True), str(error)


def test_an_output_made_in_the_kernel_is_refused(tmp_path):
    assert failure(body(tmp_path, "x = §T.empty((4,), 'float16')")).code == "TL106"


def test_a_kernel_returns_only_its_tensors(tmp_path):
    text = """
    import tilelab.language as T

    §def kernel(X):
        with T.Kernel(1) as bx:
            S = T.alloc_shared((4,), "float16")
        return S
    """
    error = failure(write(tmp_path, text), {"X": TensorSpec((4,), "float16")})
    assert error.code == "TL105"
    assert "returns the tile S" in error.message


def test_columns_are_counted_in_characters(tmp_path):
    assert failure(body(tmp_path, "x = '一二三' + §undefined")).code == "TL108"
    text = str(failure(body(tmp_path, "T.copy(A[0, 0], §Q)  # 形状")))
    assert "T.copy(A[0, 0], Q)  # 形状" in text
    assert text.splitlines()[4].endswith("| " + " " * 24 + "^")


def test_a_loop_of_python_that_never_ends_is_refused(tmp_path):
    error = failure(body(tmp_path, "§while len([1]) > 0:\n    x = 1"))
    assert "has not ended after" in error.message


def test_a_source_that_cannot_be_read_is_an_error():
    from tilelab.errors import TileError
    from tilelab.language.parser import parse_eager

    names: dict[str, object] = {}
    exec("def kernel(A):\n    pass\n", names)
    with pytest.raises(TileError, match="cannot be read") as caught:
        parse_eager(names["kernel"], {})
    assert caught.value.code == "TL105"


CALLS = """
import tilelab
import tilelab.language as T

@tilelab.jit(target="llvm")
def inner(A):
    with T.Kernel(1, threads=32) as bx:
        A[0] = 1

@tilelab.jit(target="llvm")
def outer(A):
    with T.Kernel(1, threads=32) as bx:
        inner(A)

@tilelab.jit(target="llvm")
def itself(A):
    with T.Kernel(1, threads=32) as bx:
        itself(A)

@tilelab.jit(target="llvm")
def named(A, **others):
    with T.Kernel(1, threads=32) as bx:
        A[0] = 1

@tilelab.jit(target="llvm")
def bare(A):
    B = T.empty((4,), "float32")
    B[0] = A[0]
    return B

@tilelab.jit(target="llvm")
def wide(A):
    with T.Kernel(1, threads=2048) as bx:
        A[0] = 1

@tilelab.jit(target="llvm")
def leaves(A):
    with T.Kernel(1, threads=32) as bx:
        for i in T.serial(4):
            if A[i] > 0:
                break
            A[i] = 1

@tilelab.jit(target="llvm")
def flagged(A):
    with T.Kernel(1, threads=32) as bx:
        i = T.alloc_var(T.int32, init=0)
        go = T.alloc_var(T.bool, init=True)
        while go:
            if A[i] > 0:
                go = False
            else:
                A[i] = 1
                i += 1
"""


@pytest.mark.parametrize(
    ("name", "code", "words", "line"),
    [
        ("outer", "TL101", "inner is a kernel, and a kernel cannot be called inside of one", 13),
        ("itself", "TL101", "itself is a kernel", 18),
        ("named", "TL105", "the parameter others of named takes any number of arguments", 21),
        ("bare", "TL106", "bare has no T.Kernel", 26),
        ("wide", "TL302", "2048 threads", 33),
        ("leaves", "TL402", "break in a loop of the kernel cannot be lowered for a CPU", 41),
    ],
)
def test_a_call_of_a_kernel_says_what_the_kernel_lacks(tmp_path, name, code, words, line):
    import numpy as np

    from tilelab.errors import TileError

    written = write(tmp_path, CALLS)
    with pytest.raises(TileError) as caught:
        getattr(written.module, name)(np.zeros(4, np.float32))
    assert caught.value.code == code, str(caught.value)
    assert words in caught.value.message
    assert caught.value.places[0].line == line, str(caught.value)


def test_a_flag_ends_a_loop_where_a_break_cannot(tmp_path):
    import numpy as np

    data = np.array([0, 0, 3, 0], np.float32)
    write(tmp_path, CALLS).module.flagged(data)
    assert data.tolist() == [1, 1, 3, 0]
