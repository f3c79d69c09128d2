"""Tensor maps: what TMA has to know of a global tensor, checked here and encoded by the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tilelab.errors import TileError
from tilelab.hardware.model import bits
from tilelab.hardware.nvidia.tma import BOX_LIMIT

__all__ = ["check_tensor", "encode_tensor_map"]

_TYPES = {
    "uint8": "UINT8", "int8": "UINT8", "bool": "UINT8", "float8_e4m3fn": "UINT8", "float8_e5m2": "UINT8",
    "uint16": "UINT16", "int16": "UINT16", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "uint32": "UINT32",
    "int32": "INT32", "float32": "FLOAT32", "uint64": "UINT64", "int64": "INT64", "float64": "FLOAT64",
}  # fmt: skip
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}


def check_tensor(name: str, address: int, dtype: str, shape: Sequence[int], strides: Sequence[int]) -> None:
    """Raise TL505 when TMA cannot address the tensor; extents and strides are outermost first, in elements.

    Source: CUDA driver API, cuTensorMapEncodeTiled: base and strides are multiples of 16 bytes, strides below
    2^40.
    """
    size = bits(dtype) // 8
    if address % 16:
        raise TileError("TL505", f"{name} starts {address % 16} bytes after a 16-byte boundary",
                        help=f"pass {name}.clone()")  # fmt: skip
    if not 1 <= len(shape) <= 5 or any(not 1 <= e <= 2**32 for e in shape):
        raise TileError(
            "TL502", f"{name} has shape {tuple(shape)}: TMA takes one to five extents from 1 to 2^32"
        )
    if strides[-1] != 1:
        raise TileError("TL505", f"{name} has stride {strides[-1]} along its last axis, TMA needs 1",
                        help=f"pass {name}.contiguous()")  # fmt: skip
    for axis, stride in enumerate(strides[:-1]):
        if stride * size % 16 or not 0 < stride * size < 2**40:
            raise TileError(
                "TL505",
                f"{name} has a stride of {stride * size} bytes along axis {axis}, TMA needs a multiple of 16",
                help=f"pad {name}'s rows to a multiple of {16 // size} elements",
            )


def encode_tensor_map(
    cuda: Any,
    name: str,
    address: int,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    swizzle_bytes: int,
) -> bytes:
    """The 128 bytes of a tensor map. Sequences are outermost first; strides in elements; `name` is for
    errors.
    """
    if dtype not in _TYPES:
        raise TileError("TL503", f"{name} has dtype {dtype}, which TMA does not move")
    check_tensor(name, address, dtype, shape, strides)
    size = bits(dtype) // 8
    inner = box[-1] * size
    if max(box) > BOX_LIMIT or min(box) < 1 or len(box) != len(shape):
        raise TileError(
            "TL203", f"{name}: a box of {tuple(box)} is no box of a tensor with {len(shape)} axes"
        )
    if inner % 16 or (swizzle_bytes and inner > swizzle_bytes):
        raise TileError(
            "TL203", f"{name}: a box row of {inner} bytes does not fit a swizzle of {swizzle_bytes} bytes"
        )
    api = cuda.api
    prefix = "CU_TENSOR_MAP_"
    made = cuda.call(
        api.cuTensorMapEncodeTiled,
        getattr(api.CUtensorMapDataType, f"{prefix}DATA_TYPE_{_TYPES[dtype]}"),
        len(shape),
        address,
        [api.cuuint64_t(e) for e in reversed(shape)],
        [api.cuuint64_t(s * size) for s in reversed(strides[:-1])],
        [api.cuuint32_t(e) for e in reversed(box)],
        [api.cuuint32_t(1)] * len(box),
        getattr(api.CUtensorMapInterleave, f"{prefix}INTERLEAVE_NONE"),
        getattr(api.CUtensorMapSwizzle, f"{prefix}SWIZZLE_{_SWIZZLES[swizzle_bytes]}"),
        getattr(api.CUtensorMapL2promotion, f"{prefix}L2_PROMOTION_L2_256B"),
        getattr(api.CUtensorMapFloatOOBfill, f"{prefix}FLOAT_OOB_FILL_NONE"),
    )
    return ctypes.string_at(made.getPtr(), 128)
