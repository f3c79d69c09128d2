"""Running printed kernels on a CUDA device with NumPy arrays in and out, and nothing of torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilelab.runtime.cuda_driver import cuda
from tilelab.runtime.cuda_kernel import CudaKernel
from tilelab.runtime.nvrtc import CudaBinary, build_cuda
from tilelab.trace.code import CodeText

__all__ = [
    "architecture",
    "build",
    "execute",
    "from_bfloat16",
    "relative_error",
    "run_printed",
    "to_bfloat16",
]


def architecture() -> str:
    """The device's architecture as a target names it."""
    major, minor = cuda().capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def build(code: CodeText, arch: str | None = None) -> tuple[CudaKernel, CudaBinary]:
    """The printed kernel built for the device and loaded, and its binary."""
    binary = build_cuda(code.text, arch or architecture(), lines=code.lines)
    return CudaKernel(cuda(), code, binary.cubin), binary


def execute(kernel: CudaKernel, arguments: Sequence[Any], scalars: Mapping[str, int] | None = None) -> None:
    """Launch once; arrays among the arguments are copied in before and back after."""
    device = cuda()
    held = [device.allocate(a.nbytes).fill_from(a) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel.bind(held, scalars)()
    device.synchronize()
    for array, buffer in zip(arguments, held, strict=True):
        if isinstance(array, np.ndarray):
            buffer.copy_to(array)
            buffer.free()


def run_printed(
    code: CodeText, arguments: Sequence[Any], scalars: Mapping[str, int] | None = None
) -> CudaBinary:
    """Build, load and launch a printed kernel; gives the binary, so that tests can look at its resources."""
    kernel, binary = build(code)
    execute(kernel, arguments, scalars)
    return binary


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 rounded to bfloat16, as its 16 bits."""
    words = x.astype(np.float32).view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(x: np.ndarray) -> np.ndarray:
    """bfloat16 bits as float32."""
    return (x.astype(np.uint32) << 16).view(np.float32)


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """‖found - wanted‖ / ‖wanted‖ (Frobenius)."""
    return float(np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted))
