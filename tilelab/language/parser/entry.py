"""Where reading starts: a kernel in the eager style, a T.prim_func, the factory of one, and calls of
macros."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.spans import at, current_span
from tilelab.language.builder import Builder, Param, building, open_builder
from tilelab.language.dtypes import dtype
from tilelab.language.parser.arguments import Tensors, dimension_names
from tilelab.language.parser.calls import callers_of, deeper
from tilelab.language.parser.finish import finish
from tilelab.language.parser.functions import (
    annotation_of,
    bound,
    captured,
    check_asked,
    header_span,
    surroundings,
)
from tilelab.language.parser.interpreter import Activation, Returned
from tilelab.language.parser.sizes import const_sizes
from tilelab.language.parser.source import mentions_kernel, read
from tilelab.language.parser.statements import perform
from tilelab.language.specs import ParsedKernel, TensorSpec
from tilelab.language.tensors import TensorType
from tilelab.language.values import Scalar, Tile

__all__ = ["call_macro", "parse_eager", "parse_lazy", "parse_prim_func"]

_NUMBERS = {int: "int32", float: "float32", bool: "bool"}


def parse_eager(
    function: Callable[..., Any], arguments: Mapping[str, Any], sizes: Mapping[str, int] | None = None
) -> ParsedKernel:
    """Read a kernel whose function takes tensors: each is given as a TensorSpec, other arguments as they are.

    `sizes` are values of T.const names that the caller states. Raises TileError at the line or for the
    argument at fault.
    """
    plain = inspect.unwrap(function)
    source, outer = read(plain), surroundings(plain)
    builder = Builder()
    with open_builder(builder), at(header_span(source)):
        given = bound(plain, arguments)
        tensors = Tensors(builder, dimension_names(source.node), sizes or {})
        env: dict[str, Any] = {}
        constants = []
        for name, value in given.items():
            mark = annotation_of(plain, name, outer)
            if isinstance(value, TensorSpec):
                env[name] = tensors.declare(name, value)
                if isinstance(mark, TensorType):
                    env[name] = tensors.annotate(name, mark)
            elif isinstance(mark, dtype):
                env[name] = _scalar(builder, name, mark)
            else:
                env[name] = value
                constants.append((name, value))
        builder.sizes = tensors.sizes
        builder.find_sizes = lambda: tensors.learn(const_sizes(plain, given))
        run = Activation(source, builder, outer, env, perform)

        def annotate(name: str, read_type: Callable[[], Any]) -> None:
            if name in tensors.specs and isinstance(kind := read_type(), TensorType):
                run.scope.env[name] = tensors.annotate(name, kind)

        run.annotate = annotate
        signal = run.run(source.node.body)
        value = signal.value if isinstance(signal, Returned) else None
        check_asked(plain, sizes or {}, builder.asked)
        return finish(builder, source, value, tuple(constants), captured(source, outer))


def _scalar(builder: Builder, name: str, kind: str) -> Scalar:
    var = b.var(name, kind)
    builder.params.append(Param(name, var, "scalar"))
    return Scalar(var)


def parse_prim_func(function: Callable[..., Any], around: Mapping[str, Any] | None = None) -> ParsedKernel:
    """Read a T.prim_func: every parameter has an annotation. `around` are names that text annotations may
    use."""
    source = read(function)
    outer = {**surroundings(function)}
    visible = {**outer, **(around or {})}
    builder = Builder()
    with open_builder(builder), at(header_span(source)):
        env: dict[str, Any] = {}
        for name in inspect.signature(function).parameters:
            mark = annotation_of(function, name, visible)
            if isinstance(mark, TensorType):
                var = b.buffer(builder.fresh(name), _raw(mark.shape), mark.dtype, strides=_raw(mark.strides))
                builder.params.append(Param(name, var, "tensor"))
                env[name] = Tile(var)
            elif isinstance(mark, dtype) or mark in _NUMBERS:
                env[name] = _scalar(builder, name, mark if isinstance(mark, dtype) else _NUMBERS[mark])
            else:
                what = "no annotation" if mark is None else f"the annotation {mark!r}"
                raise TileError(
                    "TL105",
                    f"the parameter {name} of {function.__name__} has {what}",
                    help=f"{name}: T.Tensor((M, N), T.float16), or a dtype such as T.int32 for a number",
                )
        run = Activation(source, builder, outer, env, perform)
        signal = run.run(source.node.body)
        if isinstance(signal, Returned) and signal.value is not None:
            raise TileError(
                "TL105",
                f"{function.__name__} returns a value, which a T.prim_func cannot",
                help="use out_idx of @tilelab.jit, or write the kernel in the eager style",
            )
        return finish(builder, source, None, (), captured(source, outer))


def _raw(extents: tuple[Any, ...]) -> list[Any]:
    return [n.expr if isinstance(n, Scalar) else n for n in extents]


def parse_lazy(
    factory: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    out_idx: Any = None,
) -> ParsedKernel:
    """Call a factory and give the T.prim_func that it returns, with the outputs that `out_idx` names."""
    try:
        made = factory(*args, **(kwargs or {}))
    except TileError as error:
        if error.code != "TL106" or mentions_kernel(factory):
            raise
        with at(header_span(read(factory))):
            raise TileError(
                "TL106",
                f"{factory.__name__} has no T.Kernel: {error.message}",
                help="with T.Kernel(blocks, threads=128) as bx: …",
            ) from error
    if not isinstance(made, ParsedKernel):
        raise TileError(
            "TL105",
            f"{getattr(factory, '__name__', factory)} returns a {type(made).__name__} and no T.prim_func",
            help="return the function that @T.prim_func decorates, or put T.Kernel into the function itself",
        )
    return made.with_outputs(out_idx)


def call_macro(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Interpret a macro's statements where it is called, and give what it returns."""
    builder = building()
    if builder is None:
        raise TileError(
            "TL106", f"the macro {getattr(function, '__name__', function)} is called outside of a kernel"
        )
    if not inspect.isfunction(function):
        return function(*args, **kwargs)
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise TileError("TL103", f"{function.__name__}: {error}") from None
    bound.apply_defaults()
    source, outer = read(function), surroundings(function)
    builder.captured.extend((f"{function.__name__}.{name}", value) for name, value in captured(source, outer))
    with deeper():
        run = Activation(source, builder, outer, bound.arguments, perform, callers_of(current_span()))
        signal = run.run(source.node.body)
    return signal.value if isinstance(signal, Returned) else None
