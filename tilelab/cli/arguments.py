"""Kernels and arguments on a command line: `FILE::NAME`, and `A=float16[512,1024]` or `block_M=64`."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tilelab.errors import TileError

__all__ = ["check_needed", "example_of", "load_kernel", "read_argument"]

_TENSOR = re.compile(r"(?P<dtype>[a-z]\w*)\[(?P<shape>[\d,\s*]*)\]")
_SIZE = re.compile(r"\d+|\*")
_FORMS = (
    "--arg NAME=dtype[shape], as in --arg A=float16[512,1024], or --arg NAME=VALUE, as in --arg block_M=64"
)
_ASSIGNED = re.compile(r"\b(\w+)=(\w+\[[\d,\s*]*\]|[^\s,]+)")


def load_kernel(place: str) -> tuple[Any, Any]:
    """The kernel that `FILE::NAME` names, and its module; without a name, the only kernel of the file. Raises
    TL406.
    """
    file, _, name = place.partition("::")
    path = Path(file)
    if not path.is_file():
        raise TileError("TL406", f"there is no file {file}", help="tilelab show FILE.py::NAME")
    module = _module_of(path)
    kernels = {key: value for key, value in vars(module).items() if _is_kernel(value)}
    if name:
        if name not in kernels:
            listed = ", ".join(kernels) or "none: decorate functions with @tilelab.jit"
            raise TileError("TL406", f"{file} has no kernel {name!r}", help=f"kernels there: {listed}")
        return kernels[name], module
    if len(kernels) != 1:
        raise TileError(
            "TL406",
            f"{file} has {len(kernels)} kernels",
            help=f"name one of them: {', '.join(f'{file}::{key}' for key in kernels) or 'none'}",
        )
    return next(iter(kernels.values())), module


def _module_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise TileError("TL406", f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except TileError:
        raise
    except Exception as error:
        raise TileError("TL406", f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _is_kernel(value: Any) -> bool:
    return hasattr(value, "latest") or type(value).__name__ == "ParsedKernel"


def read_argument(text: str) -> tuple[str, Any]:
    """`A=float16[512,1024]` as a tensor type, `n=64` as a Python value; `*` is a size known at the launch.
    Raises TL501.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise TileError("TL501", f"the argument {text!r} is not NAME=VALUE", help=_FORMS)
    return name.strip(), _value(value.strip())


def check_needed(kernel: Any, place: str) -> None:
    """Raise TL501 where a kernel of the eager style needs arguments, and neither a call nor the file gives
    them.
    """
    signature = getattr(kernel, "signature", None)
    if signature is None or kernel.style != "eager" or getattr(kernel, "_latest", None) is not None:
        return
    names = [n for n, p in signature.parameters.items() if p.default is p.empty]
    if names:
        wanted = " ".join(
            f"--arg {n}={'NUMBER' if n in signature.numbers else 'dtype[shape]'}" for n in names
        )
        raise TileError(
            "TL501",
            f"{kernel.__name__} needs the argument{'s' * (len(names) > 1)} {', '.join(names)}",
            help=f"tilelab show {place} {wanted}, such as --arg {names[0]}=float16[512,1024]",
        )


def _value(text: str) -> Any:
    found = _TENSOR.fullmatch(text)
    if found:
        from tilelab.language.dtypes import dtype
        from tilelab.language.specs import TensorSpec

        sizes = [part.strip() for part in found["shape"].strip().removesuffix(",").split(",")]
        sizes = [] if sizes == [""] else sizes
        if not all(map(_SIZE.fullmatch, sizes)):
            raise TileError("TL501", f"{text!r} is not dtype[shape]", help=_FORMS)
        return TensorSpec(tuple(None if s == "*" else int(s) for s in sizes), str(dtype(found["dtype"])))
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if set(text) & set("[](){}"):
            raise TileError(
                "TL501", f"{text!r} is not dtype[shape] and no Python value", help=_FORMS
            ) from None
        return text


def example_of(kernel: Any, module: Any) -> Mapping[str, Any] | None:
    """Arguments that the file gives: its `EXAMPLE` (a dict of arguments, or of such dicts by kernel), or
    lines `Example: A=float16[512,1024] B=…` in the kernel's docstring.
    """
    name = getattr(kernel, "__name__", getattr(kernel, "name", ""))
    held = getattr(module, "EXAMPLE", None)
    if isinstance(held, Mapping):
        by_kernel = any(isinstance(value, Mapping) for value in held.values())
        chosen = held.get(name) if by_kernel else held
        if chosen is not None:
            return {k: _value(v) if isinstance(v, str) else v for k, v in chosen.items()}
    for line in (getattr(kernel, "__doc__", None) or "").splitlines():
        if line.strip().lower().startswith("example:"):
            return dict(_pairs(_ASSIGNED.findall(line)))
    return None


def _pairs(found: Iterable[tuple[str, str]]) -> Iterable[tuple[str, Any]]:
    return ((name, _value(text)) for name, text in found)
