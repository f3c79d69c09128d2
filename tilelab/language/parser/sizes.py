"""The types of a kernel's tensors from the values of its T.const sizes: `kernel.compile(M=1024, N=512)`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.spans import at
from tilelab.language.builder import Builder, open_builder
from tilelab.language.parser.entry import annotation_of, check_asked, header_span, surroundings
from tilelab.language.parser.interpreter import Activation
from tilelab.language.parser.source import read
from tilelab.language.parser.statements import perform
from tilelab.language.tensors import TensorType
from tilelab.language.values import Tile, raw

__all__ = ["tensor_types"]


def tensor_types(
    function: Callable[..., Any], arguments: Mapping[str, Any], sizes: Mapping[str, Any]
) -> dict[str, TensorType]:
    """The types of the parameters that `arguments` leaves out, as their annotations say.

    `sizes` holds the value of each name that T.const asks for. Only the statements before T.Kernel are read.
    Raises TL501 for a size that is not asked for, and for a parameter without annotation.
    """
    plain = inspect.unwrap(function)
    source, outer = read(plain), surroundings(plain)
    builder = Builder()
    builder.sizes, builder.given = dict(sizes), True
    found: dict[str, TensorType] = {}
    with open_builder(builder), at(header_span(source)):
        env: dict[str, Any] = {}
        for name, parameter in inspect.signature(plain).parameters.items():
            mark = annotation_of(plain, name, outer)
            if name in arguments:
                env[name] = arguments[name]
            elif isinstance(mark, TensorType):
                found[name], env[name] = mark, _tile(name, mark)
            elif parameter.default is not parameter.empty:
                env[name] = parameter.default
        run = Activation(source, builder, outer, env, perform)

        def annotate(name: str, read_type: Callable[[], Any]) -> None:
            if name in arguments or not isinstance(kind := read_type(), TensorType):
                return
            found[name] = kind
            run.scope.bind(name, _tile(name, kind))

        run.annotate = annotate
        for statement in source.node.body:
            if any(isinstance(part, ast.With) for part in ast.walk(statement)):
                break
            run.run([statement])
        check_asked(plain, sizes, builder.asked)
        _complete(plain, arguments, found)
    return found


def _tile(name: str, kind: TensorType) -> Tile:
    return Tile(
        b.buffer(name, [raw(n) for n in kind.shape], kind.dtype, strides=[raw(n) for n in kind.strides])
    )


def _complete(
    function: Callable[..., Any], arguments: Mapping[str, Any], found: Mapping[str, TensorType]
) -> None:
    """Every parameter has a value, a default or a type."""
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in arguments and name not in found and parameter.default is parameter.empty:
            raise TileError(
                "TL501",
                f"{function.__name__} lacks the argument {name!r}, which has no annotation either",
                help=f"annotate it, {name}: T.Tensor((M, K), T.float16), or give such a type as {name}",
            )
