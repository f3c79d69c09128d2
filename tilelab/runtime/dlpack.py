"""CPU memory handed to TVM as DLPack: also what NumPy itself does not export, read-only and narrow-float
arrays.

Layout of the structures and codes of the dtypes: DLPack's header, version 0.8 (`DLManagedTensor`).
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

from tilelab.errors import TileError
from tilelab.runtime.arguments import TensorView

__all__ = ["Exported"]

_CODES = {
    "int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11,
    "float8_e5m2": 12, "float8_e5m2fnuz": 13,
}  # fmt: skip
_CPU = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


@cache
def _kind(dtype: str) -> tuple[int, int]:
    """DLPack's code and bits of a dtype."""
    if dtype == "bool":
        return _CODES["bool"], 8
    if dtype in _CODES:
        return _CODES[dtype], 8
    found = re.fullmatch(r"([a-z]+)(\d+)", dtype)
    if found is None or found[1] not in _CODES:
        raise TileError("TL503", f"tensors of dtype {dtype} cannot be passed to a CPU kernel")
    return _CODES[found[1]], int(found[2])


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Exported:
    """A CPU tensor as an object that speaks DLPack. It holds the structure, so it must outlive the call."""

    __slots__ = ("_axes", "_held", "_value")

    def __init__(self, view: TensorView) -> None:
        count = len(view.shape)
        self._value = view.value
        self._axes = (ctypes.c_int64 * max(2 * count, 1))(*view.shape, *view.strides)
        at = ctypes.addressof(self._axes)
        code, bits = _kind(view.dtype)
        self._held = _Tensor(
            view.pointer,
            _CPU,
            0,
            count,
            code,
            bits,
            1,
            at,
            at + 8 * count if 0 not in view.shape else None,
            0,
            None,
            None,
        )

    def __dlpack__(self, **_: Any) -> Any:
        return _capsule(ctypes.addressof(self._held), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0
