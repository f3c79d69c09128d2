"""What the interpreter does for each call, operator and look-up in an expression of the kernel."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilelab.errors import InternalError, TileError
from tilelab.ir.spans import at
from tilelab.language.builder import building
from tilelab.language.math import if_then_else
from tilelab.language.math import max as t_max
from tilelab.language.math import min as t_min
from tilelab.language.parser import expressions
from tilelab.language.specs import ParsedKernel
from tilelab.language.values import Scalar, convert, is_symbolic, raw, wrap

__all__ = ["Hooks", "guarded"]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "@": operator.matmul,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip

# Attributes that only tensors and tiles have: what lacks them is an argument of the wrong kind.
_OF_TENSORS = ("shape", "dtype", "ndim", "strides")


@contextmanager
def guarded() -> Iterator[None]:
    """Exceptions of the user's Python code inside become TileErrors at the place in force."""
    try:
        yield
    except (TileError, InternalError, NameError):
        raise
    except Exception as error:
        text = str(error).strip().splitlines()
        raise TileError("TL111", f"{type(error).__name__}: {text[0] if text else 'no message'}") from error


def _fold(pick: Callable[[Any, Any], Any], *items: Any) -> Any:
    values = list(items[0]) if len(items) == 1 else list(items)
    result = values[0]
    for value in values[1:]:
        result = pick(result, value)
    return result


# Builtins that would ask a number of the kernel for its value.
_SYMBOLIC_BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.max: lambda *items: _fold(t_max, *items),
    builtins.min: lambda *items: _fold(t_min, *items),
    builtins.int: lambda value: convert(value, "int32"),
    builtins.float: lambda value: convert(value, "float32"),
    builtins.bool: lambda value: wrap(expressions.truth(raw(value))),
    builtins.pow: lambda x, y: x**y,
    builtins.round: lambda value: wrap(expressions.intrinsic("round", raw(value))),
}


def _hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _refuse_kernel(function: Any) -> None:
    """A kernel, compiled or not, is launched from Python and is no part of another one."""
    kind = type(function)
    is_kernel = isinstance(function, ParsedKernel) or kind.__module__.startswith("tilelab.driver")
    if is_kernel and building() is not None:
        name = getattr(function, "__name__", None) or getattr(function, "name", "a kernel")
        raise TileError(
            "TL101", f"{name} is a kernel, and a kernel cannot be called inside of one",
            help=f"make what they share a helper: @T.macro before def {name}, without T.Kernel",
        )  # fmt: skip


class Hooks:
    """The functions that rewritten expressions call; `span` gives the IR span of a place."""

    def __init__(self, span: Callable[[tuple[Any, ...]], Any]) -> None:
        self.span = span

    def table(self) -> dict[str, Any]:
        """The hooks under the names that rewritten expressions use."""
        names = ("call", "attribute", "item", "binary", "unary", "compare", "both", "either", "choose")
        return {f"__tl_{name}__": getattr(self, name) for name in names} | {"__tl_slice__": slice}

    def call(self, place: tuple[Any, ...], function: Any, *args: Any, **kwargs: Any) -> Any:
        """function(*args, **kwargs)"""
        with at(self.span(place)), guarded():
            if _hashable(function) and function in _SYMBOLIC_BUILTINS and not kwargs:
                items = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
                if any(is_symbolic(x) for x in items):
                    return _SYMBOLIC_BUILTINS[function](*args)
            _refuse_kernel(function)
            return function(*args, **kwargs)

    def attribute(self, place: tuple[Any, ...], value: Any, name: str) -> Any:
        """value.name"""
        with at(self.span(place)), guarded():
            if name in _OF_TENSORS and not hasattr(value, name):
                kind = "None" if value is None else f"of type {type(value).__name__}"
                raise TileError(
                    "TL503", f"a tensor is needed here, and the value is {kind}, which has no {name}",
                    help="pass a torch tensor, a NumPy array or anything else that speaks DLPack",
                )  # fmt: skip
            return getattr(value, name)

    def item(self, place: tuple[Any, ...], value: Any, index: Any) -> Any:
        """value[index]"""
        with at(self.span(place)), guarded():
            return value[index]

    def binary(self, place: tuple[Any, ...], op: str, left: Any, right: Any) -> Any:
        """left op right"""
        with at(self.span(place)), guarded():
            return _BINARY[op](left, right)

    def unary(self, place: tuple[Any, ...], op: str, value: Any) -> Any:
        """op value"""
        with at(self.span(place)), guarded():
            if op == "not":
                return wrap(expressions.logical("not", raw(value))) if is_symbolic(value) else not value
            return _UNARY[op](value)

    def compare(self, place: tuple[Any, ...], ops: tuple[str, ...], *values: Any) -> Any:
        """A comparison, or a chain of them."""
        with at(self.span(place)), guarded():
            result: Any = True
            for op, left, right in zip(ops, values, values[1:], strict=False):
                result = self._and(result, self._compare(op, left, right))
                if result is False:
                    return False
            return result

    def _and(self, left: Any, right: Any) -> Any:
        if not is_symbolic(left):
            return right if left else left
        if not is_symbolic(right):
            return left if right else right
        return wrap(expressions.logical("and", raw(left), raw(right)))

    def _compare(self, op: str, left: Any, right: Any) -> Any:
        if op in ("in", "not in"):
            found = self._contains(left, right)
            if op == "in":
                return found
            return wrap(expressions.logical("not", raw(found))) if is_symbolic(found) else not found
        return _COMPARE[op](left, right)

    def _contains(self, value: Any, items: Any) -> Any:
        if not is_symbolic(value) and not (isinstance(items, tuple | list) and any(map(is_symbolic, items))):
            return value in items
        result: Any = False
        for item in items:
            result = self._or(result, value == item)
        return result

    def _or(self, left: Any, right: Any) -> Any:
        if not is_symbolic(left):
            return left if left else right
        if not is_symbolic(right):
            return right if right else left
        return wrap(expressions.logical("or", raw(left), raw(right)))

    def both(self, place: tuple[Any, ...], *parts: Callable[[], Any]) -> Any:
        """a and b: Python's when a is known, else both sides as IR."""
        result = parts[0]()
        for part in parts[1:]:
            if not is_symbolic(result) and not result:
                return result
            with at(self.span(place)):
                result = self._and(result, part())
        return result

    def either(self, place: tuple[Any, ...], *parts: Callable[[], Any]) -> Any:
        """a or b: Python's when a is known, else both sides as IR."""
        result = parts[0]()
        for part in parts[1:]:
            if not is_symbolic(result) and result:
                return result
            with at(self.span(place)):
                result = self._or(result, part())
        return result

    def choose(self, place: tuple[Any, ...], test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """yes if test else no"""
        if isinstance(test, Scalar):
            with at(self.span(place)), guarded():
                return if_then_else(test, yes(), no())
        return yes() if test else no()
