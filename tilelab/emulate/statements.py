"""Statements as lines of Python: loops, branches under masks, allocations, roles and tile operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelab.emulate.expressions import Value, expression, widen
from tilelab.emulate.loops import PER_THREAD, for_loop, has_jump, is_jump, while_loop
from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.nodes import is_buffer
from tilelab.ir.spans import span_of
from tilelab.ir.statements import flatten
from tilelab.ir.tile_ops import op_of

if TYPE_CHECKING:
    from tilelab.emulate.compile import Compiler

__all__ = ["statement"]

# Operations that may suspend the role that executes them.
BLOCKING = ("barrier", "acquire", "wait", "mbarrier_wait")


def statement(c: Compiler, node: Any) -> None:
    """Emit a statement."""
    maker = _MAKERS.get(type(node))
    if maker is None:
        raise InternalError(f"the emulator knows no statement {type(node).__name__}")
    maker(c, node)


# ---- sequences, roles, jumps


def _sequence(c: Compiler, node: Any) -> None:
    _run(c, flatten(node))


def _run(c: Compiler, parts: list[Any]) -> None:
    position = 0
    while position < len(parts):
        part = parts[position]
        if b.group_of(part) is not None:
            end = position
            while end < len(parts) and b.group_of(parts[end]) is not None:
                end += 1
            _roles(c, parts[position:end])
            position = end
            continue
        statement(c, part)
        position += 1
        if c.loops and c.loops[-1].diverged and has_jump(part):
            _continue_with_the_rest(c, parts[position:])
            return


def _continue_with_the_rest(c: Compiler, rest: list[Any]) -> None:
    """What follows a jump that only some lanes made: the lanes that are still there."""
    if not rest:
        return
    loop = c.loops[-1]
    old = c.mask
    c.mask = c.fresh("m")
    c.emit(f"{c.mask} = and_mask({old}, and_mask({loop.live}, {loop.stay}))")
    c.emit(f"if some({c.mask}):")
    with c.indented():
        _run(c, rest)
    c.mask = old


def _jump(c: Compiler, node: Any) -> None:
    leaves = isinstance(node, n.Break) or (
        isinstance(node, n.Evaluate) and str(node.value.op.name).endswith("break_loop")
    )
    loop = c.loops[-1]
    if c.mask == loop.entry_mask:
        c.emit("break" if leaves else "continue")
        return
    loop.diverged = True
    name = loop.live if leaves else loop.stay
    c.emit(f"{name} = without({name}, {c.mask})")


def _roles(c: Compiler, groups: list[Any]) -> None:
    """Groups that stand side by side: each a generator of its own over a slice of the lanes."""
    made = []
    for node in groups:
        role = b.group_of(node)
        assert role is not None
        name, first, count = role
        made.append(f"({name!r}, {first}, {count}, {_role(c, node, name, first, count)})")
    c.mark(span_of(groups[0]))
    c.emit(f"yield from {c.context}.groups([{', '.join(made)}])")


def _role(c: Compiler, node: Any, name: str, first: int, count: int) -> str:
    function = c.fresh(f"role_{name}")
    saved = dict(c.variables), dict(c.buffers), c.mask, c.group, c.loops
    c.emit(f"def {function}({c.context}):")
    c.group, c.loops = name, []
    with c.indented():
        lanes = f"{first} - {c.context}.outer_first, {count}"
        for var, value in saved[0].items():
            if value.varying:
                c.define(var, Value(f"sliced({value.code}, {lanes})", True, value.width))
        for var, (buffer, per_thread) in saved[1].items():
            if per_thread:
                inner = c.fresh("b")
                c.emit(f"{inner} = {buffer}.slice({lanes})")
                c.buffers[var] = (inner, True)
        if c.mask != "None":
            c.mask = c.named(Value(f"sliced({c.mask}, {lanes})", True)).code
        statement(c, node.body)
        c.emit("return")
        c.emit("yield")
    c.variables, c.buffers, c.mask, c.group, c.loops = saved
    return function


# ---- branches


def _if(c: Compiler, node: Any) -> None:
    c.mark(node.span)
    condition = c.named(expression(c, node.condition))
    if not condition.varying:
        c.emit(f"if {condition.code}:")
        with c.indented():
            statement(c, node.then_case)
        if node.else_case is not None:
            c.emit("else:")
            with c.indented():
                statement(c, node.else_case)
        return
    old = c.mask
    for test, case in ((condition.code, node.then_case), (f"~{condition.code}", node.else_case)):
        if case is None:
            continue
        c.mask = old
        c.mask = c.narrowed(test)
        c.emit(f"if some({c.mask}):")
        with c.indented():
            statement(c, case)
    c.mask = old


# ---- leaves


def _bind(c: Compiler, node: Any) -> None:
    c.mark(node.span)
    value = expression(c, node.value)
    if c.in_iterations:
        name = c.fresh(f"i_{node.var.name}")
        c.emit(f"{name} = {value.code}")
        c.variables[node.var] = Value(name, value.varying, value.width)
    else:
        c.define(node.var, value)


def _alloc(c: Compiler, node: Any) -> None:
    from tilelab.emulate.compile import declare

    number = declare(c, node.buffer, dict(node.annotations), node.span)
    name = c.fresh(f"b_{node.buffer.name}")
    c.mark(node.span)
    shape = ", ".join(c.uniform(extent) for extent in node.buffer.shape)
    c.emit(f"{name} = {c.context}.allocate({number}, ({shape},))")
    scope = str(node.buffer.scope())
    c.buffers[node.buffer] = (name, scope in PER_THREAD and not c.one_thread)


def _store(c: Compiler, node: Any) -> None:
    c.mark(node.span)
    value = expression(c, node.value)
    indices = [expression(c, i) for i in node.indices]
    width = max(value.width, *(i.width for i in indices))
    codes = ", ".join(widen(i, width) for i in indices)
    name, _ = c.buffer(node.buffer)
    c.emit(f"{name}.store({c.context}, ({codes},), {widen(value, width)}, {c.mask})")


def _evaluate(c: Compiler, node: Any) -> None:
    if is_jump(node):
        _jump(c, node)
    elif isinstance(node.value, n.Call):
        name = str(node.value.op.name).rpartition(".")[2]
        if name not in ("assume", "type_annotation"):
            raise InternalError(f"the emulator knows no statement {name}")


def _attr(c: Compiler, node: Any) -> None:
    if str(node.attr_key) == "thread_extent":
        tag = str(node.node.thread_tag)
        per_thread = tag.startswith("threadIdx")
        c.define(node.node.var, Value(f"{c.context}.machine.index[{tag!r}]", per_thread))
        statement(c, node.body)
    elif b.group_of(node) is not None:
        _roles(c, [node])
    else:
        statement(c, node.body)


def _tile(c: Compiler, node: Any) -> None:
    op = op_of(node)
    operands = []
    for arg in node.args:
        if isinstance(arg, n.Region):
            operands.append(c.region(arg))
        elif is_buffer(arg):
            operands.append(c.region(b.whole(arg)))
        else:
            operands.append(expression(c, arg).code if isinstance(arg, n.Expr) else repr(b.plain(arg)))
    config = []
    for key, value in node.config.items():
        plain = b.plain(value)
        config.append(f"{str(key)!r}: {c.uniform(plain) if isinstance(plain, n.Expr) else repr(plain)}")
    if op.name in ("acquire", "commit", "wait", "release") and isinstance(node.args[0], n.Region):
        users = c.channel_groups.setdefault(str(node.args[0].source.name), {})
        users.setdefault(op.name, set()).add(c.group)
    c.mark(node.span)
    call = f"{c.context}.tile({op.name!r}, [{', '.join(operands)}], {{{', '.join(config)}}}, {c.mask})"
    c.emit(f"yield from {call}" if op.name in BLOCKING else call)


_MAKERS: dict[type, Callable[..., None]] = {
    n.SeqStmt: _sequence,
    n.For: for_loop,
    n.While: while_loop,
    n.IfThenElse: _if,
    n.Bind: _bind,
    n.AllocBuffer: _alloc,
    n.Store: _store,
    n.Evaluate: _evaluate,
    n.Break: _jump,
    n.Continue: _jump,
    n.AttrStmt: _attr,
    n.TileCall: _tile,
}
