"""Macros and functions defined in kernels: inlined, with their own names and the calls that led to them."""

from __future__ import annotations

import pytest

import tilelab.language as T
from tests.language.reading import body, failure, lines, read, write
from tilelab.errors import TileError
from tilelab.ir.nodes import SeqStmt, Store
from tilelab.ir.spans import call_sites, place_of
from tilelab.ir.statements import each_statement
from tilelab.language.parser import TensorSpec, parse_eager

FACTOR = 4

MODULE = """
import tilelab.language as T

FACTOR = 4

@T.macro
def inner(tile, i):
    tile[i] = FACTOR

@T.macro
def outer(tile, n=2):
    i = n + 1
    inner(tile, i)
    return i

def kernel(X):
    with T.Kernel(1) as bx:
        i = 9
        L = T.alloc_local((16,), "float32")
        n = outer(L)
        L[n] = i
"""


def test_a_macro_is_inlined_with_names_of_its_own(tmp_path):
    parsed = parse_eager(write(tmp_path, MODULE).module.kernel, {"X": TensorSpec((4,), "float32")})
    assert [line.strip() for line in parsed.script().splitlines()[-2:]] == [
        "L[3] = T.float32(4.0)",
        "L[3] = T.float32(9.0)",
    ]


def test_a_statement_of_a_macro_knows_the_calls_that_led_to_it(tmp_path):
    parsed = parse_eager(write(tmp_path, MODULE).module.kernel, {"X": TensorSpec((4,), "float32")})
    stores = [s for s in each_statement(parsed.func.body) if isinstance(s, Store)]
    assert call_sites(stores[0].span) == (20, 13, 8)
    assert place_of(stores[0].span).line == 20
    assert call_sites(stores[1].span) == ()


def test_what_a_macro_reads_is_captured(tmp_path):
    parsed = parse_eager(write(tmp_path, MODULE).module.kernel, {"X": TensorSpec((4,), "float32")})
    assert dict(parsed.captured)["inner.FACTOR"] == 4


def test_a_function_in_a_kernel_sees_its_names_and_is_inlined(tmp_path):
    text = """
    width = 2

    def put(i, value=width):
        for j in T.serial(width):
            V[i + j] = value

    put(0)
    put(i=4, value=7)
    """
    assert lines(read(tmp_path, text)) == [
        "for j in range(2):",
        "    V[j] = T.float32(2.0)",
        "for j in range(2):",
        "    V[4 + j] = T.float32(7.0)",
    ]


def test_a_plain_function_outside_builds_statements_too(tmp_path):
    head = """
import tilelab.language as T

def put(tile, i):
    T.clear(tile)
    tile[i] += 1

def kernel(A, B, C):
    with T.Kernel(2, threads=128) as bx:
        S = T.alloc_shared((32, 32), "float16")
        F = T.alloc_fragment((32, 32), "float32")
        V = T.alloc_fragment((32,), "float32")
"""
    written = body(tmp_path, "put(V, bx)", head)
    from tests.language.reading import SPECS

    assert lines(parse_eager(written.module.kernel, SPECS)) == [
        "T.fill(V[0:32], T.float32(0.0))",
        "V[bx] = V[bx] + T.float32(1.0)",
    ]


def test_a_macro_without_an_end_is_refused(tmp_path):
    error = failure(body(tmp_path, "def again(i):\n    again(i)\n§again(0)"))
    assert "calls of macros inside each other" in error.message


def test_a_return_inside_a_loop_of_a_macro_is_refused(tmp_path):
    text = "def find(tile):\n    for i in T.serial(4):\n        return i\n§find(V)"
    assert failure(body(tmp_path, text)).message == "return stands inside a loop"


def test_a_macro_outside_of_a_kernel_is_refused():
    @T.macro
    def helper(x):
        return x + FACTOR

    with pytest.raises(TileError, match="helper is called outside of a kernel"):
        helper(1)


def test_every_statement_of_the_corpus_has_a_place():
    from tests.kernels import CASES

    for case in CASES:
        for statement in each_statement(case.build().func.body):
            if not isinstance(statement, SeqStmt):
                assert place_of(statement.span) is not None, (case.name, statement)
