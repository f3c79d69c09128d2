"""Apply the layouts of shared tiles on a CPU: each becomes a one-dimensional array, offsets written out.

Parameters keep their shapes, which the calling convention of the CPU checks.

Before (llvm, cpu=cpu-avx512):

    S = T.alloc_buffer((4, 64), scope="shared.dyn", annotations={"tl.layout": "(4,(32,2)):(32,(1,128))"})
    for i in range(4):
        for j in range(2):
            for v in T.vectorized(32):
                S[i, j * 32 + v] = A[i, j * 32 + v]

After:

    S = T.alloc_buffer((256,), scope="shared.dyn")
    for i in range(4):
        for j in range(2):
            for v in T.vectorized(32):
                S[j * 128 + i * 32 + v] = A[i, j * 32 + v]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, offset_of
from tilelab.ir.nodes import AllocBuffer, For, IfThenElse, Load, PrimFunc, Stmt, Store, Var, While, dtype_of
from tilelab.ir.rewrite import record_hit, rewrite
from tilelab.ir.scoped import allocations
from tilelab.ir.spans import at
from tilelab.ir.statements import children, with_children
from tilelab.layout import Layout, parse
from tilelab.passes.base import Pass, because


class _Offsets:
    """The one-dimensional array of each tile, and the walk that leads accesses to it."""

    def __init__(self, f: PrimFunc) -> None:
        self.arrays: dict[Var, tuple[Var, Layout]] = {}
        for node in allocations(f):
            text, old = b.plain(node.annotations).get("tl.layout"), node.buffer
            if text and str(old.scope()) == "shared.dyn":
                layout = parse(text)
                assert isinstance(layout, Layout), f"{old.name} is laid out as {layout}"
                array = b.buffer(str(old.name), (layout.cosize,), dtype_of(old), "shared.dyn")
                self.arrays[old] = (array, layout)

    def place(self, old: Var, indices: Any, bounds: Bounds) -> list[Any]:
        return [bounds.simplify(offset_of(self.arrays[old][1], [bounds.simplify(i) for i in indices]))]

    def within(self, value: Any, bounds: Bounds) -> Any:
        """An expression or a leaf statement with its accesses at offsets."""

        def load_at_offset(load: Load) -> Load | None:
            if load.source not in self.arrays:
                return None
            return b.load(self.arrays[load.source][0], self.place(load.source, load.indices, bounds))

        def store_at_offset(node: Store) -> Store | None:
            if node.buffer not in self.arrays:
                return None
            return b.store(
                self.arrays[node.buffer][0], node.value, self.place(node.buffer, node.indices, bounds)
            )

        return rewrite(value, (Load, load_at_offset), (Store, store_at_offset))

    def go(self, node: Stmt, bounds: Bounds) -> Stmt:
        with at(node.span):
            if isinstance(node, AllocBuffer):
                new = b.alloc(self.arrays[node.buffer][0]) if node.buffer in self.arrays else node
            elif not children(node):
                return self.within(node, bounds)
            else:
                new = self.head(node, bounds)
        if not new.same_as(node):
            record_hit("write_offsets", node, new)
        inner = bounds.inside(node)
        return with_children(new, tuple(self.go(kid, inner) for kid in children(node)))

    def head(self, node: Stmt, bounds: Bounds) -> Stmt:
        """A branch or loop whose own condition or extent reads a tile."""
        old = node.extent if isinstance(node, For) else getattr(node, "condition", None)
        new = None if old is None else self.within(old, bounds)
        if new is None or new.same_as(old):
            return node
        match node:
            case IfThenElse():
                return b.if_(new, node.then_case, node.else_case)
            case While():
                return b.while_(new, node.body)
        return b.for_(node.loop_var, new, node.body, node.kind, node.annotations, node.min)


def run(f: PrimFunc) -> PrimFunc:
    offsets = _Offsets(f)
    if not offsets.arrays:
        because("no tile is left with a layout")
        return f
    return f.with_body(offsets.go(f.body, Bounds()))


lower_layouts_cpu = Pass("lower_layouts_cpu", run, needs="threaded", gives="synced")
