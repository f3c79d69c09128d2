"""Values as they compare between calls: numbers by type and value, containers, arrays and objects by what
they hold, functions by their code.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["MISSING", "Found", "Same", "contents", "is_frozen", "is_library"]

MISSING = object()

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))
_LIBRARIES = frozenset(("tilelab", "tvm", "tvm_ffi", "numpy", "torch", "ml_dtypes", *sys.stdlib_module_names))
_INSTALLED = ("site-packages", "dist-packages")
_CONTAINERS = (tuple, list, dict, set, frozenset, MutableSequence, MutableMapping, MutableSet)
_DEEPEST = 8  # levels of containers and objects, which may hold each other
_COMPARED_BYTES = 2**20  # larger tensors of torch count by identity and torch's count of writes


class Found:
    """Functions of the user that were met, each once; iterating gives also those found on the way."""

    def __init__(self, *first: Any) -> None:
        self.within: dict[int, int] = {}  # containers and objects being looked into, by their level
        self._met: dict[int, tuple[int, FunctionType]] = {}
        for function in first:
            self.add(function)
            self.add(inspect.unwrap(function))

    def add(self, function: FunctionType) -> int:
        """The number of a function, taken in where it is new."""
        return self._met.setdefault(id(function), (len(self._met), function))[0]

    def __iter__(self) -> Iterator[FunctionType]:
        done = 0
        while done < len(self._met):
            yield list(self._met.values())[done][1]
            done += 1


class Same:
    """A value that equals itself only; it is kept, so that no later one takes its place in memory."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


def is_library(value: Any) -> bool:
    """Whether a module, class or function comes from an installed package or the standard library."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if isinstance(value, FunctionType) and name == "builtins":
        return False  # made by exec among globals without a name
    if not isinstance(name, str):
        return True
    return _from_library(name)


@functools.lru_cache(4096)
def _from_library(module: str) -> bool:
    if module.partition(".")[0] in _LIBRARIES and module != "__main__":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return any(part in _INSTALLED for part in Path(file or "").parts)


def is_frozen(value: Any) -> bool:
    """Whether the value cannot change or counts by identity; what a function reads stands apart."""
    if value is MISSING or isinstance(value, (*_PLAIN, FunctionType, BuiltinFunctionType, enum.Enum)):
        return True
    if isinstance(value, tuple | frozenset):
        return all(is_frozen(v) for v in value)
    if isinstance(value, ModuleType):
        return True
    if isinstance(value, type):
        return is_library(value)
    return _of_library(value)


def _of_library(value: Any) -> bool:
    """Whether a value is an object of a library that holds nothing of the user's that can change."""
    holds = (np.ndarray, functools.partial, MethodType, property, staticmethod, classmethod)
    if isinstance(value, (*_CONTAINERS, *holds)) or _tensor(value) or not is_library(type(value)):
        return False
    return type(value).__module__.partition(".")[0] in ("tilelab", "tvm", "tvm_ffi") or not hasattr(
        value, "__dict__"
    )


def contents(value: Any, found: Found, depth: int = 0) -> Any:
    """A hashable stand-in that is equal for values that a kernel cannot tell apart; functions of the user go
    to `found`.
    """
    if isinstance(value, _PLAIN):
        # The text tells 0.0 from -0.0, and makes one "not a number" equal to another.
        return type(value), repr(value) if isinstance(value, float | complex) else value
    if isinstance(value, FunctionType):
        return _function(value, found, depth) if depth <= _DEEPEST else Same(value)
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value))
    if _tensor(value):
        return _tensor_contents(value)
    if depth > _DEEPEST:
        return Same(value)
    if id(value) in found.within:
        return "holder", found.within[id(value)]
    found.within[id(value)] = len(found.within)
    look = _container if isinstance(value, _CONTAINERS) else _object
    try:
        return look(value, found, depth + 1)
    finally:
        del found.within[id(value)]


def _function(value: FunctionType, found: Found, depth: int) -> Any:
    if is_library(value):
        return Same(value)
    number = found.add(value)
    defaults = tuple(contents(v, found, depth + 1) for v in (value.__defaults__, value.__kwdefaults__))
    inner = contents(getattr(value, "__wrapped__", None), found, depth + 1)
    return "function", number, Same(value.__code__), defaults, inner


def _container(value: Any, found: Found, depth: int) -> Any:
    if isinstance(value, Mapping):
        inner: Any = tuple((contents(k, found, depth), contents(v, found, depth)) for k, v in value.items())
    elif isinstance(value, set | frozenset):
        inner = frozenset(contents(v, found, depth) for v in value)
    else:
        inner = tuple(contents(v, found, depth) for v in value)
    return type(value), inner


def _array(value: np.ndarray) -> Any:
    if value.dtype.hasobject:
        return "array", value.shape, repr(value.tolist())
    digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()
    return "array", value.shape, str(value.dtype), digest


def _tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _tensor_contents(value: Any) -> Any:
    """Small ones on the CPU by content; others by torch's count of writes, which needs no copy."""
    here = value.device.type == "cpu" and value.layout is sys.modules["torch"].strided
    if not here or value.numel() * value.element_size() > _COMPARED_BYTES:
        return Same(value), value._version
    flat = value.detach().contiguous().reshape(-1).view(sys.modules["torch"].uint8)
    return "tensor", tuple(value.shape), str(value.dtype), _array(flat.numpy())


def _object(value: Any, found: Found, depth: int) -> Any:
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return "partial", *(contents(part, found, depth) for part in parts)
    if isinstance(value, MethodType):
        return "method", contents(value.__func__, found, depth), contents(value.__self__, found, depth)
    if isinstance(value, property | staticmethod | classmethod):
        return type(value), contents(
            value.fget if isinstance(value, property) else value.__func__, found, depth
        )
    function = getattr(value, "function", None) if is_library(type(value)) else None
    if isinstance(function, FunctionType):
        return type(value), _function(function, found, depth)  # a macro, or a kernel that jit decorated
    if isinstance(value, enum.Enum | ModuleType) or is_frozen(value):
        return Same(value)
    if isinstance(value, type):
        held = {k: v for k, v in vars(value).items() if isinstance(v, FunctionType) or not k.startswith("__")}
        bases = tuple(contents(c, found, depth) for c in value.__bases__)
        return Same(value), _container(held, found, depth), bases
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        held |= {n: getattr(value, n, None) for n in names if n not in ("__dict__", "__weakref__")}
    kind = type(value) if is_library(type(value)) else contents(type(value), found, depth)
    return (kind, _container(held, found, depth)) if held else (kind, Same(value))
