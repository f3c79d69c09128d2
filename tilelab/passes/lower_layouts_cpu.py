"""Apply the layouts of shared tiles on a CPU: each becomes a one-dimensional array with the offsets written out.

Before (cpu-avx512):

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
                S[i * 32 + v + j * 128] = A[i, j * 32 + v]
"""

from __future__ import annotations

from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, offset_of
from tilelab.ir.nodes import AllocBuffer, Load, PrimFunc, Stmt, Store, Var, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.layout import Layout, parse
from tilelab.passes.base import Pass, because


def run(f: PrimFunc) -> PrimFunc:
    arrays: dict[Var, tuple[Var, Layout]] = {}
    for node in allocations(f):
        text, old = b.plain(node.annotations).get("tl.layout"), node.buffer
        if text and str(old.scope()) == "shared.dyn":
            layout = parse(text)
            arrays[old] = (b.buffer(str(old.name), (layout.cosize,), dtype_of(old), "shared.dyn"), layout)
    if not arrays:
        because("no tile is left with a layout")
        return f

    def place(old: Var, indices: Any, bounds: Bounds) -> list[Any]:
        return [bounds.simplify(offset_of(arrays[old][1], [bounds.simplify(i) for i in indices]))]

    def write_offsets(node: Stmt, scope: Scope) -> Stmt | None:
        if isinstance(node, AllocBuffer):
            return b.alloc(arrays[node.buffer][0]) if node.buffer in arrays else None

        def load_at_offset(load: Load) -> Load | None:
            if load.source not in arrays:
                return None
            return b.load(arrays[load.source][0], place(load.source, load.indices, scope.bounds))

        if isinstance(node, Store):
            new = rewrite(node, (Load, load_at_offset))
            if new.buffer in arrays:
                new = b.store(arrays[new.buffer][0], new.value, place(new.buffer, new.indices, scope.bounds))
            return new
        return None

    return map_scoped(f, write_offsets)


lower_layouts_cpu = Pass("lower_layouts_cpu", run, needs="threaded", gives="synced")
