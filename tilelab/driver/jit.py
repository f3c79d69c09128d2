"""`@tilelang.jit`: kernels compiled when their arguments are known, in the eager and the lazy style."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelab.driver.calling import Prepared
from tilelab.driver.captures import Captures
from tilelab.driver.compiling import compile_parsed
from tilelab.driver.execution import choose
from tilelab.driver.kernel import Kernel
from tilelab.driver.pass_configs import read_pass_configs
from tilelab.driver.signature import Signature, described, pick_target, spec_of
from tilelab.driver.tracing import traced_call
from tilelab.errors import TileError
from tilelab.language.parser import parse_eager, parse_lazy, style_of, tensor_types
from tilelab.language.specs import ParsedKernel, TensorSpec
from tilelab.passes.base import Pass
from tilelab.runtime.arguments import is_tensor, view_of
from tilelab.runtime.check import check_device, check_strides, match_sizes
from tilelab.runtime.fingerprint import fingerprint
from tilelab.targets import Target, parse_target
from tilelab.trace.record import Trace
from tilelab.trace.schema import Note

__all__ = ["JitFunction", "jit"]

_KNOWN_WITHOUT_EFFECT = ("target_host", "execution_backend", "debug_root_path", "compile_flags")


class JitFunction:
    """A function that `jit` decorated.

    In the eager style it is called with tensors and gives the outputs; in the lazy style it is called with
    sizes and gives a Kernel. Each combination of shapes, dtypes, strides, other arguments, and values of the
    globals and closure variables that the source reads is compiled once.
    """

    __name__: str

    def __init__(
        self, function: Callable[..., Any], *, out_idx: Any = None, target: str | Target | None = None,
        pass_configs: Mapping[Any, Any] | None = None, passes: Sequence[Pass] | None = None,
        emulate: bool | None = None, verbose: bool = False, **others: Any,
    ) -> None:  # fmt: skip
        strange = [name for name in others if name not in _KNOWN_WITHOUT_EFFECT]
        if strange:
            raise TileError(
                "TL103",
                f"jit has no keyword {strange[0]!r}",
                help="jit takes out_idx, target, pass_configs, passes, emulate, verbose",
            )
        functools.update_wrapper(self, function)
        self.function = function
        self.out_idx, self.target, self.passes = out_idx, target, passes
        self.emulate, self.verbose = emulate, verbose
        given = [name for name, value in others.items() if value not in (None, "auto")]
        self.notes = (
            *read_pass_configs(pass_configs),
            *(Note("info", f"jit({name}=…) has no effect here") for name in given),
        )
        self.signature = Signature(function)
        self._captures = Captures(function)
        self._calls: dict[Any, tuple[Prepared, tuple[int, ...]]] = {}
        self._kernels: dict[Any, Kernel] = {}
        self._open: list[tuple[Any, Kernel]] = []
        self._latest: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    @functools.cached_property
    def style(self) -> str:
        """eager or lazy."""
        return style_of(self.function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<tilelab.jit function {self.__name__}, {self.style} style, {len(self._kernels)} compiled>"

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key: Any = tuple(
            [fingerprint(a, by_value=v) for a, v in zip(args, self.signature.by_value, strict=False)]
        )
        if kwargs or len(args) > len(self.signature.by_value):
            numbers = self.signature.numbers
            named = tuple([(k, fingerprint(v, by_value=k not in numbers)) for k, v in kwargs.items()])
            key = (key, len(args), named)
        key = (self._captures.present(), key)
        found = self._calls.get(key)
        if found is None:
            if self.style == "lazy":
                return self._lazy(args, kwargs)
            found = self._specialise(key, args, kwargs)
        prepared, picks = found
        if not kwargs:
            return prepared([args[i] for i in picks])
        values = self.signature.bind(args, self._split(kwargs)[0])
        ordered = list(values.values())
        return prepared([ordered[i] for i in picks])

    def _specialise(
        self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Prepared, tuple[int, ...]]:
        own, sizes = self._split(kwargs)
        values = self.signature.bind(args, own)
        kernel = self._kernel_for(values, sizes=sizes)
        names = list(values)
        inputs = [p.name for p in kernel.parsed.parameters if not p.output]
        prepared = kernel.prepare([values[n] for n in inputs])
        found = prepared, tuple(names.index(n) for n in inputs)
        self._latest = self._remember(values)
        self._calls[key] = found
        return found

    def _remember(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kept = {n: spec_of(n, v) if is_tensor(v) else v for n, v in values.items()}
        return (), kept

    def _kernel_for(
        self,
        values: Mapping[str, Any],
        target: Target | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> Kernel:
        specs, notes = self._specs(values)
        chosen = target or pick_target(self.target, values)
        state = self._captures.present()
        statics = tuple(
            (n, fingerprint(v, by_value=True))
            for n, v in (*specs.items(), *(sizes or {}).items())
            if not isinstance(v, TensorSpec)
        )
        for known, kernel in self._open:
            if known == (chosen, statics, state) and self._fits(kernel, values):
                return kernel
        views = {n: view_of(n, v) for n, v in values.items() if is_tensor(v)}
        check_device(views, choose(chosen, self.emulate).devices, str(chosen), "move it, or leave target out")
        started = time.perf_counter()
        parsed = self._parse(specs, sizes)
        seconds = time.perf_counter() - started
        match_sizes(parsed.name, [p for p in parsed.parameters if not p.output], views)
        # Calls that differ only in sizes that the kernel leaves open come to the same IR, and share its
        # kernel.
        key = (parsed.script(), chosen, parsed.returns, self.emulate)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = compile_parsed(
                parsed, chosen, passes=self.passes, emulate=self.emulate, notes=(*self.notes, *notes),
                call=described(self.__name__, {**specs, **(sizes or {})}, chosen), verbose=self.verbose,
                seconds=seconds,
            )  # fmt: skip
            self._kernels[key] = kernel
            if any(isinstance(n, str) for p in parsed.parameters for n in p.shape):
                self._open.append(((chosen, statics, state), kernel))
        return kernel

    def _fits(self, kernel: Kernel, values: Mapping[str, Any]) -> bool:
        """Whether a kernel with open sizes takes these arguments as they are."""
        inputs = [p for p in kernel.parsed.parameters if not p.output]
        if any(p.name not in values or (p.kind == "tensor") != is_tensor(values[p.name]) for p in inputs):
            return False
        views = {p.name: view_of(p.name, values[p.name]) for p in inputs if p.kind == "tensor"}
        if any(p.strides is None and not views[p.name].is_contiguous for p in inputs if p.name in views):
            return False
        try:
            match_sizes(kernel.name, inputs, views)
        except TileError:
            return False
        return True

    def _specs(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Note, ...]]:
        """Arguments as the parser takes them: tensors by their shape, dtype and strides; and what is slow
        about them.
        """
        specs: dict[str, Any] = {}
        notes = []
        for name, value in values.items():
            if not is_tensor(value):
                specs[name] = spec_of(name, value)
                continue
            if name in self.signature.numbers:
                mark = self.function.__annotations__[name]
                raise TileError("TL503", f"{name} is a tensor, and {self.__name__} wants a {mark} number")
            view = view_of(name, value)
            check_strides(name, view)
            specs[name] = spec_of(name, value)
            if not view.is_contiguous:
                text = f"{name} is not contiguous: the kernel is compiled for its strides {view.strides}"
                notes.append(Note("slow_path", text))
        return specs, tuple(notes)

    def _parse(self, specs: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> ParsedKernel:
        parsed = parse_eager(self.function, specs, sizes)
        return parsed if self.out_idx is None else parsed.with_outputs(self.out_idx)

    def _lazy(self, args: tuple[Any, ...], kwargs: dict[str, Any], target: Target | None = None) -> Kernel:
        values = self.signature.bind(args, kwargs)
        chosen = target or pick_target(self.target, values)
        arguments = tuple((n, fingerprint(v, by_value=True)) for n, v in values.items())
        key = (arguments, chosen, self._captures.present())
        self._latest = (args, dict(kwargs))
        kernel = self._kernels.get(key)
        if kernel is None:
            started = time.perf_counter()
            parsed = parse_lazy(self.function, args, kwargs, self.out_idx)
            kernel = self._kernels[key] = compile_parsed(
                parsed,
                chosen,
                passes=self.passes,
                emulate=self.emulate,
                notes=self.notes,
                verbose=self.verbose,
                call=described(self.__name__, values, chosen),
                seconds=time.perf_counter() - started,
            )
        return kernel

    # ---- without calling

    def _split(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keyword arguments of the function itself, and values of the sizes that its T.const names."""
        names = self.signature.parameters
        if self.style == "lazy" or all(n in names for n in kwargs):
            return kwargs, {}
        return {n: v for n, v in kwargs.items() if n in names}, {
            n: v for n, v in kwargs.items() if n not in names
        }

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The value of every parameter, and sizes; types of tensors left out follow from the sizes."""
        own, sizes = self._split(kwargs)
        given = dict(zip(self.signature.parameters, args, strict=False)) | own
        missing = [n for n, p in self.signature.parameters.items() if n not in given and p.default is p.empty]
        if self.style == "eager" and missing and len(args) <= len(self.signature.parameters):
            own = own | tensor_types(self.function, given, sizes)
        return self.signature.bind(args, own), sizes

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The generated code of the kernel that `compile` gives for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def compile(self, *args: Any, target: str | Target | None = None, **kwargs: Any) -> Kernel:
        """The Kernel for these arguments.

        Tensors may be given as types such as `T.Tensor((512, 1024), "float16")`, or left out where the kernel
        annotates them and the sizes that its T.const names are given: `kernel.compile(M=512, K=1024)`.
        """
        chosen = parse_target(target) if target is not None else None
        if self.style == "lazy":
            return self._lazy(args, kwargs, chosen)
        values, sizes = self._values(args, kwargs)
        return self._kernel_for(values, chosen, sizes)

    def parse(self, *args: Any, **kwargs: Any) -> ParsedKernel:
        """The kernel as tile IR for these arguments."""
        if self.style == "lazy":
            return parse_lazy(self.function, args, kwargs, self.out_idx)
        values, sizes = self._values(args, kwargs)
        return self._parse(self._specs(values)[0], sizes)

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """The tile IR for these arguments."""
        return self.parse(*args, **kwargs).func

    def trace(
        self,
        *args: Any,
        target: str | Target | None = None,
        passes: Sequence[Pass] | None = None,
        until: str | None = None,
        **kwargs: Any,
    ) -> Trace:
        """Every step of the compile for these arguments, up to `until`, without running anything."""
        values, sizes = self._values(args, kwargs)
        chosen = pick_target(target or self.target, values)
        specs, notes = (values, ()) if self.style == "lazy" else self._specs(values)
        call = described(self.__name__, {**specs, **sizes}, chosen)
        started = time.perf_counter()
        parsed = (
            self._parse(specs, sizes)
            if self.style == "eager"
            else parse_lazy(self.function, args, kwargs, self.out_idx)
        )
        seconds = time.perf_counter() - started
        return traced_call(parsed, chosen, passes or self.passes, until, (*self.notes, *notes), call, seconds)

    def latest(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the latest call, tensors by their types; TL406 when there was none."""
        if self._latest is None:
            raise TileError(
                "TL406",
                f"{self.__name__} was not called yet, so its arguments are not known",
                help=f"tilelab.trace({self.__name__}, T.Tensor((512, 512), 'float16'), …)",
            )
        return self._latest


def jit(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile the function when its arguments are known: `@jit` or `@jit(out_idx=[-1], target="llvm")`.

    `out_idx` names parameters that the call makes and returns, `target` what to compile for, `pass_configs`
    TileLang's keys, `passes` a pipeline of your own, `emulate` whether GPU targets run in the emulator.
    Raises TL103, TL405.
    """
    if func is None:
        return functools.partial(jit, **options)
    if isinstance(func, ParsedKernel):
        raise TileError(
            "TL105", f"{func.name} is a T.prim_func already", help=f"tilelab.compile({func.name})"
        )
    if not inspect.isfunction(func):
        raise TileError("TL105", f"jit decorates a function, not a {type(func).__name__}")
    return JitFunction(func, **options)
