"""IR as text: printing a function as lines with their source, and reading such text back.

Tile operations print as `T.copy(...)`; TVM's own spelling is `T.tile.tl_copy(...)`, restored before parsing.
"""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import tvm.tirx.script.builder.tirx as tvm_script
from tvm import ir
from tvm.script import from_source
from tvm.tirx import BufferRegion, PrimFunc
from tvm.tirx.script import tile as tvm_tile_namespace
from tvm.tirx.script.builder.ir import register_script_namespace

from tilelab.ir.build import as_expr, as_int
from tilelab.ir.nodes import (
    AllocBuffer,
    Load,
    SeqStmt,
    Stmt,
    Store,
    TileCall,
    Var,
    dtype_of,
    is_buffer,
)
from tilelab.ir.rewrite import walk
from tilelab.ir.spans import call_sites, place_of
from tilelab.ir.statements import children, each_statement
from tilelab.ir.tile_ops import OPS, TileOp, tile_op

__all__ = ["IRLine", "parse_function", "print_node", "snapshot"]

_MARK = re.compile(r"\s*# @(\d+)$")
_HEADER = re.compile(r"^(# from .*|)$")
_OURS = re.compile(r"\bT\.tile\.tl_(\w+)\(")
_READ = re.compile(r"\bT\.(" + "|".join(op.name for op in OPS) + r")\(")


@dataclass(frozen=True)
class IRLine:
    """One printed line: its text, the statement that it begins (None for scaffolding), and that statement's
    source.
    """

    text: str
    statement: Any = None
    source: tuple[int, int] | None = None
    file: str | None = None
    call_sites: tuple[int, ...] = ()
    buffers: tuple[str, ...] = ()


def print_node(node: Any) -> str:
    """A node as text, without the declarations that TVM prints before a lone statement."""
    return _OURS.sub(r"T.\1(", str(node.script() if isinstance(node, PrimFunc) else node))


def _touched(statement: Stmt) -> tuple[str, ...]:
    """Names of the buffers that the statement itself uses, not those of the statements inside."""
    if children(statement):
        return ()
    names: dict[str, None] = {}

    def note(v: Var) -> None:
        if is_buffer(v):
            names.setdefault(str(v.name))

    walk(statement, (Var, note))
    return tuple(names)


def snapshot(f: PrimFunc) -> list[IRLine]:
    """The function as lines, each with the statement that begins there and where that came from."""
    statements = [s for s in each_statement(f.body) if not isinstance(s, SeqStmt)]
    marks = {
        s: f"@{index}"
        for index, s in enumerate(statements)
        if not isinstance(s, TileCall) and not _is_first_value(s, statements[index - 1])
    }
    # TVM's printer passes over annotations of tile calls; they come one a line, in order.
    tile_calls = iter([s for s in statements if isinstance(s, TileCall)])
    lines: list[IRLine] = []
    waiting: Stmt | None = None
    for raw in f.script(obj_to_annotate=marks).splitlines():
        found = _MARK.search(raw)
        text = _OURS.sub(r"T.\1(", _MARK.sub("", raw))
        if found and not text.strip():
            waiting = statements[int(found[1])]
            continue
        if _HEADER.match(text) and not lines:
            continue
        statement = statements[int(found[1])] if found else waiting
        if _OURS.search(raw):
            statement = next(tile_calls)
        waiting = None
        lines.append(_line(text, statement))
    return lines


def _is_first_value(statement: Stmt, before: Stmt) -> bool:
    """Whether this is the first value of one register: it prints on one line with the allocation."""
    return (
        isinstance(statement, Store)
        and isinstance(before, AllocBuffer)
        and statement.buffer.same_as(before.buffer)
        and str(before.buffer.scope()).startswith("local")
        and [as_int(n) for n in before.buffer.shape] == [1]
    )


def _line(text: str, statement: Stmt | None) -> IRLine:
    if statement is None:
        return IRLine(text)
    span = statement.span
    where = place_of(span)
    source = (where.line, where.end_line or where.line) if where else None
    return IRLine(
        text, statement, source, where.file if where else None, call_sites(span), _touched(statement)
    )


def _as_regions(op: TileOp, args: tuple[Any, ...]) -> list[Any]:
    """The operands with `S[i]` read as the region of one element where the operation takes a region."""

    def is_value(position: int) -> bool:
        return position < len(op.operands) and op.operands[position].access == "value"

    return [
        BufferRegion(a.source, [ir.Range.from_min_extent(i, 1) for i in a.indices])
        if isinstance(a, Load) and not is_value(position)
        else a
        for position, a in enumerate(args)
    ]


def _make_parsable(op: TileOp) -> None:
    name = op.name

    def build(*args: Any, scope: Any = None, **config: Any) -> Any:
        return tvm_script.f_insert(
            TileCall(*_as_regions(op, args), op=tile_op(name), config=config, scope=scope)
        )

    scoped = tvm_script.ScopedOp(build)
    setattr(tvm_tile_namespace, f"tl_{name}", scoped)
    setattr(tvm_script, f"tl_{name}", scoped)


for _op in OPS:
    _make_parsable(_op)


class _Calls:
    """The namespace `T.tl`: calls that stand in expressions."""

    shuffle_xor = staticmethod(lambda value, mask: _shuffle("tl.shuffle_xor", value, mask))
    shuffle_down = staticmethod(lambda value, delta: _shuffle("tl.shuffle_down", value, delta))


def _shuffle(name: str, value: Any, distance: Any) -> Any:
    value = value[0] if is_buffer(value) else value
    return ir.Call(name, [value, as_expr(distance)], ret_ty=dtype_of(value))


register_script_namespace("tl", _Calls())


def parse_function(text: str) -> PrimFunc:
    """The function that `text` (as printed by `print_node`) describes; spans name the text's own lines."""
    return from_source(_READ.sub(r"T.tile.tl_\1(", text))


def last_line(node: ir.Node) -> str:
    """The last line of a node's text: the statement itself, after TVM's declarations."""
    return print_node(node).splitlines()[-1]
