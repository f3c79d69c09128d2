"""A compiled kernel: callable with tensors, with variants for what its arguments prove, its code, trace and
figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from tilelab.driver.building import Built, build
from tilelab.driver.calling import Checked, Prepared, check, loose_of, packing, positions_of, prepared
from tilelab.driver.execution import Execution, choose, has_empty_grid, written
from tilelab.driver.lowering import Loose, lower, traced
from tilelab.driver.running import Run, runner
from tilelab.errors import TileError
from tilelab.ir.nodes import PrimFunc
from tilelab.language.specs import ParsedKernel
from tilelab.passes.base import Pass
from tilelab.runtime.fingerprint import fingerprint
from tilelab.runtime.plan import LaunchPlan, plan_of
from tilelab.runtime.profiler import Profiler, TensorSupplyType
from tilelab.targets import Target
from tilelab.trace.record import Trace
from tilelab.trace.schema import Code, Note

__all__ = ["Kernel"]


class Kernel:
    """A kernel compiled for one target. Call it with its tensors; outputs that it makes itself are returned.

    Variants for arguments that start at odd addresses are compiled when they first come, and recorded in
    `notes`.
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
        self._variants: dict[Loose, Built] = {}
        self._device_ir: dict[Loose, PrimFunc] = {}
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

    def variant(self, loose: Loose = ()) -> Built:
        """The variant for tensors of which those in `loose` start at odd addresses, compiled when first asked
        for.
        """
        if loose not in self._variants:
            without = self.execution.reason if self.execution.kind == "ir" else ""
            self._variants[loose] = build(
                self.parsed, self.target, passes=self._passes, loose=loose, notes=self._notes,
                call=self.call, seconds=self._seconds, without_binary=without,
            )  # fmt: skip
        return self._variants[loose]

    @property
    def trace(self) -> Trace:
        """Every step of the compile; made again when the kernel came from the cache."""
        if self._trace is None:
            built = next(iter(self._variants.values()), None) or self.variant()
            trace = built.trace
            if trace is None:
                trace = traced(self.parsed, self.target, passes=self._passes, loose=built.loose,
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
        return plan_of(built.code, built.loose)

    @property
    def resource_usage(self) -> dict[str, Any]:
        """Registers, spills, stack and shared memory as the target's compiler reports them; empty for llvm.

        Where only the IR emulator runs the kernel, the compiler is called now; TL403 where there is none.
        """
        built = self.variant()
        if not built.resources and built.code is not None:
            built = build(self.parsed, self.target, passes=self._passes, loose=built.loose, call=self.call)
            self._variants[built.loose] = built
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
        call = self._prepared.get(key)
        if call is None:
            call = self._prepared[key] = self.prepare(args)
        return call(args)

    def _in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        strange = [name for name in kwargs if name not in self.inputs[len(args) :]]
        if strange:
            raise TileError("TL501", f"{self.name} has no argument {strange[0]!r} to be given by name",
                            help="arguments: " + ", ".join(self.inputs))  # fmt: skip
        return (*args, *(kwargs[name] for name in self.inputs[len(args) :] if name in kwargs))

    def prepare(self, args: Sequence[Any]) -> Prepared:
        """Check the arguments and get their variant ready. Raises TL501 to TL505, naming the argument."""
        checked = check(self.parsed, str(self.target), self.execution, args)
        return prepared(self.parsed, checked, args, self._run(checked))

    def _run(self, checked: Checked) -> Run:
        if self.is_empty:
            self.note("the grid is empty: nothing is compiled or launched", "info")
            return lambda values: None
        loose = loose_of(checked) if self.target.kind != "llvm" else ()
        if self._written is None:
            self._written = written(self.parsed.func)
        run = runner(
            self.variant(loose), self.execution, [p.name for p in self.parsed.parameters], checked.sizes,
            self._written, lambda: self.device_ir(loose), checked.device != "cpu",
        )  # fmt: skip
        if self.execution.kind in ("cuda", "hip") and checked.device == "cpu":
            self.note("arguments are copied to the GPU and back")
        if self.execution.kind in ("ir", "gfx942") and checked.device != "cpu":
            self.note("arguments are copied to the host and back")
        if not checked.scattered:
            return run
        names = ", ".join(checked.scattered)
        self.note(f"{names}: not contiguous, as the kernel's signature wants; copied for each call")
        return packing(run, positions_of(self.parsed, checked.scattered), self._written)

    def note(self, text: str, kind: Literal["slow_path", "info"] = "slow_path") -> None:
        """Add to `notes`, once, what came to light when the kernel ran."""
        if all(n.text != text for n in self._notes):
            note = Note(kind, text)
            self._notes = (*self._notes, note)
            if self._trace is not None:
                self._trace.steps[0].notes += (note,)

    def device_ir(self, loose: Loose = ()) -> PrimFunc:
        """The kernel after the last pass, as the IR emulator runs it."""
        if loose not in self._device_ir:
            built = self.variant(loose)
            f = built.function
            if f is None:
                f, _ = lower(self.parsed, self.target, passes=self._passes, loose=loose, notes=self._notes)
            self._device_ir[loose] = f
        return self._device_ir[loose]
