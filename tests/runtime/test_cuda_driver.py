"""Launching on CUDA, with a driver that only records: what is passed, in what order, and how errors are
told.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from tests.codegen import kernels
from tilelab.codegen.cuda import cuda_text
from tilelab.errors import TileError
from tilelab.runtime.cuda_driver import Cuda
from tilelab.runtime.cuda_kernel import CudaKernel
from tilelab.runtime.cuda_tensor_map import encode_tensor_map


class Status(int):
    """A driver's status with its name."""

    name = "CUDA_ERROR_ILLEGAL_ADDRESS"


class Words:
    """An enumeration whose members are their own names."""

    def __getattr__(self, name: str) -> str:
        return name


class Recorder:
    """The driver's functions that the run time calls; `calls` lists (name, arguments), `memory` is the
    device's.
    """

    def __init__(self, fail: str = "") -> None:
        self.calls: list[tuple[str, tuple]] = []
        self.fail = fail
        self.memory: dict[int, np.ndarray] = {}
        self.current = 7
        for words in ("CUfunction_attribute", "CUdevice_attribute", "CUtensorMapDataType",
                      "CUtensorMapInterleave",
                      "CUtensorMapSwizzle", "CUtensorMapL2promotion", "CUtensorMapFloatOOBfill"):  # fmt: skip
            setattr(self, words, Words())
        self.cuuint64_t = self.cuuint32_t = self.CUstream = int

    def __getattr__(self, name: str):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args):
            self.calls.append((name, args))
            if name == self.fail:
                return (Status(700),)
            return (Status(0), *self.result(name, args))

        call.__name__ = name
        return call

    def result(self, name: str, args: tuple) -> tuple:
        results = {
            "cuDeviceGet": 0, "cuDevicePrimaryCtxRetain": 7, "cuCtxGetCurrent": self.current,
            "cuModuleLoadData": 1,
            "cuModuleGetFunction": 2, "cuFuncGetAttribute": 64, "cuDeviceGetAttribute": 232448,
            "cuEventCreate": 3,
            "cuEventElapsedTime": 1.5,
        }  # fmt: skip
        if name == "cuMemAlloc":
            return (0x1000 * (1 + len(self.memory) + sum(c[0] == "cuMemAlloc" for c in self.calls)),)
        if name == "cuTensorMapEncodeTiled":
            held = ctypes.create_string_buffer(bytes([len(self.calls) % 256]) * 128, 128)
            return (SimpleNamespace(getPtr=lambda: ctypes.addressof(held), held=held),)
        if name == "cuGetErrorString":
            return (b"an illegal memory access was encountered",)
        return (results[name],) if name in results else ()

    def named(self, name: str) -> list[tuple]:
        return [args for called, args in self.calls if called == name]


def arguments_of(launch: tuple, kinds: list) -> list:
    """The values that a launch's array of pointers points at."""
    pointers = ctypes.cast(launch[9], ctypes.POINTER(ctypes.c_void_p))
    return [kind.from_address(pointers[i]).value for i, kind in enumerate(kinds)]


def test_a_context_that_is_current_is_not_switched():
    api = Recorder()
    Cuda(api)
    assert api.named("cuCtxSetCurrent") == []
    other = Recorder()
    other.current = 0
    Cuda(other)
    assert other.named("cuCtxSetCurrent") == [(7,)]


def test_a_launch_passes_pointers_scalars_grid_block_and_shared_memory():
    f = kernels.function(
        "k",
        'A: T.Buffer((1024,), "float32"), n: T.int32, s: T.float32',
        128,
        "A[tx] = T.Cast('float32', n) * s",
        (5,),
    )
    api = Recorder()
    kernel = CudaKernel(Cuda(api), cuda_text(f), b"cubin")
    bound = kernel.bind([0xABC0, 1021, 2.5])
    bound(stream=99)
    (launch,) = api.named("cuLaunchKernel")
    assert launch[:9] == (2, 5, 1, 1, 128, 1, 1, 0, 99)
    assert arguments_of(launch, [ctypes.c_uint64, ctypes.c_int32, ctypes.c_float]) == [0xABC0, 1021, 2.5]


def test_dynamic_extents_reach_the_grid_and_the_kernel():
    from tilelab.ir import build as b

    n = b.var("n")
    a = b.buffer("A", (n,), "float32")
    bx, tx = b.var("bx"), b.var("tx")
    index = bx * 128 + tx
    store = b.if_(index < n, b.store(a, 1.0, [index]))
    body = b.launch("blockIdx.x", bx, b.ceildiv(n, 128), b.launch("threadIdx.x", tx, 128, store))
    api = Recorder()
    kernel = CudaKernel(Cuda(api), cuda_text(b.function("k", [a], body, stage="device")), b"cubin")
    bound = kernel.bind([0x1000], {"n": 1021})
    bound()
    (launch,) = api.named("cuLaunchKernel")
    assert launch[1] == 8
    assert arguments_of(launch, [ctypes.c_uint64, ctypes.c_int32]) == [0x1000, 1021]
    kernel.bind([0x1000], {"n": 0})()
    assert len(api.named("cuLaunchKernel")) == 1, "an empty grid is not launched"


def test_tensor_maps_are_encoded_innermost_first_and_kept():
    api = Recorder()
    kernel = CudaKernel(Cuda(api), cuda_text(kernels.wgmma_matmul(256, 512, 128)), b"cubin")
    assert api.named("cuFuncSetAttribute")[0][2] == 229440
    kernel.bind([0x10000, 0x20000, 0x30000])
    first = api.named("cuTensorMapEncodeTiled")
    assert [m[2] for m in first] == [0x10000, 0x20000, 0x30000]
    a, bb, _ = first
    assert a[0] == "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"
    assert (a[1], a[3], a[4], a[5]) == (2, [128, 256], [256], [64, 128])
    assert (bb[3], bb[4], bb[5]) == ([512, 128], [1024], [64, 64])
    assert a[8] == "CU_TENSOR_MAP_SWIZZLE_128B"
    kernel.bind([0x10000, 0x20000, 0x30000])
    assert len(api.named("cuTensorMapEncodeTiled")) == 3, "the same tensors need no new maps"
    kernel.bind([0x10000, 0x20000, 0x40000])
    assert len(api.named("cuTensorMapEncodeTiled")) == 4


GOOD = {
    "name": "A", "address": 0x1000, "dtype": "float16", "shape": (64, 128), "strides": (128, 1),
    "box": (64, 64), "swizzle_bytes": 128,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"address": 0x1004}, "TL505", "A starts 4 bytes after a 16-byte boundary"),
        ({"strides": (1021, 1)}, "TL505", "2042 bytes along axis 0"),
        ({"strides": (1, 64)}, "TL505", "stride 64 along its last axis"),
        ({"shape": (0, 128)}, "TL502", "shape (0, 128)"),
        ({"dtype": "complex64"}, "TL503", "complex64"),
        ({"box": (64, 128)}, "TL203", "256 bytes does not fit a swizzle of 128"),
        ({"box": (512, 64)}, "TL203", "(512, 64)"),
    ],
)
def test_what_tma_cannot_take_is_refused_by_the_arguments_name(change, code, said):
    cuda = Cuda(Recorder())
    assert len(encode_tensor_map(cuda, **GOOD)) == 128
    with pytest.raises(TileError) as caught:
        encode_tensor_map(cuda, **{**GOOD, **change})
    assert caught.value.code == code
    assert said in caught.value.message


def test_a_drivers_error_comes_with_cudas_name_and_an_advice():
    api = Recorder(fail="cuStreamSynchronize")
    with pytest.raises(TileError, match="CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access") as caught:
        Cuda(api).synchronize()
    assert caught.value.code == "TL506"
    assert "emulator" in caught.value.help


def test_a_failed_launch_names_the_kernel():
    api = Recorder(fail="cuLaunchKernel")
    kernel = CudaKernel(Cuda(api), cuda_text(kernels.vector_add()), b"cubin")
    with pytest.raises(TileError, match="the launch of vector_add reported CUDA_ERROR_ILLEGAL_ADDRESS"):
        kernel.bind([1, 2, 3])()


def test_more_shared_memory_than_the_device_has_is_refused():
    with pytest.raises(TileError, match="232449 bytes") as caught:
        Cuda(Recorder()).load(b"cubin", "k", 232449)
    assert caught.value.code == "TL301"


def test_arrays_go_to_the_device_and_back_and_memory_is_freed():
    api = Recorder()
    cuda = Cuda(api)
    array = np.arange(16, dtype=np.float32)
    held = cuda.allocate(array.nbytes).fill_from(array)
    address = held.address
    held.copy_to(array)
    assert api.named("cuMemcpyHtoD") == [(address, array.ctypes.data, 64)]
    assert api.named("cuMemcpyDtoH") == [(array.ctypes.data, address, 64)]
    del held
    assert api.named("cuMemFree") == [(address,)]


def test_times_come_from_events_around_each_launch():
    api = Recorder()
    seconds = Cuda(api).seconds(lambda: None, repeat=3)
    assert seconds == [1.5e-3] * 3
    assert len(api.named("cuEventRecord")) == 6
    assert len(api.named("cuEventDestroy")) == 6
