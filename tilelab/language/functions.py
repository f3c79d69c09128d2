"""Decorators: T.prim_func reads a kernel, T.macro makes a helper that is inlined where it is called."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.lazy import LazyModule

if TYPE_CHECKING:
    from tilelab.language import parser
else:
    parser = LazyModule("tilelab.language.parser")

__all__ = ["Macro", "macro", "prim_func"]


def prim_func(func: Callable[..., Any] | None = None, *, eager_jit: bool = False) -> Any:
    """Read the function as a kernel whose tensors are annotated: `A: T.Tensor((M, K), T.float16)`."""
    if func is None:
        return prim_func
    if not inspect.isfunction(func):
        raise TileError("TL105", f"T.prim_func decorates a function, not a {type(func).__name__}")
    return parser.parse_prim_func(func, sys._getframe(1).f_locals)


class Macro:
    """A helper whose statements are inlined at each call, with names of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return parser.call_macro(self.function, args, kwargs)


def macro(func: Callable[..., Any] | None = None) -> Any:
    """Make the function a helper that is inlined where it is called; its arguments may be tiles."""
    return macro if func is None else Macro(func)
