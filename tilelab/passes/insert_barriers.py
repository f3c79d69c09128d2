"""Put barriers where threads would otherwise see one another's memory too early or too late.

Statements are walked in order with the accesses made since the last barrier. Before an access that conflicts with one
of them (same bytes, at least one write, perhaps different threads) a barrier is placed, in front of the whole loop when
the loop itself needs none. Loop bodies are walked again with what the last iteration left behind. Two accesses do not
conflict when they use different slots of a ring, or when each thread provably meets only its own element. An
asynchronous write counts from the wait that covers it, and the barrier stands right behind that wait. Each barrier
records the pair of accesses that asked for it. Inside a role it is a named barrier of the role's threads; roles
themselves meet only at channels, so tiles that a channel carries ask for none.

Before (cuda:sm_80, threads=32):

    S = T.alloc_buffer((32,), scope="shared.dyn", annotations={"tl.layout": "32:1", "tl.offset": 0})
    S[tx] = A[tx]
    B[tx] = S[31 - tx]

After:

    S = T.alloc_buffer((32,), scope="shared.dyn", annotations={"tl.layout": "32:1", "tl.offset": 0})
    S[tx] = A[tx]
    T.barrier(why="S: written, then read")
    B[tx] = S[31 - tx]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby, permutations
from math import prod
from typing import Any

import numpy as np

from tilelab.errors import TileError
from tilelab.hardware import Completes, bits, row
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, evaluate
from tilelab.ir.nodes import (
    AllocBuffer,
    AttrStmt,
    FloorMod,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Ramp,
    Region,
    SeqStmt,
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
from tilelab.ir.spans import at, place_of
from tilelab.ir.statements import children, each_statement, flatten, seq, with_children
from tilelab.ir.tile_ops import op_of, reads, writes
from tilelab.passes.base import Pass, because, decide

__all__ = ["insert_barriers"]


@dataclass(frozen=True)
class _Access:
    """One access: buffer, indices, kind (read, write or atomic), and for asynchronous writes the groups closed since."""

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


State = tuple[_Access, ...]


def _of_issue(call: TileCall) -> list[_Access]:
    instruction = row(str(b.plain(call.config)["row"]))
    is_async = instruction.completes is Completes.GROUP and instruction.family == "cp_async"
    found = []
    for number, arg in enumerate(call.args):
        if isinstance(arg, Region):
            is_write = number == 0
            where = tuple(r.min for r in arg.region)
            open_groups = 0 if is_async and is_write else None
            found.append(_Access(arg.source, where, "write" if is_write else "read", call, open_groups))
    return found


def accesses_of(node: Stmt) -> list[_Access]:
    """The accesses of a leaf statement, reads before writes."""
    found = [_Access(x.source, tuple(x.indices), "read", node) for x in collect(node, Load)]
    if isinstance(node, TileCall):
        name = op_of(node).name
        if name == "issue":
            return found + _of_issue(node)
        kind = "atomic" if name == "atomic_add" else "write"
        found += [_Access(r.source, tuple(x.min for x in r.region), "read", node) for r in reads(node)
                  if kind != "atomic"]  # fmt: skip
        found += [_Access(r.source, tuple(x.min for x in r.region), kind, node) for r in writes(node)]
    if isinstance(node, Store):
        found.append(_Access(node.buffer, tuple(node.indices), "write", node))
    return found


class _Inserter:
    """The walk over one function."""

    def __init__(self, f: PrimFunc) -> None:
        self.known: dict[Stmt, list[_Access]] = {}
        self.extents = {
            v: n for s in each_statement(f.body) for v, n in [_variable_of(s)] if v is not None and n is not None
        }
        self.tried: dict[str, bool] = {}
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
        self.waited: set[Stmt] = set()
        self.group: tuple[str, int, int] | None = None
        self.groups: list[tuple[str, int, int]] = []
        self.count = 0

    # ---- do two accesses conflict?

    def matters(self, access: _Access) -> bool:
        scope = str(access.buffer.scope())
        is_memory = scope in ("shared.dyn", "global")
        return is_memory and access.buffer in self.written and access.buffer not in self.carried

    def conflict(self, old: _Access, new: _Access) -> bool:
        if old.kind == new.kind and old.kind in ("read", "atomic"):
            return False
        if not old.buffer.same_as(new.buffer):
            return self._overlap(old.buffer, new.buffer)
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
        return self.places[buffer] + prod(b.as_int(n) or 1 for n in buffer.shape) * bits(dtype_of(buffer)) // 8

    def _different_slots(self, old: _Access, new: _Access) -> bool:
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
        if isinstance(value, int):
            return False
        if any(v.same_as(t) for v in collect(value, Var) for t in self.thread_vars):
            return True
        return bool(collect(value, Load)) and any(
            str(x.source.scope()).startswith("local") for x in collect(value, Load)
        )

    # ---- the walk

    def walk(self, node: Stmt, state: State) -> tuple[Stmt, State]:
        """The statement with barriers, and the accesses since the last one after it."""
        match node:
            case SeqStmt():
                parts: list[Stmt] = []
                for is_role, run in groupby(flatten(node), key=lambda s: b.group_of(s) is not None):
                    if is_role:
                        new, state = self._roles(list(run), state)
                        parts.append(new)
                        continue
                    for part in run:
                        new, state = self.walk(part, state)
                        parts.append(new)
                return seq(*parts, span=node.span), state
            case AttrStmt() if b.group_of(node) is not None:
                return self._roles([node], state)
            case AttrStmt():
                body, state = self.walk(node.body, state)
                return with_children(node, (body,)), state
            case IfThenElse() if not self.depends_on_thread(node.condition):
                return self._branch(node, state)
            case For() | While() if self._needs_inside(node):
                return self._loop(node, state)
            case IfThenElse() if self._needs_inside(node):
                where = place_of(node.span)
                raise TileError(
                    "TL304",
                    "threads must wait for one another inside a branch that not all of them take",
                    places=(where,) if where else (),
                    help="write the shared tile and read it in separate branches, or outside the branch",
                )
        return self._unit(node, state)

    def _roles(self, roles: list[Stmt], state: State) -> tuple[Stmt, State]:
        """Roles side by side: a barrier of the block before them where one is due, none between them."""
        inside = [[a for s in each_statement(r) for a in self._direct(s) if self.matters(a)] for r in roles]
        for mine, others in permutations(inside, 2):
            clash = next(((o, n) for n in others for o in mine if o.kind == "write" and self._meets(o, n)), None)
            if clash is not None:
                self._refuse_roles(*clash)
        parts: list[Stmt] = []
        pair = next(((o, n) for mine in inside for n in mine for o in state if self.conflict(o, n)), None)
        if pair is not None:
            parts.append(self._barrier(*pair))
            state = tuple(a for a in state if a.is_open)
        after = list(state)
        for role in roles:
            self.group = b.group_of(role)
            if self.group not in self.groups:
                self.groups.append(self.group)
            body, left = self.walk(role.body, ())
            parts.append(with_children(role, (body,)))
            after += left
            self.group = None
        return seq(*parts), tuple(after)

    def _meets(self, one: _Access, two: _Access) -> bool:
        """Whether accesses of two roles may touch the same bytes of shared memory, as far as their first indices say."""
        if str(one.buffer.scope()) != "shared.dyn" or not one.buffer.same_as(two.buffer):
            return False
        known = [(b.as_int(x), b.as_int(y)) for x, y in zip(one.indices, two.indices, strict=True)]
        return not any(x is not None and y is not None and x != y for x, y in known)

    def _refuse_roles(self, one: _Access, two: _Access) -> None:
        places = [p for p in (place_of(two.node.span), place_of(one.node.span, "written here")) if p]
        raise TileError(
            "TL304",
            f"two roles use {one.buffer.name}, which one of them writes, and nothing orders the two",
            places=tuple(places),
            help="hand the tile over through a channel: acquire and commit in one role, wait and release in the other",
        )

    def _new_barrier(self, why: str) -> Stmt:
        """A barrier of the block, or of the role's threads under a number of its own."""
        self.count += 1
        with at(None):
            if self.group is None:
                return b.tile("barrier", why=why)
            number = 1 + self.groups.index(self.group)  # 0 is the block's
            return b.tile("barrier", id=number, threads=self.group[2], why=why)

    def _unit(self, node: Stmt, state: State) -> tuple[Stmt, State]:
        """A statement that needs no barrier inside: one before it, if anything in it conflicts."""
        if isinstance(node, TileCall):
            name, config = op_of(node).name, b.plain(node.config)
            if name == "barrier":
                is_whole = "threads" not in config or (self.group is not None and config["threads"] >= self.group[2])
                return node, tuple(a for a in state if a.is_open) if is_whole else state
            if name in ("commit_group", "wait_group") and config.get("kind", "cp.async") != "cp.async":
                return node, state
            if name == "commit_group":
                return node, tuple(
                    replace(a, open_groups=a.open_groups + 1) if a.open_groups is not None else a for a in state
                )
            if name == "wait_group":
                return self._wait(node, state, int(config.get("pending", 0)))
        fresh = [a for s in each_statement(node) for a in self._direct(s) if self.matters(a)]
        pair = next(((o, n) for n in fresh for o in state if self.conflict(o, n)), None)
        if pair is None:
            return node, (*state, *fresh)
        return seq(self._barrier(*pair), node), (*(a for a in state if a.is_open), *fresh)

    def _wait(self, node: TileCall, state: State, pending: int) -> tuple[Stmt, State]:
        """A wait makes the own copies visible to the thread; the barrier behind it those of all threads."""
        landed = [a for a in state if a.open_groups is not None and a.open_groups > pending]
        if not landed or node in self.waited:
            return node, tuple(replace(a, open_groups=None) if any(a is x for x in landed) else a for a in state)
        self.waited.add(node)
        names = ", ".join(dict.fromkeys(str(a.buffer.name) for a in landed))
        why = f"{names}: the copies of all threads have landed"
        decide(f"a barrier after the wait: {why}", node.span)
        return seq(node, self._new_barrier(why)), tuple(a for a in state if a.is_open and not any(a is x for x in landed))

    def _direct(self, node: Stmt) -> list[_Access]:
        """Accesses of the statement itself, those of the statements inside left out."""
        if not children(node):
            return self.accesses(node)
        heads = {For: ("min", "extent"), IfThenElse: ("condition",), While: ("condition",)}.get(type(node), ())
        return [_Access(x.source, tuple(x.indices), "read", node) for h in heads
                for x in collect(getattr(node, h), Load)]  # fmt: skip

    def _barrier(self, old: _Access, new: _Access) -> Stmt:
        words = {"read": "read", "write": "written", "atomic": "added to"}
        names = str(old.buffer.name) if old.buffer.same_as(new.buffer) else f"{old.buffer.name} and {new.buffer.name}"
        why = f"{names}: {words[old.kind]}, then {words[new.kind]}"
        first, second = place_of(old.node.span), place_of(new.node.span)
        lines = f" (lines {first.line} and {second.line})" if first and second else ""
        decide(f"a barrier for {why}{lines}", new.node.span)
        return self._new_barrier(why)

    def _branch(self, node: IfThenElse, state: State) -> tuple[Stmt, State]:
        if not self._needs_inside(node):
            return self._unit(node, state)
        sides, after = [], []
        for child in children(node):
            new, left = self.walk(child, state)
            sides.append(new)
            after += [a for a in left if not any(a is x for x in after)]
        if len(sides) == 1:
            after += [a for a in state if not any(a is x for x in after)]
        return with_children(node, tuple(sides)), tuple(after)

    def _needs_inside(self, node: Stmt) -> bool:
        """Whether some barrier must stand inside the statement, whatever came before it."""
        if any(_orders_threads(s) for s in each_statement(node)):
            return True
        return any(self._needs_inside(c) for c in children(node)) or self._meets_itself(node)

    def _meets_itself(self, node: Stmt) -> bool:
        """Whether accesses inside the statement conflict with one another, also with those of the iteration before."""
        leaves = [s for s in each_statement(node) if not children(s)]
        state: State = ()
        for _ in range(2 if isinstance(node, For | While) else 1):
            for leaf in leaves:
                fresh = tuple(a for a in self.accesses(leaf) if self.matters(a))
                if any(self.conflict(old, new) for new in fresh for old in state):
                    return True
                state += fresh
            state = _next_iteration(state, node)
        return False

    def accesses(self, node: Stmt) -> list[_Access]:
        """The accesses of a leaf, found once."""
        if node not in self.known:
            self.known[node] = accesses_of(node)
        return self.known[node]

    def _loop(self, node: For | While, state: State) -> tuple[Stmt, State]:
        extent = b.as_int(node.extent) if isinstance(node, For) else None
        if isinstance(node, For) and node.kind == b.UNROLLED and extent is not None and extent <= 8:
            body, after = node.body, state
            for index in range(extent):
                body, after = self._once(node, body, after, b.const(index))
                after = _forget(after, node.loop_var, index)
            return with_children(node, (body,)), after
        body, after = self._once(node, node.body, state, node.min if isinstance(node, For) else None)
        for _ in range(4):
            before = self.count
            body, after = self._once(node, body, _next_iteration(after, node), None)
            if self.count == before:
                break
        last = node.min + node.extent - 1 if isinstance(node, For) else None
        if isinstance(node, For):
            after = _forget(after, node.loop_var, last)
        return with_children(node, (body,)), (*after, *(a for a in state if not any(a is x for x in after)))

    def _once(self, node: For | While, body: Stmt, state: State, index: Any) -> tuple[Stmt, State]:
        old = self.assumed
        if index is not None and isinstance(node, For):
            self.assumed = {**old, node.loop_var: index}
        try:
            return self.walk(body, state)
        finally:
            self.assumed = old


def _orders_threads(node: Stmt) -> bool:
    """Whether the statement is a barrier of all threads, or a step of copies that end in one."""
    if not isinstance(node, TileCall):
        return False
    config = b.plain(node.config)
    if op_of(node).name == "barrier":
        return "threads" not in config
    return op_of(node).name in ("wait_group", "commit_group") and config.get("kind", "cp.async") == "cp.async"


def _variable_of(node: Stmt) -> tuple[Var | None, int | None]:
    """(variable, number of its values) of a loop from 0 or a launch binding; None where it is neither or unknown."""
    if isinstance(node, For) and b.as_int(node.min) == 0:
        return node.loop_var, b.as_int(node.extent)
    if isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
        return node.node.var, b.as_int(node.value)
    return None, None


def _first_lane(index: Any) -> Any:
    return index.base if isinstance(index, Ramp) else index


def _next_iteration(state: State, node: For | While) -> State:
    """The state in terms of the next iteration's loop variable."""
    if not isinstance(node, For):
        return state
    earlier = {node.loop_var: node.loop_var - 1}
    return tuple(_moved(a, earlier) for a in state)


def _moved(access: _Access, mapping: dict[Var, Any]) -> _Access:
    simplify = Bounds().simplify
    moved = tuple(simplify(substitute(b.as_expr(i), mapping)) for i in access.indices)
    return replace(access, indices=moved, original=access.written_as)


def _forget(state: State, loop_var: Var, last: Any) -> State:
    """The state after a loop: its variable stands for the last iteration."""
    return tuple(_moved(a, {loop_var: b.as_expr(last)}) for a in state)


def run(f: PrimFunc) -> PrimFunc:
    inserter = _Inserter(f)
    body, _ = inserter.walk(f.body, ())
    if not inserter.count:
        because("no two threads meet in memory")
        return f
    return f.with_body(body)


insert_barriers = Pass("insert_barriers", run, needs="threaded", gives="synced")
