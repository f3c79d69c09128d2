"""Outputs that the run time makes, in the framework and on the device of the inputs."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from tilelab.errors import TileError
from tilelab.runtime.arguments import numpy_dtype

__all__ = ["allocate", "hand_back"]


def allocate(framework: str, shape: tuple[int, ...], dtype: str, device: str) -> Any:
    """An uninitialised tensor. Raises TL503 for a dtype that torch does not have."""
    if framework != "torch" and device == "cpu":
        return np.empty(shape, numpy_dtype(dtype))
    torch = sys.modules.get("torch") or importlib.import_module("torch")
    kind = getattr(torch, dtype, None)
    if kind is None:
        raise TileError("TL503", f"torch {torch.__version__} has no dtype {dtype} for an output",
                        help="pass NumPy arrays, or give the output as an argument")  # fmt: skip
    return torch.empty(shape, dtype=kind, device=device)


def hand_back(value: Any, like: Any) -> Any:
    """A result of a call whose inputs speak only DLPack, in their own framework where that reads DLPack."""
    home = sys.modules.get(type(like).__module__.partition(".")[0])
    read = getattr(home, "from_dlpack", None) or getattr(getattr(home, "dlpack", None), "from_dlpack", None)
    return read(value) if read is not None else value
