"""What the statements before T.Kernel connect: tensors' types from values of T.const names, and values of
T.const names from tensors' shapes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.spans import at
from tilelab.language.builder import Builder, open_builder
from tilelab.language.dtypes import dtype
from tilelab.language.parser.functions import annotation_of, check_asked, header_span, surroundings
from tilelab.language.parser.interpreter import Activation
from tilelab.language.parser.source import read
from tilelab.language.parser.statements import perform
from tilelab.language.specs import TensorSpec
from tilelab.language.tensors import TensorType
from tilelab.language.values import Scalar, Tile, is_symbolic, raw

__all__ = ["const_sizes", "tensor_types"]


def tensor_types(
    function: Callable[..., Any], arguments: Mapping[str, Any], sizes: Mapping[str, Any]
) -> dict[str, TensorType]:
    """The types of the parameters that `arguments` leaves out, as their annotations say.

    `sizes` holds the value of each name that T.const asks for. Only the statements before T.Kernel are read.
    Raises TL501 for a size that is not asked for, and for a parameter without annotation.
    """
    plain = inspect.unwrap(function)
    builder = Builder()
    builder.sizes, builder.given = dict(sizes), True
    found: dict[str, TensorType] = {}
    _read_declarations(plain, builder, arguments, found)
    left = {name: kind for name, kind in found.items() if name not in arguments}
    with at(header_span(read(plain))):
        check_asked(plain, sizes, builder.asked)
        for name, parameter in inspect.signature(plain).parameters.items():
            if name not in arguments and name not in left and parameter.default is parameter.empty:
                raise TileError(
                    "TL501",
                    f"{plain.__name__} lacks the argument {name}, which has no annotation either",
                    help=f"annotate it, {name}: T.Tensor((M, K), T.float16), or give such a type as {name}",
                )
    return left


class _Symbols(dict[str, Scalar]):
    """A symbol for every name that T.const asks for."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Scalar:
        self[name] = Scalar(b.var(name))
        return self[name]


def const_sizes(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """Name of T.const → its value and the axis that gives it, where an extent or stride is that name alone.

    Tensors among the arguments are TensorSpecs. The declarations are read with a symbol for each size, so
    shapes that Python variables hold (`shape = (M, N)`) are seen through.
    """
    builder = Builder()
    builder.sizes = symbols = _Symbols()
    found: dict[str, TensorType] = {}
    # Statements may ask for a size's value before all are known; what was found by then may be enough, and a
    # size that is missing still is reported where T.const asks for it.
    with suppress(TileError):
        _read_declarations(function, builder, arguments, found)
    sizes: dict[str, tuple[int, str]] = {}
    for name, kind in found.items():
        spec = arguments[name]
        if not isinstance(spec, TensorSpec):
            continue
        for what, wanted, given in (
            ("axis", kind.shape, spec.shape),
            ("stride", kind.strides, spec.strides or ()),
        ):
            for axis, (extent, known) in enumerate(zip(wanted, given, strict=False)):
                for label, symbol in symbols.items():
                    if is_symbolic(extent) and known is not None and extent.expr.same_as(symbol.expr):
                        sizes.setdefault(label, (known, f"{what} {axis} of {name}"))
    return sizes


def _read_declarations(
    function: Callable[..., Any], builder: Builder, arguments: Mapping[str, Any], found: dict[str, TensorType]
) -> None:
    """Read the statements before T.Kernel, and put the type that an annotation gives to a parameter into
    `found`."""
    source, outer = read(function), surroundings(function)
    with open_builder(builder), at(header_span(source)):
        env: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            mark = annotation_of(function, name, outer)
            value = arguments.get(name, parameter.default)
            if isinstance(mark, TensorType):
                found[name], env[name] = mark, _tile(name, mark)
            elif isinstance(value, TensorSpec):
                env[name] = _tile(name, _type_of(name, value))
            elif isinstance(mark, dtype):
                env[name] = Scalar(b.var(name, mark))
            elif value is not parameter.empty:
                env[name] = value
        parameters = list(inspect.signature(function).parameters)
        run = Activation(source, builder, outer, env, perform)

        def annotate(name: str, read_type: Callable[[], Any]) -> None:
            if name in parameters and isinstance(kind := read_type(), TensorType):
                found[name] = kind
                run.scope.bind(name, _tile(name, kind))

        run.annotate = annotate
        for statement in source.node.body:
            if any(isinstance(part, ast.With) for part in ast.walk(statement)):
                break
            run.run([statement])


def _type_of(name: str, spec: TensorSpec) -> TensorType:
    shape = tuple(Scalar(b.var(f"{name}_{axis}")) if n is None else n for axis, n in enumerate(spec.shape))
    return TensorType(shape, spec.dtype)


def _tile(name: str, kind: TensorType) -> Tile:
    strides = [raw(n) for n in kind.strides]
    return Tile(b.buffer(name, [raw(n) for n in kind.shape], dtype(kind.dtype), strides=strides))
