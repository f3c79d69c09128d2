"""Accesses to shared tiles meet as few banks twice as their widths allow: counted on the device-stage IR."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from tvm import tirx

from tests.kernels import case
from tests.test_meaning import steps_of
from tilelab.hardware import bits, chip
from tilelab.ir import build as b
from tilelab.ir.nodes import AttrStmt, Bind, For, Load, Ramp, Region, Store, TileCall, Var, dtype_of
from tilelab.ir.rewrite import collect
from tilelab.ir.statements import children, each_statement
from tilelab.ir.tile_ops import op_of
from tilelab.layout import wavefronts

ARITHMETIC = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod, "BitwiseXor": operator.xor, "BitwiseAnd": operator.and_,
    "RShift": operator.rshift,
}  # fmt: skip


def value_of(index: Any, known: dict[Var, int]) -> int:
    """The index with every variable given."""
    if isinstance(index, tirx.IntImm):
        return int(index.value)
    if isinstance(index, Var):
        return known[index]
    return ARITHMETIC[type(index).__name__](value_of(index.a, known), value_of(index.b, known))


def shared_accesses(f: Any) -> list[tuple[Var, Any, int, bool]]:
    """(buffer, first index, elements a lane, whether it writes) of each access to a shared tile."""
    found = []
    for node in each_statement(f.body):
        if children(node):
            continue
        if isinstance(node, TileCall) and op_of(node).name == "issue":
            for number, a in enumerate(a for a in node.args if isinstance(a, Region)):
                found.append((a.source, a.region[-1].min, b.as_int(a.region[-1].extent) or 1, number == 0))
            continue
        places = [(x.source, x.indices[-1], False) for x in collect(node, Load)]
        if isinstance(node, Store):
            places.append((node.buffer, node.indices[-1], True))
        for buffer, index, is_write in places:
            lanes = b.as_int(index.lanes) or 1 if isinstance(index, Ramp) else 1
            found.append((buffer, index.base if isinstance(index, Ramp) else index, lanes, is_write))
    return [a for a in found if str(a[0].scope()) == "shared.dyn"]


def conflicts(f: Any, arch: str) -> list[str]:
    """The accesses of the first warp that take more cycles than their words need, as text."""
    made, known, thread = chip(arch), {}, None
    for node in each_statement(f.body):
        if isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
            known[node.node.var] = 0
            if str(node.node.thread_tag) == "threadIdx.x":
                thread = node.node.var
        if isinstance(node, For):
            known[node.loop_var] = 0
        if isinstance(node, Bind):
            known[node.var] = 0
    out, found = [], shared_accesses(f)
    assert found
    for buffer, index, elements, is_write in found:
        size = bits(dtype_of(buffer)) // 8
        addresses = [value_of(index, known | {thread: lane}) * size for lane in range(made.warp)]
        taken, least = wavefronts(addresses, elements * size, made.writes if is_write else made.reads)
        if taken > least:
            out.append(f"{buffer.name}[{index}], {elements * size} bytes: {taken} cycles instead of {least}")
    return out


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", ["matmul", "matmul_nt", "matmul_tn", "transpose", "attention"])
def test_no_access_meets_a_bank_twice(name: str, target: str) -> None:
    last = steps_of(case(name), target)[-1][1]
    assert conflicts(last, target.split(":")[1]) == []
