"""Make a block of a CPU kernel one thread: what differs between threads runs in a loop over them.

Each statement gets a loop of its own, so all threads have finished it before the next one begins; a barrier
then has nothing left to do. Values that differ between threads are kept in arrays with a row for each. A
statement of the whole block cannot stand where only some threads arrive.

Before:

    with T.launch_thread("threadIdx.x", 32) as tx:
        S = T.alloc_buffer((32,), scope="shared.dyn")
        S[tx] = A[tx]
        B[tx] = S[31 - tx]

After:

    S = T.alloc_buffer((32,), scope="shared.dyn")
    for tx in range(32):
        S[tx] = A[tx]
    for tx in range(32):
        B[tx] = S[31 - tx]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Break,
    Call,
    Continue,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Region,
    SeqStmt,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
    dtype_of,
)
from tilelab.ir.rewrite import collect, rewrite, substitute
from tilelab.ir.scoped import block_body, with_block_body
from tilelab.ir.spans import at, place_of
from tilelab.ir.statements import children, each_statement, map_statement
from tilelab.ir.tile_ops import op_of, writes
from tilelab.passes.base import Pass, because, decide

_PRIVATE = ("local", "local.var")


class _Threads:
    """The thread indices of a block, and the buffers and names whose values differ from thread to thread."""

    def __init__(self, indices: list[tuple[Var, Any]], body: Stmt) -> None:
        self.indices = indices
        self.varying: set[Var] = {v for v, _ in indices}
        self.private: dict[Var, Var] = {}
        self._find(body)

    def differ(self, *values: Any) -> bool:
        """Whether any of the expressions or statements mentions something that differs between threads."""
        return any(v in self.varying for value in values if value is not None for v in collect(value, Var))

    def _find(self, body: Stmt) -> None:
        scopes = {s.buffer: str(s.buffer.scope()) for s in each_statement(body) if isinstance(s, AllocBuffer)}
        count = -1
        while count != len(self.varying):
            count = len(self.varying)
            self._mark(body, False, scopes)
        for old in [v for v in self.varying if scopes.get(v) in _PRIVATE]:
            shape = [*(n for _, n in self.indices), *(old.shape if scopes[old] == "local" else [1])]
            self.private[old] = b.buffer(str(old.name), shape, dtype_of(old), "local")

    def _mark(self, node: Stmt, masked: bool, scopes: dict[Var, str]) -> None:
        match node:
            case Store() if scopes.get(node.buffer) in _PRIVATE and (
                masked or self.differ(node.value, *node.indices)
            ):
                self.varying.add(node.buffer)
            case Bind() if self.differ(node.value):
                self.varying.add(node.var)
            case TileCall() if masked or self.differ(*node.args):
                self.varying |= {r.source for r in writes(node) if scopes.get(r.source) in _PRIVATE}
            case IfThenElse() | While():
                masked = masked or self.differ(node.condition)
            case For():
                masked = masked or self.differ(node.min, node.extent)
        for child in children(node):
            self._mark(child, masked, scopes)

    def loop(self, body: Stmt) -> Stmt:
        """`body` for each thread, its accesses to private arrays led to the thread's own part."""
        fresh = {v: b.var(str(v.name)) for v, _ in self.indices}
        places = [fresh[v] for v, _ in self.indices]

        def own_part(load: Load) -> Load | None:
            new = self.private.get(load.source)
            return b.load(new, [*places, *load.indices]) if new is not None else None

        def own_target(store: Store) -> Store | None:
            new = self.private.get(store.buffer)
            return b.store(new, store.value, [*places, *store.indices]) if new is not None else None

        def own_region(region: Region) -> Region | None:
            new = self.private.get(region.source)
            if new is None:
                return None
            return b.region(new, [*((p, 1) for p in places), *((r.min, r.extent) for r in region.region)])

        body = rewrite(body, (Load, own_part), (Store, own_target), (Region, own_region))
        body = substitute(body, fresh)
        for v, extent in reversed(self.indices):
            body = b.for_(fresh[v], extent, body)
        return body


def _refused(node: Stmt, what: str, reason: str) -> TileError:
    where = place_of(node.span)
    return TileError(
        "TL402", f"{what}, which a CPU cannot run: {reason}", places=(where,) if where else (),
        help="use T.Parallel and whole-tile operations, which need no thread index",
    )  # fmt: skip


class _Lowering:
    """One walk over the body; `masks` are the conditions that let only some threads through."""

    def __init__(self, threads: _Threads) -> None:
        self.threads = threads

    def go(self, node: Stmt, masks: tuple[Expr, ...] = ()) -> Stmt:
        with at(node.span):
            return self._go(node, masks)

    def _go(self, node: Stmt, masks: tuple[Expr, ...]) -> Stmt:
        threads = self.threads
        match node:
            case AllocBuffer():
                new = threads.private.get(node.buffer)
                return node if new is None else b.alloc(new)
            case SeqStmt():
                return b.seq(*(self.go(part, masks) for part in node.seq))
            case TileCall() if op_of(node).name == "barrier":
                return b.seq()
            case TileCall():
                return self._tile(node, masks)
            case For() if node.kind == b.PARALLEL and not threads.differ(node) and not masks:
                return node
            case IfThenElse() if threads.differ(node.condition):
                return self._branch(node, masks)
            case For() | While() if self._has_own_trips(node):
                return self._whole(node, masks)
            case For() | While() | IfThenElse() | AttrStmt() if masks or threads.differ(node):
                return map_statement(node, lambda child: self.go(child, masks))
        return self._leaf(node, masks) if masks or threads.differ(node) else node

    def _has_own_trips(self, node: For | While) -> bool:
        if isinstance(node, While):
            return self.threads.differ(node.condition)
        return node.kind == b.PARALLEL or self.threads.differ(node.min, node.extent)

    def _leaf(self, node: Stmt, masks: tuple[Expr, ...]) -> Stmt:
        if any("shuffle" in str(getattr(c.op, "name", "")) for c in collect(node, Call)):
            raise _refused(node, "a shuffle between lanes", "its block is a single thread")
        condition = b.all_of(masks)
        return self.threads.loop(node if condition is None else b.if_(condition, node))

    def _tile(self, node: TileCall, masks: tuple[Expr, ...]) -> Stmt:
        name = op_of(node).name
        private = any(v in self.threads.private for v in collect(node, Var))
        if name in ("print", "atomic_add") or private:
            return self._leaf(node, masks) if masks or self.threads.differ(node) else node
        if masks or self.threads.differ(node):
            raise _refused(
                node, f"{name} where only some threads arrive", "all threads of a block must take part"
            )
        return node

    def _branch(self, node: IfThenElse, masks: tuple[Expr, ...]) -> Stmt:
        """Each statement of the sides under the condition, which is kept when the sides may change it."""
        before, condition = [], node.condition
        if collect(condition, Load):
            mask = b.buffer("mask", [*(n for _, n in self.threads.indices), 1], "bool", "local")
            before = [b.alloc(mask), self.threads.loop(b.store(mask, condition, self._own(0)))]
            condition = b.load(mask, self._own(0))
        sides = [self.go(node.then_case, (*masks, condition))]
        if node.else_case is not None:
            sides.append(self.go(node.else_case, (*masks, b.negation(condition))))
        return b.seq(*before, *sides)

    def _own(self, last: Any) -> list[Any]:
        return [*(v for v, _ in self.threads.indices), last]

    def _whole(self, node: For | While, masks: tuple[Expr, ...]) -> Stmt:
        """A loop whose trips differ between threads runs to its end for each: it must not exchange values."""
        inner = list(each_statement(node))
        if any(isinstance(s, TileCall) and op_of(s).name not in ("print", "atomic_add") for s in inner):
            raise _refused(
                node, "a loop whose trip count differs between threads", "it holds an operation of the block"
            )
        stored = {s.buffer for s in inner if isinstance(s, Store) and str(s.buffer.scope()) == "shared.dyn"}
        if any(load.source in stored for load in collect(node, Load)):
            raise _refused(
                node, "a loop whose trip count differs between threads", "its threads exchange values"
            )
        return self._leaf(node, masks)


def _with_arrays_for_names(body: Stmt, differ: Callable[..., bool]) -> Stmt:
    """Names bound to values that differ between threads become one-element private variables."""
    names = {n.var: b.buffer(str(n.var.name), (1,), dtype_of(n.var), "local.var")
             for n in each_statement(body) if isinstance(n, Bind) and differ(n.value)}  # fmt: skip
    if not names:
        return body

    def go(node: Stmt) -> Stmt:
        if isinstance(node, Bind) and node.var in names:
            value = substitute(node.value, loads)
            return b.seq(b.alloc(names[node.var]), b.store(names[node.var], value, [0]))
        return map_statement(node, go)

    loads = {v: b.load(buffer, [0]) for v, buffer in names.items()}
    return substitute(go(body), loads)


# What to write instead of a jump, for which TVM has no lowering.
_INSTEAD = {
    "break": "go = T.alloc_var(T.bool, init=True), `while go:`, and `go = False` where the loop should end",
    "continue": "put an `if` around the rest of the loop's body",
}


def _jump(node: Stmt) -> str | None:
    """`break` or `continue`, which parsed text holds as calls."""
    if isinstance(node, Evaluate) and isinstance(node.value, Call):
        name = str(getattr(node.value.op, "name", "")).rpartition(".")[2]
        return {"break_loop": "break", "continue_loop": "continue"}.get(name)
    return "break" if isinstance(node, Break) else "continue" if isinstance(node, Continue) else None


def _refuse_jumps(f: PrimFunc) -> None:
    for node in each_statement(f.body):
        if (jump := _jump(node)) is not None:
            where = place_of(node.span)
            raise TileError(
                "TL402",
                f"{jump} in a loop of the kernel cannot be lowered for a CPU",
                places=(where,) if where else (),
                help=_INSTEAD[jump],
            )


def run(f: PrimFunc) -> PrimFunc:
    _refuse_jumps(f)
    indices, node = [], f.body
    while isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
        if str(node.node.thread_tag).startswith("threadIdx"):
            indices.append((node.node.var, node.value))
        node = node.body
    if not indices:
        because("there is no threadIdx")
        return f
    body = block_body(f)
    used = [(v, n) for v, n in indices if any(v.same_as(found) for found in collect(body, Var))]
    if used:
        body = _with_arrays_for_names(body, _Threads(used, body).differ)
        decide(f"statements that use {', '.join(str(v.name) for v, _ in used)} run once for each thread")
        body = _Lowering(_Threads(used, body)).go(body)
    else:
        body = _without_barriers(body)
    return b.with_attrs(_without_thread_bindings(with_block_body(f, body)), threads=1)


def _without_barriers(body: Stmt) -> Stmt:
    def drop_barrier(call: TileCall) -> Stmt | None:
        return b.seq() if op_of(call).name == "barrier" else None

    return rewrite(body, (TileCall, drop_barrier))


def _without_thread_bindings(f: PrimFunc) -> PrimFunc:
    def go(node: Stmt) -> Stmt:
        if not (isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent"):
            return node
        if str(node.node.thread_tag).startswith("threadIdx"):
            return go(node.body)
        return map_statement(node, go)

    return f.with_body(go(f.body))


lower_threads_cpu = Pass("lower_threads_cpu", run, needs="tile", gives="tile")
