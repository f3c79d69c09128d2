"""T.use_swizzle: every block is still visited once, neighbours in time share rows, and values stay right."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab.language as T
from tilelab.emulate import emulate
from tilelab.ir import build as b
from tilelab.language.parser import TensorSpec, parse_eager
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.run import run, start_trace


def visit(X, columns, rows, panel, order="row"):
    Y = T.empty((rows, columns), "int32")
    with T.Kernel(columns, rows, threads=32) as (bx, by):
        T.use_swizzle(panel, order=order)
        for i in T.Parallel(1):
            T.atomic_add(Y[by, bx], X[0] + i)
    return Y


def compiled(columns, rows, panel, order):
    spec = {"X": TensorSpec((1,), "int32"), "columns": columns, "rows": rows, "panel": panel, "order": order}
    parsed = parse_eager(visit, spec)
    f = b.with_attrs(parsed.func, target="cuda:sm_80")
    trace = start_trace(f, parsed.source)
    return run(f, CUDA, trace), trace


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize(
    ("columns", "rows", "panel"), [(4, 4, 2), (5, 7, 3), (3, 2, 8), (1, 6, 4), (7, 1, 2)]
)
def test_every_block_is_visited_once(columns, rows, panel, order) -> None:
    f, _ = compiled(columns, rows, panel, order)
    Y = np.zeros((rows, columns), np.int32)
    emulate(f, [np.ones(1, np.int32), Y])
    assert (Y == 1).all(), Y


def test_blocks_in_flight_share_a_panel_of_rows() -> None:
    f, trace = compiled(8, 8, 4, "row")
    assert trace["order_blocks"].status == "changed"
    seen = []
    for number in range(8):
        Y = np.zeros((8, 8), np.int32)
        emulate(f, [np.ones(1, np.int32), Y], grid=[(number, 0, 0)])
        seen.append(tuple(int(i) for i in np.argwhere(Y)[0]))
    assert seen == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1)]


def test_without_the_hint_the_grid_stays_as_it_is() -> None:
    spec = {"X": TensorSpec((1,), "int32"), "columns": 2, "rows": 2, "panel": 2, "order": "row"}
    parsed = parse_eager(visit, spec)
    plain = b.with_attrs(parsed.func, target="cuda:sm_80", swizzle="")
    trace = start_trace(plain, parsed.source)
    run(plain, CUDA, trace)
    assert trace["order_blocks"].reason == "the kernel asks for no order of its blocks"
