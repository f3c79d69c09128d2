"""The register block of a gemm on CPUs of several widths."""

from __future__ import annotations

import pytest

from tests.codegen.cpu import lowered, matmul
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, TileCall
from tilelab.ir.rewrite import collect
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import op_of


def planned(f) -> dict:
    g, _ = lowered(f, until="plan_layouts_cpu")
    gemm = next(call for call in collect(g.body, TileCall) if op_of(call).name == "gemm")
    layouts = {
        str(s.buffer.name): b.plain(s.annotations)
        for s in each_statement(g.body)
        if isinstance(s, AllocBuffer)
    }
    return {**b.plain(gemm.config), "tiles": layouts}


@pytest.mark.parametrize(
    ("cpu", "row", "repeats"),
    [
        ("cpu", "vector.fma.f32x4", [4, 2, 1]),
        ("cpu-avx2", "vector.fma.f32x8", [4, 2, 1]),
        ("cpu-avx512", "vector.fma.f32x16", [8, 2, 1]),
    ],
)
def test_the_block_fits_the_registers_of_the_chip(cpu: str, row: str, repeats: list[int]) -> None:
    plan = planned(b.with_attrs(matmul(256, 256, 64), cpu=cpu))
    assert (plan["row"], plan["repeats"]) == (row, repeats)


def test_b_lies_in_panels_as_wide_as_the_block_and_a_in_rows() -> None:
    tiles = planned(b.with_attrs(matmul(256, 256, 64), cpu="cpu-avx512"))["tiles"]
    assert tiles["A_shared"]["tl.layout"] == "(128,32):(32,1)"
    assert tiles["B_shared"]["tl.layout"] == "(32,(32,4)):(32,(1,1024))"


def test_a_transposed_b_is_kept_with_its_columns_side_by_side() -> None:
    tiles = planned(b.with_attrs(matmul(256, 256, 64, transpose_b=True), cpu="cpu-avx512"))["tiles"]
    assert tiles["B_shared"]["tl.layout"] == "((32,4),32):((1,1024),32)"


def test_narrow_operands_are_held_in_the_dtype_of_the_sums() -> None:
    tiles = planned(matmul(256, 256, 64, "float16"))["tiles"]
    assert tiles["A_shared"]["tl.held"] == tiles["B_shared"]["tl.held"] == "float32"
    assert "tl.held" not in planned(matmul(256, 256, 64))["tiles"]["A_shared"]


def test_the_planning_passes_change_annotations_only() -> None:
    f = matmul(256, 256, 64)
    before, _ = lowered(f, until="lower_threads_cpu")
    after, _ = lowered(f, until="plan_layouts_cpu")
    kinds = [[type(s).__name__ for s in each_statement(g.body)] for g in (before, after)]
    assert kinds[0] == kinds[1]
