"""Where a compiled variant runs: the CPU, a device, or an emulator, and how arguments get there and back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilelab import settings
from tilelab.driver.building import Built
from tilelab.errors import InternalError, TileError
from tilelab.ir.build import as_int
from tilelab.ir.nodes import AttrStmt, PrimFunc, Store, TileCall, is_buffer
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import writes
from tilelab.runtime.arguments import TensorView, as_numpy, flat_span, view_of
from tilelab.runtime.dlpack import Exported
from tilelab.runtime.plan import plan_of
from tilelab.targets import Target

__all__ = ["Execution", "choose", "has_empty_grid", "runner", "written"]

Run = Callable[[list[Any]], None]


@dataclass(frozen=True)
class Execution:
    """Where kernels of a target run here.

    `kind` is cpu, cuda, hip, gfx942 (the code object in the emulator) or ir (the IR emulator); `reason` says why it
    is not the device itself.
    """

    kind: str
    reason: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """The kinds of device that its tensors may be on."""
        return {"cpu": ("cpu",), "cuda": ("cuda", "cpu"), "hip": ("cuda", "cpu")}.get(
            self.kind, ("cpu", "cuda")
        )

    @property
    def doc(self) -> str:
        """A few words for people."""
        return {
            "cpu": "on the CPU", "cuda": "on the GPU", "hip": "on the GPU",
            "gfx942": "the compiled code object in the gfx942 emulator, never run on silicon",
            "ir": "the device IR in the emulator",
        }[self.kind]  # fmt: skip


def choose(target: Target, emulate: bool | None = None) -> Execution:
    """Where kernels for the target run on this machine; `emulate` overrides the setting of that name."""
    forced = settings.get("emulate") if emulate is None else emulate
    if target.kind == "llvm":
        return Execution("cpu")
    if target.kind == "cuda":
        reason = "emulation was asked for" if forced else _why_not_cuda(target.arch)
        return Execution("ir", reason) if reason else Execution("cuda")
    if not forced and _has_hip():
        return Execution("hip")
    reason = "emulation was asked for" if forced else "there is no ROCm device here"
    from tilelab.runtime.hip_build import find_tool

    if find_tool() is None:
        return Execution("ir", f"{reason}, and no compiler for {target.arch}: pip install 'tilelab[hip]'")
    return Execution("gfx942", reason)


@cache
def _why_not_cuda(arch: str) -> str:
    """Why this machine cannot run code for `arch`; nothing when it can."""
    from tilelab.runtime.cuda_driver import cuda

    try:
        major, minor = cuda().capability
    except TileError as error:
        return error.message.partition(":")[0]
    number = arch.removeprefix("sm_")
    wanted = int(number.rstrip("a")[:-1]), int(number.rstrip("a")[-1])
    fits = (major, minor) == wanted if number.endswith("a") else major == wanted[0] and minor >= wanted[1]
    return "" if fits else f"the GPU here is sm_{major}{minor}, which does not run code for {arch}"


def _has_hip() -> bool:
    from tilelab.runtime.hip_driver import hip

    return hip() is not None


def has_empty_grid(f: PrimFunc) -> bool:
    """Whether the kernel is known to have no blocks: one of its tensors is empty."""
    binds = (
        s for s in each_statement(f.body) if isinstance(s, AttrStmt) and str(s.attr_key) == "thread_extent"
    )
    return any(as_int(s.value) == 0 for s in binds)


def written(f: PrimFunc) -> frozenset[int]:
    """Positions of the parameters that the kernel writes."""
    names = set()
    for node in each_statement(f.body):
        if isinstance(node, Store):
            names.add(str(node.buffer.name))
        elif isinstance(node, TileCall):
            names |= {str(region.source.name) for region in writes(node)}
    return frozenset(i for i, p in enumerate(f.params) if is_buffer(p) and str(p.name) in names)


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

    def run(values: list[Any]) -> None:
        if wanted:
            set_threads(wanted)
        call(*(_for_tvm(name, value) for name, value in zip(names, values, strict=True)))

    return run


def _for_tvm(name: str, value: Any) -> Any:
    """The value as TVM takes it: tensors that their own library exports well as they are, the others exported by us."""
    if isinstance(value, np.ndarray):
        # NumPy exports neither read-only arrays nor dtypes that are not its own, and says odd strides of empty ones.
        if value.size and value.flags.writeable and value.dtype.isbuiltin == 1:
            return value
        return Exported(view_of(name, value))
    if isinstance(value, int | float | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    torch = sys.modules.get("torch")
    # torch says strides of empty tensors that TVM does not expect, and exports none that need a gradient.
    if torch is not None and isinstance(value, torch.Tensor) and value.numel() and not value.requires_grad:
        return value
    return Exported(view_of(name, value))


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
        emulate(device_ir(), arrays, **sizes)

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
