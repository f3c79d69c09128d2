"""A CUDA kernel ready to be called: arguments into an array of pointers, tensor maps encoded, the grid
computed.

Arguments were checked before they come here (shape, dtype, device); what is checked here is what TMA asks
for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from tilelab.errors import InternalError
from tilelab.runtime.cuda_driver import Cuda, DeviceBuffer
from tilelab.runtime.cuda_tensor_map import encode_tensor_map
from tilelab.trace.code import CodeText, Parameter, TensorMap

__all__ = ["BoundLaunch", "CudaKernel"]

_SCALARS: dict[str, Any] = {
    "bool": ctypes.c_bool, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16, "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double,
}  # fmt: skip
_MAPS_KEPT = 256  # encoded tensor maps that a kernel keeps: enough for an allocator's few addresses
_WORDS = {"min": min, "max": max}


class _Expression:
    """An extent as a Python expression of the kernel's scalars, compiled once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.constant = int(text) if text.lstrip("-").isdigit() else None
        self.code: CodeType = compile(text, "<extent>", "eval")

    def __call__(self, scalars: Mapping[str, int]) -> int:
        if self.constant is not None:
            return self.constant
        return int(eval(self.code, {"__builtins__": {}}, {**_WORDS, **scalars}))


@dataclass(frozen=True)
class _Recipe:
    """A tensor map's expressions, compiled."""

    made: TensorMap
    shape: tuple[_Expression, ...]
    strides: tuple[_Expression, ...]


class CudaKernel:
    """A loaded kernel and how to call it. Raises TL301, TL506 on loading, TL505 and TL506 on calls."""

    def __init__(self, cuda: Cuda, code: CodeText, cubin: bytes) -> None:
        self.cuda = cuda
        self.code = code
        self.function = cuda.load(cubin, code.entry, code.shared_bytes)
        self._grid = tuple(_Expression(e) for e in code.grid)
        self._recipes = {
            p.name: _Recipe(p.tensor_map, *(tuple(_Expression(e) for e in part)
                            for part in (p.tensor_map.shape, p.tensor_map.strides)))
            for p in code.parameters if p.tensor_map is not None
        }  # fmt: skip
        self._maps: dict[tuple[Any, ...], bytes] = {}
        self._positions = dict(code.buffers)

    def bind(self, arguments: Sequence[Any], scalars: Mapping[str, int] | None = None) -> BoundLaunch:
        """A launch with these arguments: torch tensors, device buffers, addresses or numbers, by parameter
        position.

        `scalars` gives the extents and strides that stand in the kernel as variables.
        """
        self.cuda.activate()
        known = dict(scalars or {})
        for p in self.code.parameters:
            if p.kind == "scalar" and p.index is not None:
                known[p.name] = arguments[p.index]
        values = [self._value(p, arguments, known) for p in self.code.parameters]
        grid = tuple(e(known) for e in self._grid)
        return BoundLaunch(self, (grid[0], grid[1], grid[2]), values)

    def _value(self, p: Parameter, arguments: Sequence[Any], known: Mapping[str, int]) -> Any:
        if p.kind == "buffer":
            return ctypes.c_uint64(address_of(arguments[p.index or 0]))
        if p.kind == "scalar":
            if p.dtype not in _SCALARS:
                raise InternalError(f"{p.name}: no scalar argument of dtype {p.dtype}")
            value = arguments[p.index] if p.index is not None else known[p.name]
            return _SCALARS[p.dtype](value)
        recipe = self._recipes[p.name]
        position = self._positions[recipe.made.buffer]
        encoded = self._encode(recipe, address_of(arguments[position]), known)
        return ctypes.create_string_buffer(encoded, 128)

    def _encode(self, recipe: _Recipe, address: int, known: Mapping[str, int]) -> bytes:
        shape = tuple(e(known) for e in recipe.shape)
        strides = tuple(e(known) for e in recipe.strides)
        key = (recipe.made, address, shape, strides)
        if key not in self._maps:
            made = recipe.made
            if len(self._maps) >= _MAPS_KEPT:
                self._maps.clear()
            self._maps[key] = encode_tensor_map(
                self.cuda, made.buffer, address, made.dtype, shape, strides, made.box, made.swizzle_bytes
            )
        return self._maps[key]


class BoundLaunch:
    """A launch whose arguments stand ready in an array of pointers; calling it costs one driver call."""

    def __init__(self, kernel: CudaKernel, grid: tuple[int, int, int], values: list[Any]) -> None:
        self.grid = grid
        self._values = values  # keeps the storage alive
        self._pointers = _aligned_pointers(values)
        address = ctypes.addressof(self._pointers)
        launch, block = kernel.function.launch, kernel.code.block
        self._launch: Callable[[int], None] = lambda stream: launch(grid, block, address, stream)

    def __call__(self, stream: int = 0) -> None:
        """Launch on a stream (a CUstream handle as an integer; 0 is the default stream)."""
        self._launch(stream)


def _aligned_pointers(values: list[Any]) -> Any:
    # The driver copies each argument by its size, so the storage itself needs no alignment.
    pointers = (ctypes.c_void_p * max(len(values), 1))()
    for i, value in enumerate(values):
        pointers[i] = ctypes.addressof(value)
    return pointers


def address_of(argument: Any) -> int:
    """The device address of a torch tensor, of our own buffer, or of an integer that is one."""
    if isinstance(argument, DeviceBuffer):
        return argument.address
    if hasattr(argument, "data_ptr"):
        return int(argument.data_ptr())
    if isinstance(argument, int):
        return argument
    raise InternalError(f"no device address in a {type(argument).__name__}")
