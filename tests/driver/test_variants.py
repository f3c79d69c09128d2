"""What arguments prove picks the variant: tensors at odd addresses get one that presumes less, and it is
recorded.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.driver.kernels import add, jit, matmul
from tilelab.driver.lowering import lower
from tilelab.ir.alignment import base_alignment
from tilelab.language.parser import TensorSpec, parse_eager
from tilelab.settings import settings
from tilelab.targets import parse_target

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _no_cache():
    with settings(cache="off"):
        yield


def shifted(rows, columns, by):
    """A contiguous float16 matrix that starts `by` elements after a 16-byte boundary."""
    flat = torch.randn(rows * columns + 8 + by).half()
    skip = -(flat.data_ptr() // 2) % 8
    return flat[skip + by : skip + by + rows * columns].view(rows, columns)


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_a_misaligned_tensor_takes_a_variant_of_its_own(target):
    kernel = jit(matmul, target=target)
    straight, odd = shifted(32, 32, 0), shifted(32, 32, 1)
    assert straight.data_ptr() % 16 == 0
    assert odd.data_ptr() % 16 == 2
    for a, b in ((straight, straight), (odd, straight), (odd, straight)):
        want = a.double() @ b.double()
        assert float((kernel(a, b).double() - want).norm() / want.norm()) < 1e-3
    (made,) = kernel._kernels.values()
    assert set(made._variants) == {(), (("A", 2),)}
    slower = made.variant((("A", 2),))
    said = "A starts at a multiple of 2 bytes only"
    assert any(said in n.text and n.kind == "slow_path" for n in slower.trace.steps[0].notes)
    assert any(said in n.text for n in made.notes)
    assert made.get_kernel_source() != slower.code.text


def test_the_printed_ir_says_what_is_presumed():
    parsed = parse_eager(matmul, {"A": TensorSpec((32, 32), "float16"), "B": TensorSpec((32, 32), "float16")})
    _, trace = lower(parsed, parse_target("cuda:sm_80"), loose=(("B", 4),))
    assert base_alignment(parsed.func.params[1]) >= 16
    text = "\n".join(line.text for line in trace.steps[0].render())
    assert "align=4" in text


def test_the_cpu_takes_any_address_with_one_variant():
    kernel = jit(add)
    flat = torch.randn(64)
    assert torch.equal(kernel(flat[1:33], flat[2:34]), flat[1:33] + flat[2:34])
    assert torch.equal(kernel(flat[0:32], flat[0:32]), flat[0:32] * 2)
    (made,) = kernel._kernels.values()
    assert len(made._variants) == 1


def test_the_plan_says_rows_grid_and_what_is_presumed():
    kernel = jit(matmul, target="cuda:sm_80").compile(
        np.ones((40, 32), np.float16), np.ones((32, 70), np.float16)
    )
    plan = kernel.plan
    assert [(r.kind, r.name, r.index) for r in plan.rows] == [
        ("buffer", "A", 0),
        ("buffer", "B", 1),
        ("buffer", "C", 2),
    ]
    assert plan.grid_at({}) == (3, 2, 1)
    assert plan.block == (64, 1, 1)
    assert plan.shared_bytes > 0
    assert plan.loose == ()
