"""Arguments against a kernel's parameters: number, rank, dtype, device, sizes and strides, each error by
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

from tilelab.errors import TileError
from tilelab.language.specs import Parameter
from tilelab.runtime.arguments import TensorView

__all__ = ["check_count", "check_device", "check_strides", "evaluate", "match_sizes"]

_WORDS: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max}
_compiled: dict[str, CodeType] = {}


LONGEST = 2**31  # elements; offsets are int32


def evaluate(size: int | str, sizes: Mapping[str, int]) -> int:
    """A size that is a number or the text of an expression of the kernel's sizes."""
    if isinstance(size, int):
        return size
    known = sizes.get(size)
    if known is not None:
        return known
    if size not in _compiled:
        _compiled[size] = compile(size.replace("T.", ""), "<size>", "eval")
    return int(eval(_compiled[size], _WORDS, dict(sizes)))


def check_count(kernel: str, wanted: Sequence[str], given: int) -> None:
    """Raise TL501 unless as many arguments are given as wanted."""
    if given < len(wanted):
        missing = ", ".join(wanted[given:])
        raise TileError("TL501", f"{kernel} lacks the argument{'s' * (len(wanted) - given > 1)} {missing}",
                        help=f"call {kernel}({', '.join(wanted)})")  # fmt: skip
    if given > len(wanted):
        raise TileError("TL501", f"{kernel} takes {len(wanted)} arguments, and {given} were given",
                        help=f"call {kernel}({', '.join(wanted)})")  # fmt: skip


def check_device(views: Mapping[str, TensorView], kinds: tuple[str, ...], target: str, help: str) -> str:
    """The device that all tensors are on, of one of `kinds`; TL504 names the argument that is elsewhere."""
    first: tuple[str, str] | None = None
    for name, view in views.items():
        if view.device.partition(":")[0] not in kinds:
            raise TileError(
                "TL504", f"{name} is on {view.device}, and the kernel is compiled for {target}", help=help
            )
        if first is None:
            first = (name, view.device)
        elif view.device != first[1]:
            raise TileError("TL504", f"{name} is on {view.device}, and {first[0]} is on {first[1]}",
                            help=f"move them to one device: {name}.to({first[1]!r})")  # fmt: skip
    return first[1] if first else kinds[0]


def check_strides(name: str, view: TensorView) -> None:
    """Raise TL505 for negative strides and for elements that share memory, TL305 for too many of them."""
    copy = (
        f"pass {name}.contiguous()" if view.framework == "torch" else f"pass numpy.ascontiguousarray({name})"
    )
    if 0 in view.shape:
        return
    axes = [(step, n) for n, step in zip(view.shape, view.strides, strict=True) if n > 1]
    if any(step < 0 for step, _ in axes):
        raise TileError("TL505", f"{name} has negative strides {view.strides}", help=copy)
    reach = 1
    for step, n in sorted(axes):
        if step < reach:
            raise TileError(
                "TL505",
                f"elements of {name} overlap in memory: shape {view.shape}, strides {view.strides}",
                help=copy,
            )
        reach = step * (n - 1) + reach
    if reach > LONGEST:
        raise TileError(
            "TL305",
            f"{name} reaches over {reach} elements; 32-bit offsets count up to {LONGEST}",
            help="give the kernel a part of the tensor at a time",
        )
    if view.pointer % view.itemsize:
        raise TileError(
            "TL505", f"{name} starts in the middle of an element, at address {view.pointer:#x}", help=copy
        )


def match_sizes(
    kernel: str, parameters: Sequence[Parameter], views: Mapping[str, TensorView]
) -> dict[str, int]:
    """The sizes that the kernel leaves open, read off the arguments.

    Raises TL502 for a wrong rank or shape, naming the argument that contradicts, and TL503 for a wrong dtype.
    """
    sizes: dict[str, int] = {}
    origin: dict[str, str] = {}
    later: list[tuple[Parameter, str, int | str, int]] = []
    for p in parameters:
        view = views.get(p.name)
        if view is None:
            continue
        _check_kind(kernel, p, view)
        found = list(zip((f"axis {i}" for i in range(len(p.shape))), p.shape, view.shape, strict=True))
        if p.strides is not None:
            found += zip((f"stride {i}" for i in range(len(p.strides))), p.strides, view.strides, strict=True)
        for what, wanted, actual in found:
            if isinstance(wanted, str) and wanted.isidentifier() and wanted not in sizes:
                sizes[wanted], origin[wanted] = actual, f"{what} of {p.name}"
            else:
                later.append((p, what, wanted, actual))
    for p, what, wanted, actual in later:
        value = evaluate(wanted, sizes)
        free = what.startswith("stride") and views[p.name].shape[int(what.split()[1])] <= 1
        if value != actual and not free:
            raise _mismatch(kernel, p, what, wanted, value, actual, views[p.name], origin)
    return sizes


def _check_kind(kernel: str, p: Parameter, view: TensorView) -> None:
    if len(view.shape) != len(p.shape):
        raise TileError(
            "TL502",
            f"{p.name} has {len(view.shape)} axes {view.shape}, {kernel} wants {len(p.shape)}: "
            f"({', '.join(map(str, p.shape))})",
        )
    if view.dtype != p.dtype:
        raise TileError("TL503", f"{p.name} is {view.dtype}, {kernel} wants {p.dtype}",
                        help=f"convert it, or compile the kernel for {view.dtype}")  # fmt: skip


def _mismatch(
    kernel: str,
    p: Parameter,
    what: str,
    wanted: Any,
    value: int,
    actual: int,
    view: TensorView,
    origin: Mapping[str, str],
) -> TileError:
    code = "TL505" if what.startswith("stride") else "TL502"
    if isinstance(wanted, int):
        return TileError(code, f"{what} of {p.name} is {actual}, {kernel} was compiled for {wanted}",
                         help=f"{p.name} has shape {view.shape} and strides {view.strides}")  # fmt: skip
    text = f"{what} of {p.name} is {actual}, and {wanted} is {value}"
    if wanted in origin:
        text += f" from {origin[wanted]}"
    return TileError(code, text, help="pass tensors whose sizes agree")
