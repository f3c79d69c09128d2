"""Loops as lines of Python: plain ones, ones that lanes leave one by one, and nests whose iterations are
lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.emulate.expressions import Value, expression
from tilelab.emulate.nests import lane_nests, updates_shared_elements
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.statements import children, each_statement
from tilelab.ir.tile_ops import op_of

if TYPE_CHECKING:
    from tilelab.emulate.compile import Compiler

__all__ = ["PER_THREAD", "Loop", "for_loop", "has_jump", "is_jump", "while_loop"]

# Scopes of buffers of which every thread has its own.
PER_THREAD = ("local", "local.var")


@dataclass
class Loop:
    """A Python loop that is being compiled: the names of its lane masks when lanes may leave it alone."""

    live: str
    stay: str
    entry_mask: str
    diverged: bool = False


def is_jump(node: Any) -> bool:
    if isinstance(node, n.Break | n.Continue):
        return True
    return (
        isinstance(node, n.Evaluate)
        and isinstance(node.value, n.Call)
        and str(node.value.op.name).endswith(("break_loop", "continue_loop"))
    )


def has_jump(node: Any) -> bool:
    if isinstance(node, n.For | n.While):
        return False
    return is_jump(node) or any(has_jump(child) for child in children(node))


def _runs_serially(node: Any) -> bool:
    """Whether a parallel loop holds what only whole blocks can do, so that its iterations run one by one."""
    for inner in each_statement(node.body):
        if isinstance(inner, n.AllocBuffer | n.AttrStmt):
            return True
        if isinstance(inner, n.TileCall) and op_of(inner).name not in ("atomic_add", "print"):
            return True
        if isinstance(inner, n.Store) and str(inner.buffer.scope()) in PER_THREAD:
            return True
    return False


def for_loop(c: Compiler, node: Any) -> None:
    if not c.in_iterations:
        if c.one_thread and (nests := lane_nests(node)) is not None:
            for nest in nests:
                _lanes(c, nest.loops, nest.body, checked=False)
            return
        in_turn = c.one_thread and updates_shared_elements(node)
        if node.kind == b.PARALLEL and c.wide_loops and not in_turn and not _runs_serially(node):
            _parallel(c, node)
            return
    start, extent = expression(c, node.min), expression(c, node.extent)
    step = expression(c, node.step) if node.step is not None else Value("1", False)
    entry = c.mask
    if extent.varying:
        extent = c.named(extent)
        count = f"longest({extent.code}, {c.mask})"
    else:
        count = extent.code
    turn = c.fresh("turn")
    loop = _open_loop(c, node)
    c.emit(f"for {turn} in range({count}):")
    with c.indented():
        c.emit(f"{c.context}.tick()")
        if extent.varying:
            c.mask = c.narrowed(f"({turn} < {extent.code})")
        _begin_turn(c, loop)
        index = turn if start.code == "0" and step.code == "1" else f"({start.code} + {turn} * {step.code})"
        name = c.define(node.loop_var, Value(index, start.varying))
        c.emit(f"{c.context}.loops[{str(node.loop_var.name)!r}] = {name}")
        c.statement(node.body)
        _end_turn(c, loop)
    _close_loop(c, entry)
    c.emit(f"{c.context}.loops.pop({str(node.loop_var.name)!r}, None)")


def while_loop(c: Compiler, node: Any) -> None:
    entry = c.mask
    loop = _open_loop(c, node)
    c.emit("while True:")
    with c.indented():
        c.mark(node.span)
        c.emit(f"{c.context}.tick()")
        _begin_turn(c, loop)
        condition = expression(c, node.condition)
        if condition.varying:
            # Lanes for which the condition fails once have left for good.
            held = c.named(condition)
            c.mask = c.narrowed(held.code)
            c.emit(f"if not some({c.mask}): break")
            c.emit(f"{loop.live} = and_mask({loop.live}, {held.code})")
            loop.entry_mask = c.mask
        else:
            c.emit(f"if not ({condition.code}): break")
        c.statement(node.body)
        _end_turn(c, loop)
    _close_loop(c, entry)


def _open_loop(c: Compiler, node: Any) -> Any:
    needs_masks = isinstance(node, n.While) or has_jump(node.body)
    loop = Loop(c.fresh("live"), c.fresh("stay"), c.mask)
    c.loops.append(loop)
    if not needs_masks:
        return None
    c.emit(f"{loop.live} = None")
    return loop


def _begin_turn(c: Compiler, loop: Any) -> None:
    if loop is None:
        return
    c.emit(f"{loop.stay} = None")
    old = c.mask
    c.mask = c.fresh("m")
    c.emit(f"{c.mask} = and_mask({old}, {loop.live})")
    loop.entry_mask = c.mask


def _end_turn(c: Compiler, loop: Any) -> None:
    if loop is not None:
        c.emit(f"if not some(and_mask({loop.entry_mask}, {loop.live})): break")


def _close_loop(c: Compiler, entry: str) -> None:
    c.loops.pop()
    c.mask = entry


def _parallel(c: Compiler, node: Any) -> None:
    """A perfect nest of parallel loops: every iteration a lane."""
    nest = [node]
    while isinstance(nest[-1].body, n.For) and nest[-1].body.kind == b.PARALLEL:
        nest.append(nest[-1].body)
    _lanes(c, nest, nest[-1].body, checked=True)


def _lanes(c: Compiler, nest: Sequence[Any], body: Any, checked: bool) -> None:
    """A body with every iteration of a nest as a lane; `checked` finds iterations that touch one another."""
    c.mark(nest[0].span)
    inner = c.fresh("I")
    extents = ", ".join(c.uniform(loop.extent) for loop in nest)
    starts = [c.uniform(loop.min) for loop in nest]
    c.emit(f"{inner} = {c.context}.iterations(({extents},), {c.mask}, {checked})")
    saved = c.context, c.mask, c.in_iterations, dict(c.variables)
    c.emit(f"if {inner}.count:")
    with c.indented():
        for axis, (loop, start) in enumerate(zip(nest, starts, strict=True)):
            name = c.fresh(f"i_{loop.loop_var.name}")
            c.emit(f"{name} = {inner}.index({axis}) + {start}")
            c.variables[loop.loop_var] = Value(name, True)
        c.context, c.mask, c.in_iterations = inner, "None", True
        c.statement(body)
    c.context, c.mask, c.in_iterations, c.variables = saved
