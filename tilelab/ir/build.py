"""Builders of IR under one name; each new node takes the current span (`ir/spans.py`), of itself."""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm.tirx.script.builder.tirx as tvm_script
from tvm import ir, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as tvm_builder

from tilelab.ir.nodes import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    PrimFunc,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
    dtype_of,
)
from tilelab.ir.spans import at, call_of, current_span
from tilelab.ir.statements import seq
from tilelab.ir.tile_ops import op_of, tile_op
from tilelab.ir.values import (
    absolute,
    all_of,
    any_of,
    as_expr,
    as_int,
    bitwise,
    call,
    cast,
    ceildiv,
    const,
    floordiv,
    floormod,
    highest,
    lowest,
    maximum,
    minimum,
    moves_by_one,
    negation,
    quotient,
    ramp,
    remainder,
    select,
    shuffle_xor,
    var,
)

__all__ = [
    "absolute", "all_of", "alloc", "annotated", "any_of", "as_expr", "as_int", "attr", "bind", "bitwise",
    "buffer", "call", "cast", "ceildiv", "const", "evaluate", "floordiv", "floormod", "for_", "function",
    "group", "group_of", "highest", "if_", "launch", "load", "lowest", "maximum", "minimum", "moves_by_one",
    "negation", "plain", "quotient", "ramp", "region", "remainder", "select", "seq", "shuffle_xor",
    "stage_of", "store", "tile", "tile_with", "var", "while_", "whole", "with_attrs", "with_stage",
]  # fmt: skip

SERIAL, PARALLEL = ForKind.SERIAL, ForKind.PARALLEL
VECTORIZED, UNROLLED = ForKind.VECTORIZED, ForKind.UNROLLED

# ---- buffers


def buffer(
    name: str, shape: Sequence[Any], dtype: str, scope: str = "global", strides: Sequence[Any] = ()
) -> Var:
    """A new buffer; scopes are global, shared.dyn, local.fragment, local, local.var and shared.barrier."""
    return tirx.decl_buffer(list(shape), dtype, name=name, scope=scope, strides=list(strides) or None)


def load(source: Var, indices: Sequence[Any]) -> Expr:
    """The element (or vector, with a ramp as last index) of a buffer."""
    return tirx.BufferLoad(source, [as_expr(i) for i in indices], current_span())


def region(source: Var, ranges: Sequence[tuple[Any, Any]]) -> Region:
    """The part of a buffer given by (first index, extent) of each dimension."""
    return tirx.BufferRegion(source, [ir.Range.from_min_extent(as_expr(lo), as_expr(n)) for lo, n in ranges])


def whole(source: Var) -> Region:
    """The whole buffer as a region."""
    return region(source, [(0, n) for n in source.shape])


# ---- statements


def store(target: Var, value: Any, indices: Sequence[Any]) -> Stmt:
    """target[indices] = value, converted to the buffer's dtype."""
    lanes = _lanes(value)
    dtype = dtype_of(target) if lanes == 1 else f"{dtype_of(target)}x{lanes}"
    converted = cast(dtype, value) if isinstance(value, Expr) else const(value, dtype_of(target))
    return Store(target, converted, [as_expr(i) for i in indices], current_span())


def _lanes(value: Any) -> int:
    return int(value.ty.dtype.lanes) if isinstance(value, Expr) and hasattr(value.ty, "dtype") and hasattr(
        value.ty.dtype, "lanes") else 1  # fmt: skip


def for_(
    loop_var: Var,
    extent: Any,
    body: Stmt,
    kind: ForKind = SERIAL,
    annotations: Mapping[str, Any] | None = None,
    start: Any = 0,
) -> For:
    """A loop of `extent` steps from `start`."""
    return For(
        loop_var,
        as_expr(start),
        as_expr(extent),
        kind,
        body,
        annotations=dict(annotations or {}),
        span=current_span(),
    )


def while_(condition: Expr, body: Stmt) -> While:
    """A loop that runs while the condition holds."""
    return While(condition, body, current_span())


def if_(condition: Any, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """A branch; a condition that is known picks its side at once."""
    if isinstance(condition, bool):
        return then if condition else (otherwise or seq())
    return IfThenElse(condition, then, otherwise, current_span())


def bind(name: Var, value: Any) -> Bind:
    """A scalar given a name, in scope until the end of the enclosing sequence."""
    return Bind(name, as_expr(value), current_span())


def evaluate(value: Expr) -> Evaluate:
    """A statement that evaluates an expression for its effect."""
    return Evaluate(value, current_span())


def alloc(target: Var, **annotations: Any) -> AllocBuffer:
    """The allocation of a buffer, in scope until the end of the enclosing sequence."""
    notes = {f"tl.{key}": value for key, value in annotations.items()}
    return AllocBuffer(target, notes, call_of(current_span()))


def annotated(node: AllocBuffer | For, **annotations: Any) -> AllocBuffer | For:
    """The node with annotations `tl.<key>` added or, for None, removed; its span stays."""
    merged = {str(k): v for k, v in node.annotations.items()}
    for key, value in annotations.items():
        merged[f"tl.{key}"] = value
        if value is None:
            del merged[f"tl.{key}"]
    if isinstance(node, AllocBuffer):
        return AllocBuffer(node.buffer, merged, node.span)
    return For(
        node.loop_var,
        node.min,
        node.extent,
        node.kind,
        node.body,
        node.thread_binding,
        merged,
        node.step,
        node.span,
    )


def attr(key: str, value: Any, body: Stmt) -> AttrStmt:
    """A scope that says something of its body; prints as `with T.attr({key: value}):`."""
    held = ir.StringImm(value) if isinstance(value, str) else as_expr(value)
    return AttrStmt(0, key, held, body, current_span())


def group(name: str, first: int, count: int, body: Stmt) -> AttrStmt:
    """A role: `body` is executed by `count` threads from thread `first` on."""
    return attr("tl.group", f"{name}:{first}:{count}", body)


def group_of(node: Stmt) -> tuple[str, int, int] | None:
    """(name, first thread, count) when the statement is a role's body, else None."""
    if not isinstance(node, AttrStmt) or str(node.attr_key) != "tl.group":
        return None
    name, first, count = str(node.value.value).split(":")
    return name, int(first), int(count)


def tile(op: str, *args: Any, **config: Any) -> TileCall:
    """A tile operation of `ir/tile_ops.py`; keywords that are None are left out."""
    kept = {key: value for key, value in config.items() if value is not None}
    # The node's constructor takes no span; a builder frame gives it one.
    with IRBuilder() as builder, tvm_builder.prim_func():
        tvm_builder.func_name("f")
        span = current_span()
        node = TileCall(*args, op=tile_op(op), config=kept)
        if span is None:
            tvm_script.f_insert(node)
        else:
            with builder.with_source_span(span):
                tvm_script.f_insert(node)
    return builder.get().body


def tile_with(node: TileCall, *args: Any, **config: Any) -> TileCall:
    """The tile operation with other operands (if any are given) and keywords added or, for None, removed."""
    merged = {str(key): value for key, value in node.config.items()} | config
    with at(node.span):
        return tile(op_of(node).name, *(args or node.args), **merged)


def launch(tag: str, index: Var, extent: Any, body: Stmt) -> AttrStmt:
    """The binding of a launch index: tag is blockIdx.x, .y, .z or threadIdx.x, .y, .z."""
    axis = IterVar(ir.Range(0, extent), index, IterVar.ThreadIndex, tag)
    return AttrStmt(axis, "thread_extent", as_expr(extent), body, current_span())


# ---- functions


def function(name: str, params: Sequence[Var], body: Stmt, **attrs: Any) -> PrimFunc:
    """A function whose attributes are `global_symbol` and `tl.<key>` for each keyword."""
    f = PrimFunc(list(params), body)
    return f.with_attr({"global_symbol": name} | {f"tl.{key}": value for key, value in attrs.items()})


def with_attrs(f: PrimFunc, **attrs: Any) -> PrimFunc:
    """The function with attributes `tl.<key>` set."""
    return f.with_attr({f"tl.{key}": value for key, value in attrs.items()})


def with_stage(f: PrimFunc, stage: str) -> PrimFunc:
    """The function marked as being at `stage`."""
    return with_attrs(f, stage=stage)


def stage_of(f: PrimFunc) -> str:
    """The stage that the function is at."""
    return str(f.attrs["tl.stage"])


def plain(value: Any) -> Any:
    """An attribute, annotation or keyword as a Python value: integers, floats, strings, lists and dicts."""
    if isinstance(value, tirx.IntImm):
        return bool(value.value) if dtype_of(value) == "bool" else int(value.value)
    if isinstance(value, tirx.FloatImm):
        return float(value.value)
    if isinstance(value, ir.StringImm):
        return str(value.value)
    if isinstance(value, str | int | float | bool) or value is None:
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Mapping) or hasattr(value, "items"):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "__iter__"):
        return [plain(v) for v in value]
    return value
