"""Put barriers where threads would otherwise see one another's memory too early or too late.

Statements are walked in order with the accesses made since the last barrier. Before an access that conflicts
with one of them (see `conflicts.py`) a barrier is placed, in front of the whole loop when the loop itself
needs none. Loop bodies are walked again with what the last iteration left behind. An asynchronous write
counts from the wait that covers it, and the barrier stands right behind that wait. Each barrier records the
pair of accesses that asked for it. Inside a role it is a named barrier of the role's threads; roles
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

from dataclasses import replace
from itertools import groupby, permutations
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import (
    AttrStmt,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    TileCall,
    While,
)
from tilelab.ir.spans import at, place_of
from tilelab.ir.statements import children, each_statement, flatten, seq, with_children
from tilelab.ir.tile_ops import op_of
from tilelab.passes.base import Pass, because, decide
from tilelab.passes.conflicts import Access, Conflicts, State, forget, next_iteration

__all__ = ["insert_barriers"]


class _Inserter(Conflicts):
    """The walk over one function."""

    def __init__(self, f: PrimFunc) -> None:
        super().__init__(f)
        self.waited: set[Stmt] = set()
        self.groups: list[tuple[str, int, int]] = []
        self.count = 0

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
        inside = [[a for s in each_statement(r) for a in self.direct(s) if self.matters(a)] for r in roles]
        for mine, others in permutations(inside, 2):
            clash = next(
                ((o, n) for n in others for o in mine if o.kind == "write" and self._meets(o, n)), None
            )
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
            if self.group is not None and self.group not in self.groups:
                self.groups.append(self.group)
            body, left = self.walk(role.body, ())
            parts.append(with_children(role, (body,)))
            after += left
            self.group = None
        return seq(*parts), tuple(after)

    def _meets(self, one: Access, two: Access) -> bool:
        """Whether accesses of two roles may touch the same element of shared memory."""
        if str(one.buffer.scope()) != "shared.dyn" or not one.buffer.same_as(two.buffer):
            return False
        known = [(b.as_int(x), b.as_int(y)) for x, y in zip(one.indices, two.indices, strict=True)]
        return not any(x is not None and y is not None and x != y for x, y in known)

    def _refuse_roles(self, one: Access, two: Access) -> None:
        places = [p for p in (place_of(two.node.span), place_of(one.node.span, "written here")) if p]
        raise TileError(
            "TL304",
            f"two roles use {one.buffer.name}, which one of them writes, and nothing orders the two",
            places=tuple(places),
            help="hand it over through a channel: acquire and commit in one, wait and release in the other",
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
                is_whole = "threads" not in config or (
                    self.group is not None and config["threads"] >= self.group[2]
                )
                return node, tuple(a for a in state if a.is_open) if is_whole else state
            if name in ("commit_group", "wait_group") and config.get("kind", "cp.async") != "cp.async":
                return node, state
            if name == "commit_group":
                return node, tuple(
                    replace(a, open_groups=a.open_groups + 1) if a.open_groups is not None else a
                    for a in state
                )
            if name == "wait_group":
                return self._wait(node, state, int(config.get("pending", 0)))
        fresh = [a for s in each_statement(node) for a in self.direct(s) if self.matters(a)]
        pair = next(((o, n) for n in fresh for o in state if self.conflict(o, n)), None)
        if pair is None:
            return node, (*state, *fresh)
        return seq(self._barrier(*pair), node), (*(a for a in state if a.is_open), *fresh)

    def _wait(self, node: TileCall, state: State, pending: int) -> tuple[Stmt, State]:
        """A wait makes the own copies visible to the thread; the barrier behind it those of all threads."""
        landed = [a for a in state if a.open_groups is not None and a.open_groups > pending]
        if not landed or node in self.waited:
            return node, tuple(
                replace(a, open_groups=None) if any(a is x for x in landed) else a for a in state
            )
        self.waited.add(node)
        names = ", ".join(dict.fromkeys(str(a.buffer.name) for a in landed))
        why = f"{names}: the copies of all threads have landed"
        decide(f"a barrier after the wait: {why}", node.span)
        return seq(node, self._new_barrier(why)), tuple(
            a for a in state if a.is_open and not any(a is x for x in landed)
        )

    def _barrier(self, old: Access, new: Access) -> Stmt:
        words = {"read": "read", "write": "written", "atomic": "added to"}
        names = (
            str(old.buffer.name)
            if old.buffer.same_as(new.buffer)
            else f"{old.buffer.name} and {new.buffer.name}"
        )
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
        """Whether accesses inside the statement conflict, also with those of the iteration before."""
        leaves = [s for s in each_statement(node) if not children(s)]
        state: State = ()
        for _ in range(2 if isinstance(node, For | While) else 1):
            for leaf in leaves:
                fresh = tuple(a for a in self.accesses(leaf) if self.matters(a))
                if any(self.conflict(old, new) for new in fresh for old in state):
                    return True
                state += fresh
            state = next_iteration(state, node)
        return False

    def _loop(self, node: For | While, state: State) -> tuple[Stmt, State]:
        extent = b.as_int(node.extent) if isinstance(node, For) else None
        if isinstance(node, For) and node.kind == b.UNROLLED and extent is not None and extent <= 8:
            body, after = node.body, state
            for index in range(extent):
                body, after = self._once(node, body, after, b.const(index))
                after = forget(after, node.loop_var, index)
            return with_children(node, (body,)), after
        body, after = self._once(node, node.body, state, node.min if isinstance(node, For) else None)
        for _ in range(4):
            before = self.count
            body, after = self._once(node, body, next_iteration(after, node), None)
            if self.count == before:
                break
        last = node.min + node.extent - 1 if isinstance(node, For) else None
        if isinstance(node, For):
            after = forget(after, node.loop_var, last)
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


def run(f: PrimFunc) -> PrimFunc:
    inserter = _Inserter(f)
    body, _ = inserter.walk(f.body, ())
    if not inserter.count:
        because("no two threads meet in memory")
        return f
    return f.with_body(body)


insert_barriers = Pass("insert_barriers", run, needs="threaded", gives="synced")
