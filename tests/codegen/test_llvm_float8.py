"""8-bit floats on the CPU: every code read exactly, every value rounded as torch rounds it."""

from __future__ import annotations

import pytest

from tests.codegen.cpu import compiled, kernel, matmul

torch = pytest.importorskip("torch")

FORMATS = ("float8_e4m3fn", "float8_e5m2")
COPY = """
@T.prim_func
def main(A: T.Buffer((4096,), "{source}"), B: T.Buffer((4096,), "{target}")):
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", 32) as tx:
            T.copy(A[0:4096], B[0:4096])
"""


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_is_read_exactly(name: str) -> None:
    codes = torch.arange(4096).to(torch.uint8).view(getattr(torch, name))
    out = torch.zeros(4096)
    compiled(kernel(COPY.format(source=name, target="float32")))(codes, out)
    torch.testing.assert_close(out, codes.float(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", FORMATS)
def test_values_round_to_the_nearest_code(name: str) -> None:
    generator = torch.Generator().manual_seed(8)
    scales = 2.0 ** torch.randint(-22, 20, (4090,), generator=generator)
    values = torch.cat([
        torch.randn(4090, generator=generator) * scales,
        torch.tensor([0.0, -0.0, 1e9, -1e9, 1.0625, 2.0**-10])
    ])  # fmt: skip
    kind = getattr(torch, name)
    out = torch.zeros(4096, dtype=kind)
    compiled(kernel(COPY.format(source="float32", target=name)))(values, out)
    # Beyond the range torch has changed its mind over time; what is finite is not in question.
    finite = values.abs() <= torch.finfo(kind).max
    assert torch.equal(out.view(torch.uint8)[finite], values.to(kind).view(torch.uint8)[finite])
    largest = torch.inf if name == "float8_e5m2" else torch.finfo(kind).max
    assert out[4092].float() == largest
    assert out[4093].float() == -largest


@pytest.mark.parametrize("name", FORMATS)
def test_matmul_of_8_bit_floats_is_exact_where_its_sums_are(name: str) -> None:
    a, w = (torch.randint(-4, 5, shape).to(getattr(torch, name)) for shape in ((70, 50), (50, 60)))
    c = torch.zeros(70, 60)
    compiled(matmul(70, 60, 50, name, "float32", "float32"))(a, w, c)
    assert torch.equal(c.double(), a.double() @ w.double())
