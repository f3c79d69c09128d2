"""Tensors from outside: what torch, NumPy and DLPack arguments say of themselves, and their memory as NumPy
arrays.

torch is never imported here: an argument can be a torch tensor only if somebody else has imported it.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import TileError
from tilelab.language.dtypes import DTYPES

__all__ = ["TensorView", "as_numpy", "contiguous_strides", "flat_span", "is_tensor", "numpy_dtype", "view_of"]


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor argument: shape and strides in elements, device such as cpu or cuda:0, address of element
    zero.

    `value` is what the back ends take; for DLPack objects it is the torch tensor or NumPy array made of them.
    """

    framework: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    pointer: int
    writable: bool
    value: Any

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps; axes of one element have no say."""
        return self.strides == contiguous_strides(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return numpy_dtype(self.dtype).itemsize

    @property
    def span(self) -> int:
        """Elements from the first to the last that the tensor reaches, both included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a dtype's name; those that NumPy lacks come from ml_dtypes, which TVM brings."""
    if hasattr(np, name) and name != "bool":
        return np.dtype(getattr(np, name))
    if name == "bool":
        return np.dtype(np.bool_)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def is_tensor(value: Any) -> bool:
    """Whether the argument is a tensor: of torch, NumPy, or anything that speaks DLPack."""
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")


def view_of(name: str, value: Any) -> TensorView:
    """What the argument says of itself.

    Raises TL503 for unknown dtypes and foreign byte orders, TL505 for unusable strides.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        view = _of_torch(name, value)
    elif isinstance(value, np.ndarray):
        view = _of_numpy(name, value, "numpy")
    else:
        view = _of_dlpack(name, value)
    if view.dtype not in DTYPES:
        raise TileError(
            "TL503", f"{name} is {view.dtype}, which no kernel takes", help="dtypes: " + ", ".join(DTYPES)
        )
    return view


def _normal(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides; those that nothing depends on (axes of one element, empty tensors) as if contiguous."""
    natural = contiguous_strides(shape)
    if 0 in shape:
        return natural
    if all(n == 1 or step == own for n, step, own in zip(shape, strides, natural, strict=True)):
        return natural
    return strides


def _of_torch(name: str, value: Any) -> TensorView:
    shape = tuple(value.shape)
    device = value.device
    kind = device.type if device.index is None else f"{device.type}:{device.index}"
    if value.layout != sys.modules["torch"].strided:
        raise TileError("TL505", f"{name} is a {str(value.layout).removeprefix('torch.')} tensor",
                        help=f"pass {name}.to_dense()")  # fmt: skip
    return TensorView(
        "torch", shape, _normal(shape, tuple(value.stride())), str(value.dtype).removeprefix("torch."), kind,
        value.data_ptr(), True, value.detach() if value.requires_grad else value,
    )  # fmt: skip


def _of_numpy(name: str, value: np.ndarray, framework: str) -> TensorView:
    kind = value.dtype
    if not kind.isnative:
        raise TileError("TL503", f"{name} has the byte order of another machine ({kind.str})",
                        help=f"pass {name}.astype({name}.dtype.newbyteorder('='))")  # fmt: skip
    size = kind.itemsize
    if any(n > 1 and step % size for n, step in zip(value.shape, value.strides, strict=True)):
        raise TileError(
            "TL505",
            f"{name} has strides of {value.strides} bytes, no multiples of its {size}-byte elements",
            help=f"pass numpy.ascontiguousarray({name})",
        )
    strides = _normal(value.shape, tuple(step // size for step in value.strides))
    return TensorView(
        framework, value.shape, strides, kind.name, "cpu", value.__array_interface__["data"][0],
        value.flags.writeable, value,
    )  # fmt: skip


def _of_dlpack(name: str, value: Any) -> TensorView:
    """A tensor of another framework, seen through NumPy on the CPU and through torch elsewhere."""
    try:
        return _of_numpy(name, np.from_dlpack(value), "dlpack")
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        torch = sys.modules.get("torch")
        if torch is None:
            raise TileError(
                "TL504",
                f"{name} is a {type(value).__name__} that NumPy cannot read: {error}",
                help="import torch first, which reads more devices and dtypes, or pass a NumPy array",
            ) from None
        return _of_torch(name, torch.from_dlpack(value))


def as_numpy(view: TensorView) -> np.ndarray:
    """The memory of a CPU tensor as a NumPy array of the same shape and strides, sharing it."""
    if isinstance(view.value, np.ndarray):
        return view.value
    kind = numpy_dtype(view.dtype)
    if view.span == 0:
        return np.empty(view.shape, kind)
    flat = flat_span(view)
    return np.lib.stride_tricks.as_strided(flat, view.shape, tuple(s * kind.itemsize for s in view.strides))


def flat_span(view: TensorView) -> np.ndarray:
    """The memory of a CPU tensor from its first to its last element, as a one-dimensional NumPy array sharing
    it.
    """
    kind = numpy_dtype(view.dtype)
    if view.span == 0:
        return np.empty((0,), kind)
    memory = (ctypes.c_char * (view.span * kind.itemsize)).from_address(view.pointer)
    return np.frombuffer(memoryview(memory), kind)
