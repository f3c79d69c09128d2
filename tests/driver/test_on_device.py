"""Kernels of cuda targets go to the driver where there is a GPU: here a recorder, with -m gpu a real one."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.driver.kernels import add, jit, matmul, open_rows, scaled
from tests.runtime.test_cuda_driver import Recorder, arguments_of
from tilelab.driver import execution
from tilelab.errors import TileError
from tilelab.runtime import cuda_driver
from tilelab.settings import settings


class Reader(Recorder):
    """Reads each launch's arguments as `kinds` during the call: their memory is free again afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: tuple = ()
        self.values: list = []

    def result(self, name: str, args: tuple) -> tuple:
        if name == "cuLaunchKernel":
            self.values = arguments_of(args, list(self.kinds))
        return super().result(name, args)


@pytest.fixture
def api(monkeypatch):
    """A driver that records, standing where the GPU's would."""
    recorder = Reader()
    device = cuda_driver.Cuda(recorder)
    monkeypatch.setattr(cuda_driver, "cuda", lambda ordinal=0: device)
    monkeypatch.setattr(execution, "_why_not_cuda", lambda arch: "")
    with settings(cache="off", emulate=False):
        yield recorder


def test_numpy_arrays_are_copied_to_the_device_and_results_back(api):
    kernel = jit(add, target="cuda:sm_80")
    a = np.ones(70, np.float32)
    api.kinds = (ctypes.c_uint64,) * 3
    kernel(a, a)
    assert [args[2] for args in api.named("cuMemcpyHtoD")] == [280, 280, 280]
    assert [args[2] for args in api.named("cuMemcpyDtoH")] == [280]
    (launch,) = api.named("cuLaunchKernel")
    assert launch[1:7] == (3, 1, 1, 32, 1, 1)
    assert [args[0] for args in api.named("cuMemcpyHtoD")] == api.values
    assert [args[1] for args in api.named("cuMemcpyDtoH")] == api.values[2:]
    (made,) = kernel._kernels.values()
    assert any("copied to the GPU and back" in n.text for n in made.notes)
    assert made.variant().binary[:4] == b"\x7fELF"
    assert made.n_regs > 0
    assert made.n_spills == 0


def test_open_sizes_and_numbers_reach_the_launch(api):
    rows = np.ones((9, 16), np.float32)
    api.kinds = (*(ctypes.c_uint64,) * 3, ctypes.c_int32)
    jit(open_rows, target="cuda:sm_80")(rows, rows)
    assert api.named("cuLaunchKernel")[-1][1] == 3
    assert api.values[3] == 9
    api.kinds = (ctypes.c_uint64, ctypes.c_float, ctypes.c_uint64)
    jit(scaled, target="cuda:sm_80")(rows[0], 2.5)
    assert 2.5 in api.values


def test_an_empty_tensor_launches_nothing(api):
    empty = np.ones(0, np.float32)
    assert jit(add, target="cuda:sm_80")(empty, empty).shape == (0,)
    assert api.named("cuLaunchKernel") == []


def test_emulation_can_be_asked_for_where_there_is_a_gpu(api):
    a = np.ones(40, np.float32)
    np.testing.assert_array_equal(jit(add, target="cuda:sm_80", emulate=True)(a, a), 2 * a)
    with settings(emulate=True):
        np.testing.assert_array_equal(jit(add, target="cuda:sm_80")(a, a), 2 * a)
    assert api.named("cuLaunchKernel") == []


def test_a_device_error_names_what_the_driver_says(api):
    api.fail = "cuLaunchKernel"
    a = np.ones(40, np.float32)
    with pytest.raises(TileError, match=r"TL506.*CUDA_ERROR_ILLEGAL_ADDRESS"):
        jit(add, target="cuda:sm_80")(a, a)


def test_a_gpu_of_another_architecture_is_a_reason_to_emulate(monkeypatch):
    class Old:
        capability = (7, 5)

    monkeypatch.setattr(cuda_driver, "cuda", lambda: Old())
    why = execution._why_not_cuda.__wrapped__
    assert why("sm_80") == "the GPU here is sm_75, which does not run code for sm_80"
    Old.capability = (8, 6)
    assert why("sm_80") == ""
    assert why("sm_90a") != ""
    Old.capability = (9, 0)
    assert why("sm_90a") == ""
    assert why("sm_80") != ""


@pytest.mark.gpu
def test_a_matmul_on_the_gpu_is_right_aligned_and_not():
    import torch

    kernel = jit(matmul, target="auto")
    for m, n, k, shift in ((128, 128, 64, 0), (97, 131, 45, 0), (64, 64, 64, 1), (0, 5, 7, 0), (1, 1, 1, 0)):
        flat = torch.randn(m * k + shift, device="cuda").half()
        a, b = flat[shift:].view(m, k), torch.randn(k, n, device="cuda").half()
        c = kernel(a, b)
        want = a.double() @ b.double()
        assert c.device == a.device
        assert float((c.double() - want).norm()) <= 1e-3 * max(float(want.norm()), 1e-9)
    assert all(k.execution.kind == "cuda" for k in kernel._kernels.values())


@pytest.mark.gpu
def test_the_profiler_times_a_kernel_on_the_gpu():
    import torch

    a = torch.randn(512, 512, device="cuda").half()
    kernel = jit(matmul, target="auto").compile(a, a)
    assert 0 < kernel.get_profiler().do_bench(warmup=1, rep=5) < 100
    torch.cuda.synchronize()


@pytest.mark.gpu
def test_numpy_arrays_go_through_the_gpu():
    from tilelab.targets import default_target

    a = np.arange(70, dtype=np.float32)
    np.testing.assert_array_equal(jit(add, target=default_target())(a, a), 2 * a)
