"""From a filled builder to the parsed kernel: the function with its attributes, parameters and outputs."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer
from tilelab.ir.rewrite import rewrite
from tilelab.language.builder import Builder, Param
from tilelab.language.dtypes import dtype
from tilelab.language.parser.source import FunctionSource
from tilelab.language.specs import Parameter, ParsedKernel
from tilelab.language.values import Tile, Variable

__all__ = ["finish"]


def finish(
    builder: Builder,
    source: FunctionSource,
    value: Any,
    constants: tuple[Any, ...],
    captured: tuple[Any, ...],
) -> ParsedKernel:
    """The kernel that was read; `value` is what its function returned."""
    if not builder.launched:
        raise TileError(
            "TL106", f"{source.node.name} has no T.Kernel", help="with T.Kernel(blocks, threads=128) as bx: …"
        )
    returns = _returns(builder, source, value)
    made = [i for i, p in enumerate(builder.params) if p.output]
    outputs = tuple([i for i in returns if i in made] + [i for i in made if i not in returns])
    body = _with_layouts(builder, b.seq(*builder.frames[0].statements))
    attrs: dict[str, Any] = {"stage": "tile", "outputs": list(outputs), **builder.attrs}
    if builder.ignored:
        attrs["ignored"] = list(builder.ignored)
    return ParsedKernel(
        name=source.node.name,
        func=b.function(source.node.name, [p.var for p in builder.params], body, **attrs),
        source=source.source,
        parameters=tuple(_parameter(p) for p in builder.params),
        outputs=outputs,
        returns=returns,
        single=isinstance(value, Tile),
        constants=constants,
        captured=(*captured, *builder.captured),
        ignored=tuple(builder.ignored),
    )


def _returns(builder: Builder, source: FunctionSource, value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    found = []
    for item in value if isinstance(value, tuple | list) else (value,):
        index = next(
            (i for i, p in enumerate(builder.params) if isinstance(item, Tile) and item.var is p.var), None
        )
        if index is None:
            name = (
                f"the tile {item.name}" if isinstance(item, Tile | Variable) else f"a {type(item).__name__}"
            )
            raise TileError(
                "TL105",
                f"{source.node.name} returns {name}, and outputs are made by T.empty",
                help="C = T.empty((M, N), dtype) before T.Kernel, T.copy into it, and return C",
            )
        found.append(index)
    return tuple(found)


def _with_layouts(builder: Builder, body: Any) -> Any:
    """The body with the layouts of T.annotate_layout on the allocations."""
    if not builder.layouts:
        return body

    def annotate(node: Any) -> Any:
        for var, text in builder.layouts:
            if node.buffer.same_as(var):
                return b.annotated(node, layout=text)
        return None

    return rewrite(body, (AllocBuffer, annotate))


def _size(value: Any) -> int | str:
    known = b.plain(value)
    return known if isinstance(known, int) else str(known)


def _parameter(param: Param) -> Parameter:
    if param.kind == "scalar":
        return Parameter(param.name, "scalar", str(param.var.ty))
    tile = Tile(param.var)
    strides = tuple(_size(s) for s in param.var.strides) or None
    return Parameter(
        param.name,
        "tensor",
        str(dtype(tile.dtype)),
        tuple(_size(n) for n in param.var.shape),
        strides,
        param.output,
    )
