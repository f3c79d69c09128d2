"""Every test kernel through the whole pipeline, on the device, against its NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.running import architecture, execute
from tests.kernels import CASES
from tilelab.driver.building import build
from tilelab.runtime.arguments import numpy_dtype
from tilelab.runtime.cuda_driver import cuda
from tilelab.runtime.cuda_kernel import CudaKernel
from tilelab.targets import parse_target

pytestmark = pytest.mark.gpu

TARGETS = ("cuda:sm_80", "cuda:sm_90a")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kernel_gives_the_values_of_its_reference(case, target):
    if target == "cuda:sm_90a" and architecture() != "sm_90a":
        pytest.skip(f"this device is {architecture()}")
    parsed = case.build()
    built = build(parsed, parse_target(target))
    assert built.code is not None
    # A cubin runs on its own major version only: for sm_80 the text is built again for this device.
    if target.endswith(architecture()):
        kernel = CudaKernel(cuda(), built.code, built.binary)
    else:
        from tests.gpu.running import build as build_printed

        kernel, _ = build_printed(built.code)
    given = iter(case.inputs())
    arguments = []
    for p in parsed.parameters:
        if p.output:
            shape = tuple(int(e) for e in p.shape)
            arguments.append(np.zeros(shape, numpy_dtype(p.dtype)))
        elif p.kind == "tensor":
            arguments.append(np.ascontiguousarray(next(given)).copy())
        else:
            pytest.fail(f"{case.name} takes the scalar {p.name}, which this test does not know how to give")
    execute(kernel, arguments)
    returned = tuple(arguments[i] for i in parsed.returns)
    assert case.error(returned) <= case.tolerance
