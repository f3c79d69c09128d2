"""What arguments say before a kernel is read: their order, their types, the target, and the call as text."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tilelab import settings
from tilelab.errors import TileError
from tilelab.language.dtypes import dtype
from tilelab.language.parser.functions import check_named
from tilelab.language.specs import TensorSpec
from tilelab.language.tensors import TensorType
from tilelab.language.values import is_symbolic
from tilelab.runtime.arguments import is_tensor, view_of
from tilelab.targets import Target, default_target, parse_target

__all__ = ["Signature", "described", "pick_target", "spec_of"]


class Signature:
    """The parameters of a function, with arguments put in their order. Raises TL501."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.function = function
        self.parameters = inspect.signature(function).parameters

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Parameters annotated with a dtype, such as `n: T.int32`: numbers that the kernel takes at its
        launch.
        """
        return frozenset(n for n, mark in self.function.__annotations__.items() if self._is_dtype(mark))

    def _is_dtype(self, mark: Any) -> bool:
        if isinstance(mark, str) and not isinstance(mark, dtype):
            try:
                mark = eval(mark, self.function.__globals__)
            except (NameError, AttributeError, SyntaxError, TypeError, TileError):
                return False  # the parser says what is wrong with it
        return isinstance(mark, dtype)

    @cached_property
    def by_value(self) -> tuple[bool, ...]:
        """For each parameter, whether another value of it means another kernel."""
        return tuple(name not in self.numbers for name in self.parameters)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The value of every parameter, defaults filled in."""
        check_named(self.function)
        names = list(self.parameters)
        listed = f"{self.name}({', '.join(map(str, self.parameters.values()))})"
        if len(args) > len(names):
            raise TileError("TL501", f"{self.name} takes {len(names)} arguments, and {len(args)} were given",
                            help=f"call {listed}")  # fmt: skip
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.parameters:
                raise TileError("TL501", f"{self.name} has no argument {name!r}", help=f"call {listed}")
            if name in values:
                raise TileError(
                    "TL501", f"the argument {name} of {self.name} is given twice", help=f"call {listed}"
                )
            values[name] = value
        out = {}
        missing = []
        for name, p in self.parameters.items():
            if name in values:
                out[name] = values[name]
            elif p.default is not p.empty:
                out[name] = p.default
            else:
                missing.append(name)
        if missing:
            raise TileError(
                "TL501",
                f"{self.name} lacks the argument{'s' * (len(missing) > 1)} {', '.join(missing)}",
                help=f"call {listed}",
            )
        return out


def spec_of(name: str, value: Any) -> Any:
    """A tensor, or a type such as T.Tensor((512, 1024), "float16"), as a TensorSpec; other values as they
    are.
    """
    if is_tensor(value):
        view = view_of(name, value)
        return TensorSpec(view.shape, view.dtype, None if view.is_contiguous else view.strides)
    if isinstance(value, TensorType):
        shape, strides = (
            tuple(None if is_symbolic(n) else n for n in part) for part in (value.shape, value.strides)
        )
        return TensorSpec(shape, str(value.dtype), strides or None)
    return value


def pick_target(wanted: str | Target | None, values: Mapping[str, Any]) -> Target:
    """The target asked for; else the setting's; else that of the device that the tensors are on."""
    if wanted not in (None, "auto"):
        return parse_target(wanted)
    if named := settings.get("target"):
        return parse_target(named)
    devices = [view_of(n, v).device.partition(":")[0] for n, v in values.items() if is_tensor(v)]
    if "cuda" in devices:
        hip = getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None)
        return parse_target("hip") if hip else _of_gpu()
    return parse_target("llvm") if devices else default_target()


def _of_gpu() -> Target:
    found = default_target()
    return found if found.kind == "cuda" else parse_target("cuda")


def described(name: str, specs: Mapping[str, Any], target: Target) -> str:
    """The Python that repeats the trace of this compile."""
    parts = [f"{key}={_text(value)}" for key, value in specs.items()]
    return f"tilelab.trace({', '.join([name, *parts, f'target={str(target)!r}'])})"


def _text(value: Any) -> str:
    if not isinstance(value, TensorSpec):
        return repr(value)
    shape = (
        "(" + "".join(f"{'T.dynamic(chr(110))' if n is None else n}, " for n in value.shape).rstrip() + ")"
    )
    if value.strides is not None:
        return f"T.StridedTensor({shape}, {value.strides}, {value.dtype!r})"
    return f"T.Tensor({shape.replace(',)', ')') if len(value.shape) > 1 else shape}, {value.dtype!r})"
