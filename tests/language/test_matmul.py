"""The seed matmul: its IR, its places, its parameters."""

from __future__ import annotations

import time

from tests.kernels import case
from tests.kernels.matmul import matmul, matmul_annotated
from tilelab.ir.nodes import SeqStmt, same_structure
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement
from tilelab.ir.text import parse_function
from tilelab.language.parser import Parameter, TensorSpec, parse_eager, parse_lazy
from tilelab.language.parser.source import read

EXPECTED = """
@T.prim_func
def matmul(A: T.Buffer((512, 1024), "float16"), B: T.Buffer((1024, 768), "float16"), C: T.Buffer((512, 768), "float16")):
    T.func_attr({"tl.stage": "tile", "tl.outputs": [2], "tl.threads": 128})
    with T.launch_thread("blockIdx.x", 6) as bx:
        with T.launch_thread("blockIdx.y", 4) as by:
            with T.launch_thread("threadIdx.x", 128) as tx:
                A_shared = T.alloc_buffer((128, 32), "float16", scope="shared.dyn")
                B_shared = T.alloc_buffer((32, 128), "float16", scope="shared.dyn")
                C_local = T.alloc_buffer((128, 128), scope="local.fragment")
                T.fill(C_local[0:128, 0:128], T.float32(0))
                for ko in T.serial(32, annotations={"tl.num_stages": 3}):
                    T.copy(A[by * 128:by * 128 + 128, ko * 32:ko * 32 + 32], A_shared[0:128, 0:32])
                    T.copy(B[ko * 32:ko * 32 + 32, bx * 128:bx * 128 + 128], B_shared[0:32, 0:128])
                    T.gemm(A_shared[0:128, 0:32], B_shared[0:32, 0:128], C_local[0:128, 0:128])
                T.copy(C_local[0:128, 0:128], C[by * 128:by * 128 + 128, bx * 128:bx * 128 + 128])
"""  # noqa: E501  one parameter list
SPECS = {"A": TensorSpec((512, 1024), "float16"), "B": TensorSpec((1024, 768), "float16")}


def test_the_matmul_reads_as_the_ir_of_the_contract():
    parsed = parse_eager(matmul, SPECS)
    assert same_structure(parsed.func, parse_function(EXPECTED)), parsed.script()


def test_every_statement_has_the_line_and_column_of_its_source():
    parsed = parse_eager(matmul, SPECS)
    source = read(matmul)
    for statement in each_statement(parsed.func.body):
        if isinstance(statement, SeqStmt):
            continue
        where = place_of(statement.span)
        assert where is not None, statement
        assert where.file == __file__.replace("language/test_matmul.py", "kernels/matmul.py")
        text = source.lines[where.line - 1]
        assert text[where.column - 1 :].startswith(("T.", "for ko in", "with T.Kernel")), text
        assert text[where.column - 2] == " "


def test_the_statements_stand_on_the_lines_that_made_them():
    parsed = parse_eager(matmul, SPECS)
    first = parsed.source.first_line
    seen = [
        place_of(s.span).line - first for s in each_statement(parsed.func.body) if not isinstance(s, SeqStmt)
    ]
    assert seen == [4, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]


def test_the_source_holds_the_function_and_nothing_else():
    source = parse_eager(matmul, SPECS).source
    assert source.lines[0] == "def matmul(A, B, block_M=128, block_N=128, block_K=32):"
    assert source.lines[-1] == "    return C"
    assert source.cell is None


def test_parameters_are_the_tensors_and_then_the_outputs():
    parsed = parse_eager(matmul, SPECS | {"block_K": 64})
    assert parsed.parameters == (
        Parameter("A", "tensor", "float16", (512, 1024)),
        Parameter("B", "tensor", "float16", (1024, 768)),
        Parameter("C", "tensor", "float16", (512, 768), output=True),
    )
    assert (parsed.outputs, parsed.returns, parsed.single) == ((2,), (2,), True)
    assert dict(parsed.constants) == {"block_M": 128, "block_N": 128, "block_K": 64}


def test_the_annotated_twin_has_the_same_body():
    plain = parse_eager(matmul, SPECS)
    twin = parse_eager(matmul_annotated, SPECS)
    text = twin.script().replace("matmul_annotated", "matmul").replace('num_stages": 2', 'num_stages": 3')
    assert text == plain.script()


def test_the_lazy_style_names_its_outputs_by_index():
    parsed = case("matmul_lazy").build()
    assert (parsed.name, parsed.outputs, parsed.parameters[2].output) == ("main", (2,), True)
    both = parse_lazy(case("matmul_lazy").function, (64, 64, 64), out_idx=[-1, 0])
    assert both.outputs == (2, 0)


def test_reading_the_matmul_takes_little_time():
    parse_eager(matmul, SPECS)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        parse_eager(matmul, SPECS)
        best = min(best, time.perf_counter() - started)
    assert best < 0.03
