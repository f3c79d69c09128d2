"""Register maps, register counts and cycles of every dense matrix instruction, against AMD's calculator.

`matrix_facts.json` holds the output of AMD's matrix instruction calculator for CDNA3, its formulas as text.
"""

from __future__ import annotations

import json
from math import floor
from pathlib import Path

import numpy as np
import pytest

from tilelab.emulate.gfx942 import run
from tilelab.emulate.gfx942.mfma import MatrixShape, a_map, d_map, matrix_shape

FACTS = json.loads((Path(__file__).parent / "matrix_facts.json").read_text())


def shape_of(name: str) -> MatrixShape:
    shape = matrix_shape(name)
    assert shape is not None, name
    return shape


def formula(text: str, lane: int, register: int, bit: int) -> int:
    return eval(text, {"floor": floor}, {"lane": lane, "GPR_num": register, "GPR_bits": bit})


@pytest.mark.parametrize("name", FACTS)
def test_cycles_flops_and_registers(name):
    facts, shape = FACTS[name], shape_of(name)
    assert shape.cycles == facts["cycles"]
    if shape.result != "i32":  # the calculator counts no floating-point operations there
        assert shape.flops == facts["flops"]
    assert shape.registers == (facts["gprA"], facts["gprB"], facts["gprCD"])


@pytest.mark.parametrize("name", FACTS)
def test_map_of_a(name):
    facts, shape = FACTS[name], shape_of(name)
    block, i, k = a_map(shape)
    bits = {"f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f64": 64}.get(shape.a, 32)
    for q in range(shape.per_lane):
        register, bit = divmod(q * bits, 32)
        for lane in range(64):
            wanted = [formula(facts[f], lane, register, bit) for f in ("A_block", "A_i", "A_k")]
            assert [block[q, lane], i[q, lane], k[q, lane]] == wanted


@pytest.mark.parametrize("name", [n for n in FACTS if n != "v_mfma_f64_16x16x4_f64"])
def test_map_of_the_result(name):
    facts, shape = FACTS[name], shape_of(name)
    block, i, j = d_map(shape)
    for r in range(len(block)):
        for lane in range(64):
            wanted = [formula(facts[f"C or D_{x}"], lane, r, 0) for x in ("block", "i", "j")]
            assert [block[r, lane], i[r, lane], j[r, lane]] == wanted


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("side", ["a", "d"])
def test_each_element_has_one_owner(name, side):
    shape = shape_of(name)
    block, row, column = a_map(shape) if side == "a" else d_map(shape)
    width = shape.k if side == "a" else shape.n
    places = (block * shape.m + row) * width + column
    np.testing.assert_array_equal(np.sort(places.ravel()), np.arange(shape.blocks * shape.m * width))


@pytest.mark.parametrize("name", ["v_mfma_f32_4x4x4_16b_f16", "v_mfma_f32_16x16x4_4b_f16"])
def test_blocks_are_multiplied_apart(assemble, name):
    shape = shape_of(name)
    source = np.zeros((64, 4), np.uint32)
    values = np.random.default_rng(0).integers(-4, 5, (64, 8)).astype(np.float16)
    source[:] = values.view(np.uint32)
    results = len(d_map(shape)[0])
    found = []
    for r in range(0, results, 2):
        body = (
            f"  {name} v[32:{31 + results}], v[2:3], v[4:5], 0\n  s_nop 7\n  s_nop 7\n"
            f"  v_mov_b32 v20, v{32 + r}\n  v_mov_b32 v21, v{33 + r}"
        )
        target = np.zeros((64, 2), np.uint32)
        run(assemble(body), "snippet", (1, 1, 1), (64, 1, 1), [source, target])
        found += [target[:, 0].view(np.float32), target[:, 1].view(np.float32)]
    a_block, a_row, a_column = a_map(shape)
    a, b = (np.zeros((shape.blocks, shape.m, shape.k)) for _ in range(2))
    a[a_block, a_row, a_column] = values[:, :4].T
    b[a_block, a_row, a_column] = values[:, 4:].T
    product = a @ b.swapaxes(1, 2)
    np.testing.assert_array_equal(np.array(found), product[d_map(shape)])
