"""Where a compiled variant runs: the CPU, a device, or an emulator, and how arguments get there and back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelab import settings
from tilelab.driver.building import Built
from tilelab.driver.execution import Execution
from tilelab.errors import InternalError, TileError
from tilelab.ir.nodes import PrimFunc
from tilelab.runtime.arguments import TensorView, as_numpy, flat_span, view_of
from tilelab.runtime.dlpack import Exported
from tilelab.runtime.plan import plan_of

__all__ = ["Run", "runner"]

Run = Callable[[list[Any]], None]


def runner(
    built: Built, execution: Execution, names: Sequence[str], sizes: Mapping[str, int],
    outputs: frozenset[int], device_ir: Callable[[], PrimFunc], on_device: bool,
) -> Run:  # fmt: skip
    """A function that runs the variant on values in the parameters' order.

    `outputs` are positions that the kernel writes, `on_device` says that the tensors are on a GPU already.
    """
    if execution.kind == "cpu":
        return _on_cpu(built, names)
    if execution.kind in ("cuda", "hip"):
        launch = _on_cuda(built, sizes) if execution.kind == "cuda" else _on_hip(built, sizes)
        return launch if on_device else _through_device(launch, execution.kind, names, outputs)
    inner = _in_gfx942(built, sizes) if execution.kind == "gfx942" else _in_ir(built, names, sizes, device_ir)
    return lambda values: _on_host(inner, names, values, outputs)


# ---- the CPU


def _on_cpu(built: Built, names: Sequence[str]) -> Run:
    from tilelab.codegen.llvm import set_threads

    wanted = settings.get("threads")
    call = built.host.callable
    exported: list[bool] = []

    def run(values: list[Any]) -> None:
        if wanted:
            set_threads(wanted)
        if not exported:
            # The arguments of later calls have the same fingerprints, so they need the same.
            exported.extend(map(_needs_export, values))
        if any(exported):
            call(*(_for_tvm(n, v) if e else v for n, v, e in zip(names, values, exported, strict=True)))
        else:
            call(*values)

    return run


def _needs_export(value: Any) -> bool:
    """Whether TVM does not take the value as it is."""
    if isinstance(value, np.ndarray):
        # NumPy exports neither read-only arrays nor dtypes not its own, and says odd strides of empty ones.
        return not (value.size and value.flags.writeable and value.dtype.isbuiltin == 1)
    if isinstance(value, int | float):
        return False
    torch = sys.modules.get("torch")
    # torch says strides of empty tensors that TVM does not expect, and exports none that need a gradient.
    is_plain = torch is not None and isinstance(value, torch.Tensor) and value.numel() > 0
    return not (is_plain and not value.requires_grad)


def _for_tvm(name: str, value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else Exported(view_of(name, value))


# ---- devices

_KEPT = 64


def _on_cuda(built: Built, sizes: Mapping[str, int]) -> Run:
    from tilelab.runtime.cuda_driver import cuda
    from tilelab.runtime.cuda_kernel import CudaKernel, address_of

    if built.code is None:
        raise InternalError("a CUDA kernel has no printed code")
    kernel = CudaKernel(cuda(), built.code, built.binary)
    bound: dict[tuple[Any, ...], Any] = {}

    def run(values: list[Any]) -> None:
        key = tuple(v if isinstance(v, int | float) else address_of(v) for v in values)
        launch = bound.get(key)
        if launch is None:
            if len(bound) >= _KEPT:
                bound.clear()
            launch = bound[key] = kernel.bind(values, sizes)
        launch(_stream())

    return run


def _stream() -> int:
    torch = sys.modules.get("torch")
    return (
        int(torch.cuda.current_stream().cuda_stream) if torch is not None and torch.cuda.is_available() else 0
    )


def _on_hip(built: Built, sizes: Mapping[str, int]) -> Run:
    from tilelab.runtime.hip_driver import HipKernel, scalar_of

    if built.code is None:
        raise InternalError("a HIP kernel has no printed code")
    plan = plan_of(built.code, built.loose)
    kernel = HipKernel(built.binary, plan.entry)

    def run(values: list[Any]) -> None:
        known = _scalars(plan.rows, values, sizes)
        held = [
            scalar_of(row.dtype, v) if row.kind == "scalar" else ctypes.c_void_p(int(v.data_ptr()))
            for row, v in zip(plan.rows, plan.arguments(values, known), strict=True)
        ]
        kernel.launch(plan.grid_at(known), plan.block, held, plan.shared_bytes, _stream())

    return run


def _scalars(rows: Sequence[Any], values: Sequence[Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    return {**sizes, **{r.name: values[r.index] for r in rows if r.kind == "scalar" and r.index is not None}}


def _through_device(launch: Run, kind: str, names: Sequence[str], outputs: frozenset[int]) -> Run:
    """Copy CPU tensors to the device, launch, and copy back what was written."""
    if kind == "hip":
        raise TileError("TL504", "the tensors are on the CPU, and the kernel runs on the GPU",
                        help="move them: x.to('cuda'), or set TILELAB_EMULATE=1")  # fmt: skip
    from tilelab.runtime.cuda_driver import cuda

    def run(values: list[Any]) -> None:
        spans = {
            i: flat_span(view_of(names[i], v))
            for i, v in enumerate(values)
            if not isinstance(v, int | float | np.generic)
        }
        held = {i: cuda().allocate(s.nbytes).fill_from(s) for i, s in spans.items()}
        launch([held.get(i, v) for i, v in enumerate(values)])
        cuda().synchronize()
        for i in outputs:
            held[i].copy_to(spans[i])

    return run


# ---- emulators


def _on_host(
    inner: Callable[[list[Any]], None], names: Sequence[str], values: list[Any], outputs: frozenset[int]
) -> None:
    """Run an emulator on the values; tensors of a GPU are copied to the host and back."""
    moved: dict[int, Any] = {}
    views: list[Any] = []
    for i, value in enumerate(values):
        if isinstance(value, int | float | np.generic):
            views.append(value)
            continue
        view = view_of(names[i], value)
        if view.device != "cpu":
            moved[i] = view.value.cpu()
            view = view_of(names[i], moved[i])
        views.append(view)
    inner(views)
    for i, host in moved.items():
        if i in outputs:
            values[i].copy_(host)


def _in_ir(
    built: Built, names: Sequence[str], sizes: Mapping[str, int], device_ir: Callable[[], PrimFunc]
) -> Callable[[list[Any]], None]:
    def run(views: list[Any]) -> None:
        from tilelab.emulate import emulate

        arrays = [as_numpy(v) if isinstance(v, TensorView) else v for v in views]
        scalars: dict[str, Any] = dict(sizes)
        emulate(device_ir(), arrays, **scalars)

    return run


def _in_gfx942(built: Built, sizes: Mapping[str, int]) -> Callable[[list[Any]], None]:
    if built.code is None:
        raise InternalError("a HIP kernel has no printed code")
    plan = plan_of(built.code, built.loose)

    def run(views: list[Any]) -> None:
        from tilelab.emulate.gfx942 import run as execute

        values = [flat_span(v) if isinstance(v, TensorView) else v for v in views]
        known = _scalars(plan.rows, values, sizes)
        grid = plan.grid_at(known)
        if 0 in grid:
            return
        given = [
            np.asarray(v, row.dtype)[()] if row.kind == "scalar" else (v if v.size else None)
            for row, v in zip(plan.rows, plan.arguments(values, known), strict=True)
        ]
        execute(built.binary, plan.entry, grid, plan.block, given, dynamic_lds=plan.shared_bytes)

    return run
