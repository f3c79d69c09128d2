"""The HIP run time by ctypes: modules, launches and streams, where ROCm is installed.

Written from HIP's documented C interface and never run on an AMD GPU; where `libamdhip64` is missing, which
is everywhere that tilelab is tested, the driver runs the same code object in the gfx942 emulator.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilelab.errors import TileError
from tilelab.runtime.arguments import numpy_dtype

__all__ = ["HipKernel", "hip", "scalar_of"]

_SCALARS: dict[str, Any] = {
    "bool": ctypes.c_bool, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16, "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double,
}  # fmt: skip


def scalar_of(dtype: str, value: Any) -> Any:
    """A scalar argument as the bytes that the kernel reads."""
    if dtype in _SCALARS:
        return _SCALARS[dtype](value)
    return (ctypes.c_char * numpy_dtype(dtype).itemsize).from_buffer_copy(
        np.asarray(value, numpy_dtype(dtype)).tobytes()
    )


@cache
def hip() -> Any:
    """ROCm's library, when it is installed and has a device; None otherwise."""
    try:
        library = ctypes.CDLL("libamdhip64.so")
    except OSError:
        return None
    count = ctypes.c_int(0)
    if library.hipInit(0) != 0 or library.hipGetDeviceCount(ctypes.byref(count)) != 0 or count.value == 0:
        return None
    library.hipGetErrorString.restype = ctypes.c_char_p
    return library


def _check(library: Any, status: int, what: str) -> None:
    if status != 0:
        said = library.hipGetErrorString(status)
        raise TileError("TL506", f"{what}: {said.decode() if said else f'HIP error {status}'}")


class HipKernel:
    """A loaded code object's kernel. Raises TL506 with HIP's own words."""

    def __init__(self, code_object: bytes, entry: str) -> None:
        library = hip()
        if library is None:
            raise TileError("TL506", "no HIP device", help="leave the emulator switched on")
        self._hip, self._entry = library, entry
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(
            library, library.hipModuleLoadData(ctypes.byref(self._module), code_object), f"loading {entry}"
        )
        name = entry.encode()
        status = library.hipModuleGetFunction(ctypes.byref(self._function), self._module, name)
        _check(library, status, f"looking for {entry}")

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        values: Sequence[Any],
        shared_bytes: int = 0,
        stream: int = 0,
    ) -> None:
        """Launch with ctypes values in the parameters' order; an empty grid launches nothing."""
        if 0 in grid:
            return
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(v) for v in values))
        status = self._hip.hipModuleLaunchKernel(
            self._function,
            *map(ctypes.c_uint, (*grid, *block, shared_bytes)),
            ctypes.c_void_p(stream),
            pointers,
            None,
        )
        _check(self._hip, status, f"the launch of {self._entry}")
