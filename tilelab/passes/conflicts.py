"""Accesses of memory by the statements of one thread's program, and which of them conflict between threads.

Two accesses conflict when they may touch the same bytes, at least one of them writes, and perhaps different
threads make them. They do not when they use different slots of a ring, when each thread provably meets only
its own element, or when a channel orders who uses the tile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tilelab.hardware import Completes, bits, row
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, evaluate
from tilelab.ir.nodes import (
    AttrStmt,
    FloorMod,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Ramp,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
    dtype_of,
    same_structure,
)
from tilelab.ir.rewrite import collect, substitute
from tilelab.ir.scoped import allocations
from tilelab.ir.statements import children, each_statement
from tilelab.ir.tile_ops import op_of, reads, writes

__all__ = ["Access", "Conflicts", "State", "forget", "next_iteration"]


@dataclass(frozen=True)
class Access:
    """One access: buffer, indices, kind (read, write or atomic), the statement.

    `open_groups` counts, for asynchronous writes that no wait has covered, the groups closed since.
    """

    buffer: Var
    indices: tuple[Any, ...]
    kind: str
    node: Stmt
    open_groups: int | None = None
    original: tuple[Any, ...] | None = None

    @property
    def written_as(self) -> tuple[Any, ...]:
        """The indices as they stand in the statement, whatever iteration the access was made in."""
        return self.indices if self.original is None else self.original

    @property
    def is_open(self) -> bool:
        """Whether the access is an asynchronous write that no wait has covered yet."""
        return self.open_groups is not None


State = tuple[Access, ...]


def _of_issue(call: TileCall) -> list[Access]:
    instruction = row(str(b.plain(call.config)["row"]))
    is_async = instruction.completes is Completes.GROUP and instruction.family == "cp_async"
    found = []
    for number, arg in enumerate(call.args):
        if isinstance(arg, Region):
            is_write = number == 0
            where = tuple(r.min for r in arg.region)
            open_groups = 0 if is_async and is_write else None
            found.append(Access(arg.source, where, "write" if is_write else "read", call, open_groups))
    return found


def accesses_of(node: Stmt) -> list[Access]:
    """The accesses of a leaf statement, reads before writes."""
    found = [Access(x.source, tuple(x.indices), "read", node) for x in collect(node, Load)]
    if isinstance(node, TileCall):
        name = op_of(node).name
        if name == "issue":
            return found + _of_issue(node)
        kind = "atomic" if name == "atomic_add" else "write"
        found += [Access(r.source, tuple(x.min for x in r.region), "read", node) for r in reads(node)
                  if kind != "atomic"]  # fmt: skip
        found += [Access(r.source, tuple(x.min for x in r.region), kind, node) for r in writes(node)]
    if isinstance(node, Store):
        found.append(Access(node.buffer, tuple(node.indices), "write", node))
    return found


class Conflicts:
    """What decides whether two accesses of a function conflict.

    `group` is the role (name, first thread, count) inside which the question is asked, `assumed` the values
    that loop variables have while one iteration is looked at.
    """

    def __init__(self, f: PrimFunc) -> None:
        self.known: dict[Stmt, list[Access]] = {}
        self.extents = {
            v: n
            for s in each_statement(f.body)
            for v, n in [_variable_of(s)]
            if v is not None and n is not None
        }
        self.tried: dict[str, bool] = {}
        self._answers: dict[tuple[str, str, bool, str], bool] = {}
        self._texts: dict[int, tuple[Access, str]] = {}
        self.thread_vars = [
            n.node.var
            for n in each_statement(f.body)
            if isinstance(n, AttrStmt)
            and str(n.attr_key) == "thread_extent"
            and str(n.node.thread_tag).startswith("threadIdx")
        ]
        self.places = {
            a.buffer: int(b.plain(a.annotations).get("tl.offset", -1))
            for a in allocations(f)
            if str(a.buffer.scope()) == "shared.dyn"
        }
        self.written = {
            access.buffer
            for node in each_statement(f.body)
            if not children(node)
            for access in self.accesses(node)
            if access.kind != "read"
        }
        self.carried = {a.buffer for a in allocations(f) if "tl.channel" in b.plain(a.annotations)}
        self.assumed: dict[Var, Any] = {}
        self.group: tuple[str, int, int] | None = None

    def matters(self, access: Access) -> bool:
        """Whether other threads can notice the access."""
        scope = str(access.buffer.scope())
        is_memory = scope in ("shared.dyn", "global")
        return is_memory and access.buffer in self.written and access.buffer not in self.carried

    def conflict(self, old: Access, new: Access) -> bool:
        """Whether threads must meet between the two accesses."""
        if old.kind == new.kind and old.kind in ("read", "atomic"):
            return False
        if not old.buffer.same_as(new.buffer):
            return self._overlap(old.buffer, new.buffer)
        same = bool(old.node.same_as(new.node))
        key = (self._text(old), self._text(new), same, str(self.assumed) if self.assumed else "")
        if key not in self._answers:
            self._answers[key] = self._one_buffer(old, new)
        return self._answers[key]

    def _text(self, access: Access) -> str:
        """The access in words; equal words mean equal answers, and walks ask for a pair many times."""
        found = self._texts.get(id(access))
        if found is None:
            names = sorted({f"{v.name}{hash(v)}" for i in access.indices for v in collect(b.as_expr(i), Var)})
            buffer = f"{access.buffer.name}{hash(access.buffer)}"
            text = f"{buffer} {access.kind} {access.indices} {access.written_as} {names}"
            found = self._texts[id(access)] = (access, text)
        return found[1]

    def _one_buffer(self, old: Access, new: Access) -> bool:
        if old.node.same_as(new.node) and old.kind == new.kind == "write":
            # One statement gives each element to one thread, in every iteration of the loops around it.
            return False
        if self._different_slots(old, new):
            return False
        pairs = zip(old.written_as, new.written_as, strict=True)
        return not self._one_thread_each(tuple(y for x, y in pairs if same_structure(x, y)))

    def _overlap(self, first: Var, second: Var) -> bool:
        one, two = self.places.get(first, -1), self.places.get(second, -1)
        return one >= 0 and two >= 0 and self._share_bytes(first, second)

    def _share_bytes(self, first: Var, second: Var) -> bool:
        return self.places[first] < self._end(second) and self.places[second] < self._end(first)

    def _end(self, buffer: Var) -> int:
        return (
            self.places[buffer] + prod(b.as_int(n) or 1 for n in buffer.shape) * bits(dtype_of(buffer)) // 8
        )

    def _different_slots(self, old: Access, new: Access) -> bool:
        if len(old.indices) < 2 or not self.assumable(old.indices[0], new.indices[0]):
            return False
        one, two = self._assume(old.indices[0]), self._assume(new.indices[0])
        if b.as_int(one) is not None and b.as_int(two) is not None:
            return b.as_int(one) != b.as_int(two)
        if not (isinstance(one, FloorMod) and isinstance(two, FloorMod)):
            return False
        depth = b.as_int(one.b)
        distance = b.as_int(Bounds().simplify(one.a - two.a))
        if depth is None or depth != b.as_int(two.b) or distance is None:
            return False
        return distance % depth != 0

    def assumable(self, *indices: Any) -> bool:
        """Whether the indices are the same on all threads."""
        return not any(self.depends_on_thread(i) for i in indices)

    def _assume(self, index: Any) -> Any:
        return Bounds().simplify(substitute(b.as_expr(index), self.assumed)) if self.assumed else index

    def _one_thread_each(self, indices: tuple[Any, ...]) -> bool:
        """Whether the same values of these indices mean the same thread, whatever loops around are doing.

        All threads and all steps of the loops are tried, up to a million combinations.
        """
        used = {v for i in indices for v in collect(b.as_expr(i), Var)}
        if not any(v.same_as(t) for v in used for t in self.thread_vars):
            return False
        key = "|".join(map(str, indices)) + str(sorted(map(str, used))) + str(self.group)
        if key not in self.tried:
            self.tried[key] = self._try_all(indices, used)
        return self.tried[key]

    def _try_all(self, indices: tuple[Any, ...], used: set[Var]) -> bool:
        variables = list(used | set(self.thread_vars))
        extents = [self.extents.get(v) for v in variables]
        if any(n is None for n in extents) or prod(n or 0 for n in extents) > 1_000_000:
            return False
        grid = np.indices([n or 1 for n in extents]).reshape(len(extents), -1)
        known = dict(zip(variables, grid, strict=True))
        if self.group is not None and len(self.thread_vars) == 1:
            _, first, count = self.group
            inside = (known[self.thread_vars[0]] >= first) & (known[self.thread_vars[0]] < first + count)
            known = {v: values[inside] for v, values in known.items()}
            grid = grid[:, inside]
        thread = np.zeros(grid.shape[1], np.int64)
        for variable in self.thread_vars:
            thread = thread * (self.extents[variable] or 1) + known[variable]
        place = np.zeros(grid.shape[1], np.int64)
        for index in indices:
            values = evaluate(_first_lane(index), known)
            if values is None:
                return False
            place = place * (int(np.max(values)) + 1) + values
        order = np.argsort(place, kind="stable")
        place, thread = place[order], thread[order]
        same_place = place[1:] == place[:-1]
        return not bool((same_place & (thread[1:] != thread[:-1])).any())

    def depends_on_thread(self, value: Any) -> bool:
        """Whether threads may compute different values."""
        if isinstance(value, int):
            return False
        if any(v.same_as(t) for v in collect(value, Var) for t in self.thread_vars):
            return True
        return bool(collect(value, Load)) and any(
            str(x.source.scope()).startswith("local") for x in collect(value, Load)
        )

    def direct(self, node: Stmt) -> list[Access]:
        """Accesses of the statement itself, those of the statements inside left out."""
        if not children(node):
            return self.accesses(node)
        heads = {For: ("min", "extent"), IfThenElse: ("condition",), While: ("condition",)}.get(
            type(node), ()
        )
        return [Access(x.source, tuple(x.indices), "read", node) for h in heads
                for x in collect(getattr(node, h), Load)]  # fmt: skip

    def accesses(self, node: Stmt) -> list[Access]:
        """The accesses of a leaf, found once."""
        if node not in self.known:
            self.known[node] = accesses_of(node)
        return self.known[node]


def _variable_of(node: Stmt) -> tuple[Var | None, int | None]:
    """(variable, number of its values) of a loop from 0 or a launch binding; None where it is neither."""
    if isinstance(node, For) and b.as_int(node.min) == 0:
        return node.loop_var, b.as_int(node.extent)
    if isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
        return node.node.var, b.as_int(node.value)
    return None, None


def _first_lane(index: Any) -> Any:
    return index.base if isinstance(index, Ramp) else index


def next_iteration(state: State, node: For | While) -> State:
    """The state in terms of the next iteration's loop variable."""
    if not isinstance(node, For):
        return state
    earlier = {node.loop_var: node.loop_var - 1}
    return tuple(_moved(a, earlier) for a in state)


def _moved(access: Access, mapping: dict[Var, Any]) -> Access:
    simplify = Bounds().simplify
    moved = tuple(simplify(substitute(b.as_expr(i), mapping)) for i in access.indices)
    return replace(access, indices=moved, original=access.written_as)


def forget(state: State, loop_var: Var, last: Any) -> State:
    """The state after a loop: its variable stands for the last iteration."""
    return tuple(_moved(a, {loop_var: b.as_expr(last)}) for a in state)
