"""From checked arguments to a prepared call: outputs, the variant that the arguments allow, copies where
needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.driver.execution import Execution
from tilelab.driver.lowering import ALIGNED, Loose
from tilelab.driver.running import Run
from tilelab.errors import TileError
from tilelab.language.specs import Parameter, ParsedKernel
from tilelab.runtime.allocate import allocate, hand_back
from tilelab.runtime.arguments import TensorView, is_tensor, view_of
from tilelab.runtime.check import check_count, check_device, check_strides, evaluate, match_sizes

__all__ = ["Checked", "Output", "Prepared", "check", "loose_of", "packing", "positions_of", "prepared"]

_NUMBERS = (int, float, np.generic)


@dataclass(frozen=True)
class Output:
    """A tensor that the call makes: its position among the parameters, and how it is allocated."""

    position: int
    framework: str
    shape: tuple[int, ...]
    dtype: str
    device: str


@dataclass(frozen=True)
class Checked:
    """Arguments that fit the kernel: their positions among its parameters, tensors as views, open sizes."""

    inputs: tuple[int, ...]
    parameters: tuple[Parameter, ...]
    views: dict[str, TensorView]
    sizes: dict[str, int]
    device: str

    @property
    def scattered(self) -> tuple[str, ...]:
        """Tensors that are not contiguous although the kernel's signature wants it."""
        return tuple(
            p.name
            for p in self.parameters
            if p.kind == "tensor" and p.strides is None and not self.views[p.name].is_contiguous
        )


@dataclass(frozen=True)
class Prepared:
    """A call whose arguments were checked: what is left is to make the outputs and run."""

    run: Run
    inputs: tuple[int, ...]
    made: tuple[Output, ...]
    count: int
    returns: tuple[int, ...]
    single: bool
    foreign: Any = None

    def __call__(self, args: Sequence[Any]) -> Any:
        values: list[Any] = [None] * self.count
        for index, value in zip(self.inputs, args, strict=True):
            values[index] = value
        for o in self.made:
            values[o.position] = allocate(o.framework, o.shape, o.dtype, o.device)
        self.run(values)
        if not self.returns:
            return None
        out = [values[i] for i in self.returns]
        if self.foreign is not None:
            out = [hand_back(v, self.foreign) for v in out]
        return out[0] if self.single else tuple(out)


def check(parsed: ParsedKernel, target: str, execution: Execution, args: Sequence[Any]) -> Checked:
    """Check the arguments, which may include the outputs. Raises TL501 to TL505, naming the argument."""
    everything = tuple(range(len(parsed.parameters)))
    wanted = tuple(i for i in everything if not parsed.parameters[i].output)
    inputs = everything if len(args) == len(everything) else wanted
    if inputs is wanted:
        check_count(parsed.name, [parsed.parameters[i].name for i in wanted], len(args))
    parameters = tuple(parsed.parameters[i] for i in inputs)
    views = {
        p.name: _view(parsed.name, p, value)
        for p, value in zip(parameters, args, strict=True)
        if _check_kind(parsed.name, p, value)
    }
    device = check_device(
        views, execution.devices, target, "compile it for the tensors' device, or move them: x.cpu()"
    )
    return Checked(inputs, parameters, views, match_sizes(parsed.name, parameters, views), device)


def _check_kind(kernel: str, p: Parameter, value: Any) -> bool:
    """Whether the parameter is a tensor; TL503 when the value is of the other kind."""
    if p.kind == "tensor":
        if not is_tensor(value):
            what = f"{p.name} is {_article(value)}, {kernel} wants a {p.dtype} tensor"
            raise TileError("TL503", what, help="pass a torch tensor or a NumPy array")
        return True
    if not isinstance(value, _NUMBERS):
        raise TileError("TL503", f"{p.name} is {_article(value)}, {kernel} wants a {p.dtype} number")
    return False


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


def _view(kernel: str, p: Parameter, value: Any) -> TensorView:
    view = view_of(p.name, value)
    check_strides(p.name, view)
    return view


def loose_of(checked: Checked) -> Loose:
    """Tensors whose address proves less than the usual alignment.

    NumPy arrays count as aligned: they are copied to a device, or read by an emulator. So do copies of
    scattered ones.
    """
    found = []
    for name, view in checked.views.items():
        step = view.pointer & -view.pointer
        if view.framework == "torch" and view.span and step < ALIGNED and name not in checked.scattered:
            found.append((name, step))
    return tuple(found)


def prepared(parsed: ParsedKernel, checked: Checked, args: Sequence[Any], run: Run) -> Prepared:
    """The call of `run` with these arguments and others like them."""
    first = next(iter(checked.views.values()), None)
    framework = first.framework if first is not None else ("torch" if "torch" in sys.modules else "numpy")
    made = tuple(
        Output(i, framework, tuple(evaluate(n, checked.sizes) for n in p.shape), p.dtype, checked.device)
        for i, p in enumerate(parsed.parameters)
        if i not in checked.inputs
    )
    foreign = [
        value
        for p, value in zip(checked.parameters, args, strict=True)
        if p.name in checked.views and checked.views[p.name].framework == "dlpack"
    ]
    return Prepared(
        run,
        checked.inputs,
        made,
        len(parsed.parameters),
        parsed.returns,
        parsed.single,
        next(iter(foreign), None),
    )


def packing(run: Run, positions: Sequence[int], written: frozenset[int]) -> Run:
    """Run on contiguous copies of the arguments at these positions, and copy back what was written."""

    def packed(values: list[Any]) -> None:
        held = list(values)
        for i in positions:
            held[i] = _contiguous(values[i])
        run(held)
        for i in written.intersection(positions):
            _fill(values[i], held[i])

    return packed


def _contiguous(value: Any) -> Any:
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value.contiguous()


def _fill(value: Any, result: Any) -> None:
    if isinstance(value, np.ndarray):
        value[...] = result
    else:
        value.copy_(result)


def positions_of(parsed: ParsedKernel, names: Sequence[str]) -> list[int]:
    """The positions of parameters by their names."""
    return [i for i, p in enumerate(parsed.parameters) if p.name in names]
