"""The CUDA driver through cuda-python: context, modules, functions, memory, events; its errors as TL506.

The primary context is retained, the one that torch uses too, so that nothing is switched when torch is there.
Nothing here needs torch. `Cuda.api` is the module of driver calls, which tests replace by a recorder.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from tilelab.errors import TileError

__all__ = ["Cuda", "DeviceBuffer", "Function", "cuda"]


class Cuda:
    """One device's primary context. Raises TL506 with CUDA's own name for whatever the driver reports."""

    def __init__(self, api: Any, ordinal: int = 0) -> None:
        self.api = api
        self.ordinal = ordinal
        self.call(api.cuInit, 0)
        self.device = self.call(api.cuDeviceGet, ordinal)
        self.context = self.call(api.cuDevicePrimaryCtxRetain, self.device)
        self.activate()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the driver: its result without the status, nothing, or TL506."""
        status, *rest = function(*args)
        if int(status) != 0:
            raise self.error(status, getattr(function, "__name__", "the driver"))
        return rest[0] if len(rest) == 1 else (tuple(rest) or None)

    def error(self, status: Any, what: str) -> TileError:
        """TL506 for a status: what was asked, CUDA's name of the error, and its explanation."""
        name = getattr(status, "name", str(status))
        explained = self.api.cuGetErrorString(status)[1] if hasattr(self.api, "cuGetErrorString") else b""
        text = explained.decode(errors="replace") if isinstance(explained, bytes) else str(explained or "")
        return TileError("TL506", f"{what} reported {name}{f': {text}' if text else ''}", help=_advice(name))

    def activate(self) -> None:
        """Make the context current on this thread unless it is."""
        current = self.call(self.api.cuCtxGetCurrent)
        if int(current) != int(self.context):
            self.call(self.api.cuCtxSetCurrent, self.context)

    def load(self, cubin: bytes, entry: str, shared_bytes: int = 0) -> Function:
        """The kernel `entry` of a cubin, allowed `shared_bytes` of dynamic shared memory. Raises TL301 for
        too many.
        """
        self.activate()
        module = self.call(self.api.cuModuleLoadData, cubin)
        handle = self.call(self.api.cuModuleGetFunction, module, entry.encode())
        keys = self.api.CUfunction_attribute
        limit = self.attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        if shared_bytes > limit:
            raise TileError(
                "TL301", f"{entry} needs {shared_bytes} bytes of shared memory, the device has {limit}"
            )
        if shared_bytes > 0:
            key = keys.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call(self.api.cuFuncSetAttribute, handle, key, shared_bytes)
        return Function(
            self, module, handle, entry, shared_bytes,
            self.call(self.api.cuFuncGetAttribute, keys.CU_FUNC_ATTRIBUTE_NUM_REGS, handle),
            self.call(self.api.cuFuncGetAttribute, keys.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, handle),
        )  # fmt: skip

    def attribute(self, name: str) -> int:
        """A device attribute by its CUDA name."""
        key = getattr(self.api.CUdevice_attribute, name)
        return int(self.call(self.api.cuDeviceGetAttribute, key, self.device))

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability."""
        prefix = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
        return self.attribute(f"{prefix}MAJOR"), self.attribute(f"{prefix}MINOR")

    def allocate(self, size: int) -> DeviceBuffer:
        """Device memory that is freed with the object; one byte at least."""
        self.activate()
        return DeviceBuffer(self, int(self.call(self.api.cuMemAlloc, max(size, 1))), size)

    def synchronize(self, stream: int = 0) -> None:
        """Wait for a stream; errors of kernels come out here."""
        self.call(self.api.cuStreamSynchronize, self.api.CUstream(stream))

    def seconds(self, launch: Callable[[], None], repeat: int = 1, stream: int = 0) -> list[float]:
        """The device's time for each of `repeat` launches, by events around every one."""
        pairs = [tuple(self.call(self.api.cuEventCreate, 0) for _ in range(2)) for _ in range(repeat)]
        held = self.api.CUstream(stream)
        for first, last in pairs:
            self.call(self.api.cuEventRecord, first, held)
            launch()
            self.call(self.api.cuEventRecord, last, held)
        self.synchronize(stream)
        out = [float(self.call(self.api.cuEventElapsedTime, first, last)) / 1e3 for first, last in pairs]
        for pair in pairs:
            for event in pair:
                self.call(self.api.cuEventDestroy, event)
        return out


@dataclass(frozen=True)
class Function:
    """A loaded kernel: registers a thread and bytes of local memory (spills, stack) as the driver reports
    them.
    """

    cuda: Cuda
    module: Any
    handle: Any
    name: str
    shared_bytes: int
    registers: int
    local_bytes: int

    def launch(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: int, stream: int = 0
    ) -> None:
        """Launch with the address of a ready array of pointers to the arguments; empty grids launch
        nothing.
        """
        if 0 in grid:
            return
        api = self.cuda.api
        (status,) = api.cuLaunchKernel(
            self.handle, *grid, *block, self.shared_bytes, api.CUstream(stream), arguments, 0
        )
        if int(status) != 0:
            raise self.cuda.error(status, f"the launch of {self.name}")


class DeviceBuffer:
    """A stretch of device memory, for callers without torch."""

    def __init__(self, cuda: Cuda, address: int, size: int) -> None:
        self.cuda = cuda
        self.address = address
        self.size = size

    def fill_from(self, array: Any) -> DeviceBuffer:
        """Copy a contiguous NumPy array in."""
        if self.size:
            self.cuda.call(self.cuda.api.cuMemcpyHtoD, self.address, array.ctypes.data, self.size)
        return self

    def copy_to(self, array: Any) -> None:
        """Copy out into a contiguous NumPy array, after all that was launched before."""
        if self.size:
            self.cuda.call(self.cuda.api.cuMemcpyDtoH, array.ctypes.data, self.address, self.size)

    def free(self) -> None:
        """Give the memory back; once is enough."""
        if self.address:
            address, self.address = self.address, 0
            self.cuda.call(self.cuda.api.cuMemFree, address)

    def __del__(self) -> None:
        # At interpreter exit the driver may be gone; the process's memory goes with it.
        if self.address and ctypes is not None:
            address, self.address = self.address, 0
            self.cuda.api.cuMemFree(address)


@cache
def cuda(ordinal: int = 0) -> Cuda:
    """The device's context. Raises TL403 without cuda-python, TL506 without a driver or a device."""
    try:
        driver: Any = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise TileError(
            "TL403", f"cuda-python is missing: {error}", help="pip install 'tilelab[cuda]'"
        ) from None
    try:
        return Cuda(driver, ordinal)
    except RuntimeError as error:
        # cuda-python raises this when libcuda itself cannot be loaded.
        raise TileError(
            "TL506", f"no CUDA driver: {error}", help="use target='llvm', or the emulator"
        ) from None


def _advice(name: str) -> str:
    return {
        "CUDA_ERROR_NO_DEVICE": "use target='llvm', or the emulator",
        "CUDA_ERROR_NO_BINARY_FOR_GPU": "compile for this device: leave target out, or name its architecture",
        "CUDA_ERROR_INVALID_IMAGE": "compile for this device: leave target out, or name its architecture",
        "CUDA_ERROR_ILLEGAL_ADDRESS": "run the kernel in the emulator: it names the access out of bounds",
        "CUDA_ERROR_MISALIGNED_ADDRESS": "run the kernel in the emulator: it names the access",
        "CUDA_ERROR_OUT_OF_MEMORY": "free tensors, or use smaller ones",
    }.get(name, "")
