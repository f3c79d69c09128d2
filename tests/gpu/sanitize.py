"""Small launches for compute-sanitizer: `compute-sanitizer python -m tests.gpu.sanitize`."""

from __future__ import annotations

import numpy as np

from tests.codegen import kernels
from tests.gpu.running import architecture, run_printed
from tests.kernels.hopper import HopperMatmul
from tilelab.codegen.cuda import cuda_text


def main() -> None:
    """One small launch of each kernel that has shared memory, barriers or atomics."""
    a, b = np.ones((128, 64), np.float16), np.ones((64, 128), np.float16)
    run_printed(cuda_text(kernels.mma_matmul(128, 128, 64)), [a, b, np.zeros((128, 128), np.float16)])
    run_printed(cuda_text(kernels.row_sums()), [np.ones(2048, np.float16), np.zeros(8, np.float32)])
    if architecture() == "sm_90a":
        wide = [
            np.ones((128, 64), np.float16),
            np.ones((64, 256), np.float16),
            np.zeros((128, 256), np.float16),
        ]
        run_printed(cuda_text(kernels.wgmma_matmul(128, 256, 64)), wide)
        spec = HopperMatmul(k=320, roles=2)
        run_printed(cuda_text(spec.device()), spec.inputs())
    print("done")


if __name__ == "__main__":
    main()
