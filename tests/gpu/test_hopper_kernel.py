"""The hand-built Hopper matmul through the passes, on the device, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.running import architecture, build, execute, relative_error
from tests.kernels.hopper import HopperMatmul
from tilelab.codegen.cuda import cuda_text

pytestmark = pytest.mark.gpu

KERNELS = {
    "one block": HopperMatmul(k=256),
    "one role": HopperMatmul(m=512, n=768, k=1024),
    "two roles": HopperMatmul(m=512, n=768, k=1024, roles=2),
    "B along its columns": HopperMatmul(m=512, n=768, k=1024, b_major="mn"),
    "several tiles a block": HopperMatmul(m=256, n=1536, k=320, tiles=3),
    "cleared by the first step": HopperMatmul(
        m=512, n=768, k=1024, roles=2, clear="first step", b_major="mn"
    ),
    "four slots of narrow tiles": HopperMatmul(m=256, n=384, k=512, block_n=128, depth=4),
    "one step": HopperMatmul(k=64),
    "no step": HopperMatmul(k=64, steps=0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_hand_built_matmul_agrees_with_float64(name: str) -> None:
    if architecture() != "sm_90a":
        pytest.skip(f"wgmma needs sm_90a, this device is {architecture()}")
    spec = KERNELS[name]
    kernel, binary = build(cuda_text(spec.device()))
    assert binary.resources[0].is_clean, binary.log
    assert kernel.function.local_bytes == 0
    results = []
    for _ in range(2):
        a, right, c = spec.inputs()
        execute(kernel, [a, right, c])
        results.append(c)
    np.testing.assert_array_equal(*results)
    wanted = spec.expected(a, right)
    if np.any(wanted):
        assert relative_error(results[0], wanted) < 2**-11
    else:
        assert not results[0].any()
