"""Give every thread its part: fragments become per-thread arrays, and parallel nests become each thread's
loops.

An element F[i, j] of a fragment becomes the register that holds it in the thread whose share of the nest is
(i, j). Vectors are as wide as the layout's run of consecutive elements and the alignment of what is accessed
allow. Where several threads share a point, only the first writes to memory; a single element outside of any
nest is written by the block's first thread. Tile operations keep their fragments as whole arrays,
described by the layout on the allocation, until their own lowering.

Before (cuda:sm_80, threads=32):

    F = T.alloc_buffer((64,), scope="local.fragment", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    for i in T.parallel(64, annotations={"tl.layout": "(64,)@(32,2):(2,1)"}):
        F[i] = A[i] * T.float32(2)

After:

    F = T.alloc_buffer((2,), scope="local", annotations={"tl.layout": "(64,)@(32,2):(2,1)"})
    for v_lane in T.vectorized(2):
        F[v_lane] = A[tx * 2 + v_lane] * T.float32(2)
"""

from __future__ import annotations

from typing import Any

from tilelab.errors import InternalError
from tilelab.hardware import bits
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds
from tilelab.ir.nodes import (
    AllocBuffer,
    AttrStmt,
    Bind,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
    dtype_of,
)
from tilelab.ir.rewrite import collect, rewrite, substitute
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, flatten, seq, with_children
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Fragment, parse
from tilelab.passes.annotations import fragment_of, layout_text
from tilelab.passes.base import Pass, because, threads_of
from tilelab.passes.lower_parts import is_partial
from tilelab.passes.nests import Access, Nest, accesses, axes_of, is_nest, nest_of, register_index
from tilelab.passes.plan_copies import alignment_of
from tilelab.passes.share_out import chunk_loops, elected, first_copy, fragment_loops, thread_number

__all__ = ["lower_parallel"]


class _Lowering:
    """What the pass knows of a function: layouts, and the per-thread array of each fragment."""

    def __init__(self, f: PrimFunc) -> None:
        self.f = f
        self.threads = threads_of(f)
        self.layouts = {a.buffer: parse(layout_text(a)) for a in allocations(f) if layout_text(a)}
        self.once = _once_a_block(f)
        self.arrays: dict[Var, Var] = {}
        for a in allocations(f):
            if str(a.buffer.scope()) == "local.fragment":
                fragment = fragment_of(a)
                self.arrays[a.buffer] = b.buffer(
                    str(a.buffer.name), (fragment.values,), dtype_of(a.buffer), "local"
                )

    def rule(self, node: Stmt, scope: Scope) -> Stmt | None:
        if self._is_once(node):
            return b.if_(elected(self.f, scope), node)
        if isinstance(node, AllocBuffer) and node.buffer in self.arrays:
            return b.alloc(self.arrays[node.buffer], layout=layout_text(node))
        if is_nest(node):
            return self.nest(nest_of(node), fragment_of(node), scope)
        if isinstance(node, TileCall):
            for part in (a for a in node.args if is_partial(a)):
                raise InternalError(f"a part of a fragment is left: {part}")
            args = [
                b.whole(self.arrays[a.source]) if isinstance(a, Region) and a.source in self.arrays else a
                for a in node.args
            ]
            if any(not new.same_as(old) for new, old in zip(args, node.args, strict=True)):
                return b.tile_with(node, *args)
        return None

    def _is_once(self, node: Stmt) -> bool:
        if self.threads == 1:
            return False
        if isinstance(node, For) and node.kind == b.VECTORIZED:
            return all(part in self.once for part in flatten(node.body))
        return isinstance(node, Store | TileCall) and node in self.once

    def nest(self, nest: Nest, share: Fragment, scope: Scope) -> Stmt:
        thread = thread_number(self.f, scope)
        vector = self.vector_of(nest, share, thread, scope.bounds)

        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            body = self.with_registers(nest, share, value)
            return substitute(body, dict(zip(nest.loop_vars, point, strict=True)))

        if share.replication > 1 and not any(a.buffer in self.arrays for a in accesses(nest.body)):
            return self._in_chunks(nest, vector, thread, scope)
        body = fragment_loops(share, vector, thread, scope.bounds, make)
        owner = first_copy(share, thread)
        return body if owner is None else _only_first_writes(body, owner)

    def _in_chunks(self, nest: Nest, vector: int, thread: Any, scope: Scope) -> Stmt:
        """A nest that no fragment ties to certain threads and that they do not divide evenly, in chunks."""

        def make(point: list[Any]) -> Stmt:
            lane = b.var("lane")
            last = point[-1] + lane if vector > 1 else point[-1]
            body = substitute(nest.body, dict(zip(nest.loop_vars, [*point[:-1], last], strict=True)))
            return b.for_(lane, vector, body, b.VECTORIZED) if vector > 1 else body

        threads = scope.group[2] if scope.group else self.threads
        return chunk_loops(nest.extents, vector, threads, thread, scope.bounds, make)

    def with_registers(self, nest: Nest, share: Fragment, value: Any) -> Stmt:
        """The nest's body with each fragment element replaced by a register of the thread."""

        def index(access: Access) -> Any:
            axes = axes_of(access, nest)
            fragment = self.layouts[access.buffer]
            assert axes is not None
            assert isinstance(fragment, Fragment)
            try:
                return register_index(fragment, axes, share, value, access.indices)
            except ValueError as error:
                raise InternalError(
                    f"{access.buffer.name} as {fragment} under the share {share}: {error}"
                ) from error

        def load(node: Load) -> Any:
            if node.source not in self.arrays:
                return None
            return b.load(
                self.arrays[node.source], [index(Access(node.source, tuple(node.indices), False, node))]
            )

        def store(node: Store) -> Any:
            if node.buffer not in self.arrays:
                return None
            where = index(Access(node.buffer, tuple(node.indices), True, node))
            return b.store(self.arrays[node.buffer], node.value, [where])

        return rewrite(nest.body, (Load, load), (Store, store))

    def vector_of(self, nest: Nest, share: Fragment, thread: Any, bounds: Bounds) -> int:
        """How many consecutive points the accesses to memory can take at a time."""
        if not all(isinstance(s, Store) for s in flatten(nest.body)):
            return 1
        last = len(nest.extents) - 1
        width = share.vector(last)
        # A place that stays while the points move on is written by each of them in turn, not by a vector.
        if any(
            s.buffer not in self.arrays and not b.moves_by_one(s.indices[-1], nest.loop_vars[last])
            for s in flatten(nest.body)
        ):
            return 1
        outside = [a for a in accesses(nest.body) if a.buffer not in self.arrays and _is_memory(a.buffer)]
        for access in outside:
            if b.moves_by_one(access.indices[-1], nest.loop_vars[last]):
                width = min(width, self._aligned_elements(access, nest, share, thread, bounds, width))
            elif any(_mentions(i, nest.loop_vars[last]) for i in access.indices):
                return 1
        return width if outside else 1

    def _aligned_elements(
        self, access: Access, nest: Nest, share: Fragment, thread: Any, bounds: Bounds, width: int
    ) -> int:
        found: list[int] = []

        def make(point: list[Any], value: Any, base: list[Any]) -> Stmt:
            mapping = dict(zip(nest.loop_vars, base, strict=True))
            starts = [substitute(i, mapping) if hasattr(i, "same_as") else i for i in access.indices]
            layout = self.layouts.get(access.buffer)
            region = b.region(access.buffer, [(s, 1) for s in starts])
            known = bounds.with_variables([])
            found.append(alignment_of(region, known, layout))
            return b.seq()

        fragment_loops(share, width, thread, bounds, make)
        size = max(bits(dtype_of(access.buffer)) // 8, 1)
        return max(1, found[0] // size)


def _once_a_block(f: PrimFunc) -> set[Stmt]:
    """Stores of one element, and additions to one, that are meant once for the block.

    They stand outside of nests and are the same on all threads: one thread makes them, so that what was
    stored may be read and stored again.
    """
    found: set[Stmt] = set()
    varying: list[Var] = []

    def varies(value: Any) -> bool:
        if any(v.same_as(x) for v in collect(value, Var) for x in varying):
            return True
        return any(str(x.source.scope()).startswith("local") for x in collect(value, Load))

    def visit(node: Stmt) -> None:
        if is_nest(node):
            return
        if isinstance(node, Bind) and varies(node.value):
            varying.append(node.var)
        if isinstance(node, AttrStmt) and str(node.attr_key) == "thread_extent":
            if str(node.node.thread_tag).startswith("threadIdx"):
                varying.append(node.node.var)
        elif isinstance(node, IfThenElse | While) and varies(node.condition):
            return
        is_atomic = isinstance(node, TileCall) and op_of(node).name == "atomic_add"
        is_single = is_atomic and not isinstance(operand(node, "value"), Region)
        if (is_single or (isinstance(node, Store) and _is_memory(node.buffer))) and not varies(node):
            found.add(node)
        for child in children(node):
            visit(child)

    visit(f.body)
    return found


def _is_memory(buffer: Var) -> bool:
    return str(buffer.scope()) in ("global", "shared.dyn")


def _mentions(value: Any, variable: Var) -> bool:
    return any(v.same_as(variable) for v in collect(value, Var))


def _only_first_writes(node: Stmt, owner: Any) -> Stmt:
    """The body with writes to memory done by the first of the threads that share a point."""
    if isinstance(node, For) and node.kind == b.VECTORIZED:
        # A vectorised loop keeps its store as its whole body: the condition goes around the loop. A statement
        # that writes registers gets a loop of its own, since all the threads need those.
        with at(node.span):
            return seq(*(_guarded(_vector_of_one(node, s), owner) for s in flatten(node.body)))
    if children(node):
        return with_children(node, tuple(_only_first_writes(kid, owner) for kid in children(node)))
    return _guarded(node, owner)


def _guarded(node: Stmt, owner: Any) -> Stmt:
    if not any(_writes_memory(s) for s in each_statement(node)):
        return node
    with at(node.span):
        return b.if_(owner, node)


def _writes_memory(node: Stmt) -> bool:
    return _is_memory(node.buffer) if isinstance(node, Store) else isinstance(node, TileCall)


def _vector_of_one(loop: For, statement: Stmt) -> Stmt:
    lane = b.var(str(loop.loop_var.name))
    body = substitute(statement, {loop.loop_var: lane})
    return For(lane, loop.min, loop.extent, loop.kind, body, span=loop.span)


def run(f: PrimFunc) -> PrimFunc:
    lowering = _Lowering(f)
    if not lowering.arrays and not lowering.once and not any(is_nest(s) for s in each_statement(f.body)):
        because("the kernel has no fragment and no parallel loop")
        return f
    return map_scoped(f, lowering.rule)


lower_parallel = Pass("lower_parallel", run, needs="laid_out", gives="threaded")
