"""A compiled kernel: callable with tensors, with variants for what its arguments prove, its code, trace and figures."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tilelab.driver.building import Built, build
from tilelab.driver.lowering import ALIGNED, lower, traced
from tilelab.driver.running import Execution, Run, choose, has_empty_grid, runner, written
from tilelab.errors import TileError
from tilelab.ir.nodes import PrimFunc
from tilelab.language.specs import ParsedKernel
from tilelab.passes.base import Pass
from tilelab.runtime.allocate import allocate, hand_back
from tilelab.runtime.arguments import TensorView, is_tensor, view_of
from tilelab.runtime.check import check_count, check_device, check_strides, evaluate, match_sizes
from tilelab.runtime.fingerprint import fingerprint
from tilelab.runtime.plan import LaunchPlan, plan_of
from tilelab.runtime.profiler import Profiler, TensorSupplyType
from tilelab.targets import Target
from tilelab.trace.record import Trace
from tilelab.trace.schema import Code, Note

__all__ = ["Kernel", "Prepared"]


@dataclass(frozen=True)
class Prepared:
    """A call whose arguments were checked: only outputs are made, and the variant is run."""

    run: Run
    inputs: tuple[int, ...]
    made: tuple[tuple[int, str, tuple[int, ...], str, str], ...]
    count: int
    returns: tuple[int, ...]
    single: bool
    foreign: Any = None

    def __call__(self, args: Sequence[Any]) -> Any:
        values: list[Any] = [None] * self.count
        for index, value in zip(self.inputs, args, strict=True):
            values[index] = value
        for index, framework, shape, dtype, device in self.made:
            values[index] = allocate(framework, shape, dtype, device)
        self.run(values)
        if not self.returns:
            return None
        out = [values[i] for i in self.returns]
        if self.foreign is not None:
            out = [hand_back(v, self.foreign) for v in out]
        return out[0] if self.single else tuple(out)


class Kernel:
    """A kernel compiled for one target. Call it with its tensors; outputs that it makes itself are returned.

    Variants for arguments that start at odd addresses are compiled when they first come, and recorded in `notes`.
    """

    def __init__(
        self, parsed: ParsedKernel, target: Target, *, passes: Iterable[Pass] | None = None,
        emulate: bool | None = None, notes: tuple[Note, ...] = (), call: str = "", verbose: bool = False,
        seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self.parsed = parsed
        self.target = target
        self.execution: Execution = choose(target, emulate)
        self.call = call
        self._passes = None if passes is None else tuple(passes)
        self._notes = notes
        self._seconds = seconds
        self._variants: dict[int, Built] = {}
        self._device_ir: dict[int, PrimFunc] = {}
        self._trace: Trace | None = None
        self._prepared: dict[Any, Prepared] = {}
        self._written: frozenset[int] | None = None
        self.is_empty = has_empty_grid(parsed.func)
        self.inputs = tuple(p.name for p in parsed.parameters if not p.output)
        if verbose:
            print(f"tilelab: {parsed.name} for {target}, runs {self.execution.doc}")

    # ---- what was compiled

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.parsed.name

    @property
    def notes(self) -> tuple[Note, ...]:
        """Slower paths and remarks of all variants, each once."""
        found = [*self._notes, *(n for built in self._variants.values() for n in built.notes)]
        if self.execution.reason:
            found.append(Note("info", f"runs {self.execution.doc}: {self.execution.reason}"))
        return tuple({n.text: n for n in found}.values())

    def variant(self, alignment: int = ALIGNED) -> Built:
        """The variant that presumes base addresses at multiples of `alignment` bytes, compiled when first asked for."""
        if alignment not in self._variants:
            without = self.execution.reason if self.execution.kind == "ir" else ""
            self._variants[alignment] = build(
                self.parsed, self.target, passes=self._passes, alignment=alignment, notes=self._notes,
                call=self.call, seconds=self._seconds, without_binary=without,
            )  # fmt: skip
        return self._variants[alignment]

    @property
    def trace(self) -> Trace:
        """Every step of the compile; made again when the kernel came from the cache."""
        if self._trace is None:
            built = next(iter(self._variants.values()), None) or self.variant()
            trace = built.trace
            if trace is None:
                trace = traced(self.parsed, self.target, passes=self._passes, alignment=built.alignment,
                               notes=self._notes, call=self.call, seconds=self._seconds)  # fmt: skip
            elif trace.code is None and built.host is not None:
                trace.code = Code("llvm", built.host.lines)
            self._trace = trace
        return self._trace

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The generated code: CUDA or HIP C++, or LLVM IR."""
        built = self.variant()
        return built.code.text if built.code is not None else built.host.llvm

    def print_source_code(self, file: Any = None) -> None:
        """Print the generated code."""
        print(self.get_kernel_source(), file=file)

    @property
    def prim_func(self) -> PrimFunc:
        """The kernel as tile IR."""
        return self.parsed.func

    @property
    def plan(self) -> LaunchPlan:
        """How the kernel is launched. Raises TL402 for llvm, whose kernels are plain functions."""
        built = self.variant()
        if built.code is None:
            raise TileError("TL402", f"{self.name} is compiled for {self.target} and has no launch plan",
                            help="ask for a kernel of a cuda or hip target")  # fmt: skip
        return plan_of(built.code, built.alignment)

    @property
    def resource_usage(self) -> dict[str, Any]:
        """Registers, spills, stack and shared memory as the target's compiler reports them; empty for llvm.

        Where only the IR emulator runs the kernel, the compiler is called now; TL403 where there is none.
        """
        built = self.variant()
        if not built.resources and built.code is not None:
            built = build(
                self.parsed, self.target, passes=self._passes, alignment=built.alignment, call=self.call
            )
            self._variants[built.alignment] = built
        return dict(built.resources)

    @property
    def n_regs(self) -> int | None:
        """Registers of a thread, where the target's compiler was run."""
        return self.resource_usage.get("registers")

    @property
    def n_spills(self) -> int | None:
        """Bytes (cuda) or registers (hip) stored outside, where the target's compiler was run."""
        return self.resource_usage.get("spill_stores")

    def get_profiler(self, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Profiler:
        """Times the kernel on tensors that it makes up, and compares it with a reference."""
        return Profiler(self, tensor_supply_type)

    def __repr__(self) -> str:
        return f"<tilelab kernel {self.name} for {self.target}: runs {self.execution.doc}>"

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = self._in_order(args, kwargs)
        key = tuple([fingerprint(a) for a in args])
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = self.prepare(args)
        return prepared(args)

    def _in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        strange = [name for name in kwargs if name not in self.inputs[len(args) :]]
        if strange:
            raise TileError("TL501", f"{self.name} has no argument {strange[0]!r} to be given by name",
                            help="arguments: " + ", ".join(self.inputs))  # fmt: skip
        return (*args, *(kwargs[name] for name in self.inputs[len(args) :] if name in kwargs))

    def prepare(self, args: Sequence[Any]) -> Prepared:
        """Check the arguments and get their variant ready. Raises TL501 to TL505, naming the argument."""
        if self._gives_outputs(args):
            inputs = tuple(range(len(self.parsed.parameters)))
        else:
            check_count(self.name, self.inputs, len(args))
            inputs = tuple(i for i, p in enumerate(self.parsed.parameters) if not p.output)
        parameters = [self.parsed.parameters[i] for i in inputs]
        views: dict[str, TensorView] = {}
        for p, value in zip(parameters, args, strict=True):
            if p.kind == "tensor":
                if not is_tensor(value):
                    raise TileError(
                        "TL503", f"{p.name} is a {type(value).__name__}, {self.name} wants a {p.dtype} tensor"
                    )
                views[p.name] = view_of(p.name, value)
                check_strides(p.name, views[p.name])
            elif (is_tensor(value) and np.ndim(value)) or not isinstance(value, int | float | np.generic):
                raise TileError(
                    "TL503", f"{p.name} is a {type(value).__name__}, {self.name} wants a {p.dtype} number"
                )
        device = self._check_device(views)
        sizes = match_sizes(self.name, parameters, views)
        loose = [
            p
            for p in parameters
            if p.kind == "tensor" and p.strides is None and not views[p.name].is_contiguous
        ]
        run = self._runner(views, sizes, device, loose)
        return Prepared(
            run, inputs, self._made(inputs, views, sizes, device), len(self.parsed.parameters),
            self.parsed.returns, self.parsed.single,
            next((v for p, v in zip(parameters, args, strict=True) if p.name in views and views[p.name].framework == "dlpack"), None),
        )  # fmt: skip

    def _gives_outputs(self, args: Sequence[Any]) -> bool:
        return bool(self.parsed.outputs) and len(args) == len(self.parsed.parameters) != len(self.inputs)

    def _check_device(self, views: Mapping[str, TensorView]) -> str:
        kinds = self.execution.devices
        cpu_help = "compile it for the tensors' device, or move them: x.cpu()"
        return check_device(views, kinds, str(self.target), cpu_help)

    def _made(
        self, inputs: tuple[int, ...], views: Mapping[str, TensorView], sizes: Mapping[str, int], device: str
    ) -> tuple[tuple[int, str, tuple[int, ...], str, str], ...]:
        first = next(iter(views.values()), None)
        framework = first.framework if first is not None else ("torch" if "torch" in sys.modules else "numpy")
        return tuple(
            (i, framework, tuple(evaluate(n, sizes) for n in p.shape), p.dtype, device)
            for i, p in enumerate(self.parsed.parameters)
            if i not in inputs
        )

    def _runner(
        self, views: Mapping[str, TensorView], sizes: Mapping[str, int], device: str, loose: Sequence[Any]
    ) -> Run:
        if self.is_empty:
            self._note("the grid is empty: nothing is compiled or launched", "info")
            return lambda values: None
        alignment = ALIGNED
        if self.target.kind != "llvm":
            for view in views.values():
                # NumPy arrays are copied to the device, or read by an emulator, at aligned addresses.
                if view.framework == "torch" and view.span:
                    alignment = min(alignment, view.pointer & -view.pointer)
        built = self.variant(alignment)
        names = [p.name for p in self.parsed.parameters]
        if self._written is None:
            self._written = written(self.parsed.func)
        run = runner(
            built,
            self.execution,
            names,
            sizes,
            self._written,
            lambda: self.device_ir(alignment),
            device != "cpu",
        )
        if self.execution.kind in ("cuda", "hip") and device == "cpu":
            self._note("arguments are copied to the GPU and back")
        if self.execution.kind in ("ir", "gfx942") and device != "cpu":
            self._note("arguments are copied to the host and back")
        return self._packing(run, loose) if loose else run

    def _packing(self, run: Run, loose: Sequence[Any]) -> Run:
        """Copy arguments that are not contiguous as the kernel's signature wants, and copy back what was written."""
        names = ", ".join(p.name for p in loose)
        self._note(f"{names}: not contiguous, as the kernel's signature wants; copied for each call")
        at = [self.parsed.parameters.index(p) for p in loose]

        def packed(values: list[Any]) -> None:
            held = list(values)
            for i in at:
                held[i] = (
                    np.ascontiguousarray(values[i])
                    if isinstance(values[i], np.ndarray)
                    else values[i].contiguous()
                )
            run(held)
            for i in at:
                if i in (self._written or ()):
                    if isinstance(values[i], np.ndarray):
                        values[i][...] = held[i]
                    else:
                        values[i].copy_(held[i])

        return packed

    def _note(self, text: str, kind: Literal["slow_path", "info"] = "slow_path") -> None:
        if all(n.text != text for n in self._notes):
            note = Note(kind, text)
            self._notes = (*self._notes, note)
            if self._trace is not None:
                self._trace.steps[0].notes += (note,)

    def device_ir(self, alignment: int = ALIGNED) -> PrimFunc:
        """The kernel after the last pass, as the IR emulator runs it."""
        if alignment not in self._device_ir:
            built = self.variant(alignment)
            f = built.function
            if f is None:
                f, _ = lower(
                    self.parsed, self.target, passes=self._passes, alignment=alignment, notes=self._notes
                )
            self._device_ir[alignment] = f
        return self._device_ir[alignment]
