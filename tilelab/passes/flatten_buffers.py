"""Turn every access into an offset: layouts and strides become index arithmetic, swizzles exclusive ors.

Shared tiles keep their place in the pool (`tl.offset`) and their layout as a note; global tensors become
one-dimensional, their strides constants or variables in the index. Tiles and tensors that a tensor memory
copy or a warpgroup's matrix instruction addresses as a whole keep their shape: the hardware does that
arithmetic.

Before (cuda:sm_80, threads=32):

    S = T.alloc_buffer((8, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "S<3,3,3>o(8,64):(64,1)", "tl.offset": 0})
    S[tx // 8, tx % 8 * 8] = T.float16(0)

After:

    S = T.alloc_buffer((512,), "float16", scope="shared.dyn", annotations={"tl.layout": "S<3,3,3>o(8,64):(64,1)", "tl.offset": 0})
    S[T.bitwise_xor(tx * 8, T.bitwise_and(T.shift_right(tx * 8, 3), 56))] = T.float16(0)
"""  # noqa: E501

from __future__ import annotations

from math import prod
from typing import Any

from tilelab.hardware import row
from tilelab.ir import build as b
from tilelab.ir.indices import Bounds, linear_index, offset_of
from tilelab.ir.nodes import (
    AllocBuffer,
    Load,
    PrimFunc,
    Ramp,
    Region,
    Stmt,
    Store,
    TileCall,
    Var,
    dtype_of,
    is_buffer,
)
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.scoped import Scope, allocations, map_inside, map_scoped
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, with_children
from tilelab.ir.tile_ops import op_of
from tilelab.passes.annotations import elements_in_memory, memory_layout_of
from tilelab.passes.base import Pass
from tilelab.passes.plan_copies import strides_of

__all__ = ["flatten_buffers"]

# Rows that take a tile by its address and shape.
_BY_TILE = ("tma", "wgmma")


def _is_by_tile(node: Stmt) -> bool:
    if not isinstance(node, TileCall) or op_of(node).name != "issue":
        return False
    return row(str(b.plain(node.config)["row"])).family in _BY_TILE


class _Flat:
    """The flat buffer of each buffer, and how an access's indices become its offset."""

    def __init__(self, f: PrimFunc) -> None:
        kept = {
            r.source for s in each_statement(f.body) if _is_by_tile(s) for r in s.args
            if isinstance(r, Region) and not str(r.source.scope()).startswith("local")
        }  # fmt: skip
        self.layouts: dict[Var, Any] = {}
        self.strides: dict[Var, list[Any]] = {}
        self.flat: dict[Var, Var] = {}
        for param in f.params:
            if hasattr(param, "shape") and param not in kept and _is_tensor(param):
                self.strides[param] = strides_of(param)
                if len(param.shape) != 1 or b.as_int(self.strides[param][0]) != 1:
                    self.flat[param] = b.buffer(
                        str(param.name), (_reach(param, self.strides[param]),), dtype_of(param), "global"
                    )
        for a in allocations(f):
            buffer, scope = a.buffer, str(a.buffer.scope())
            if buffer in kept or scope == "shared.barrier":
                continue
            extents = [b.as_int(n) or 1 for n in buffer.shape]
            if scope == "shared.dyn":
                self.layouts[buffer] = layout = memory_layout_of(a)
                size = elements_in_memory(layout)
                self.flat[buffer] = b.buffer(str(buffer.name), (size,), dtype_of(buffer), scope)
            elif len(extents) > 1:
                self.strides[buffer] = [prod(extents[i + 1 :]) for i in range(len(extents))]
                self.flat[buffer] = b.buffer(str(buffer.name), (prod(extents),), dtype_of(buffer), scope)

    def offset(self, buffer: Var, indices: Any, bounds: Bounds) -> Any:
        """The flat index; a vector's is a ramp from its first element."""
        first, lanes = list(indices), 1
        if first and isinstance(first[-1], Ramp):
            lanes = b.as_int(first[-1].lanes) or 1
            first[-1] = first[-1].base
        if buffer in self.layouts:
            value = offset_of(self.layouts[buffer], first, bounds)
        else:
            value = linear_index(first, self.strides[buffer])
        return b.ramp(bounds.simplify(b.as_expr(value)), lanes)

    def rule(self, node: Stmt, scope: Scope) -> Stmt | None:
        if isinstance(node, AllocBuffer):
            if node.buffer not in self.flat:
                return node
            notes = {str(k).removeprefix("tl."): v for k, v in b.plain(node.annotations).items()}
            return b.alloc(self.flat[node.buffer], **notes)
        if children(node):
            return self._head(node, scope)
        return self._in(node, scope.bounds)

    def _head(self, node: Stmt, scope: Scope) -> Stmt | None:
        """A statement that holds others goes on inside; its own condition or extent is rewritten here."""
        names = [n for n in ("condition", "min", "extent") if hasattr(node, n)]
        if not any(_uses(getattr(node, n), self.flat) for n in names):
            return None
        kids = tuple(map_inside(k, scope.inside(node), self.rule) for k in children(node))
        return self._in(with_children(node, tuple(b.evaluate(b.const(0)) for _ in kids)), scope.bounds, kids)

    def _in(self, node: Stmt, bounds: Bounds, kids: tuple[Stmt, ...] = ()) -> Stmt:
        def load(access: Load) -> Any:
            if access.source not in self.flat:
                return None
            return b.load(self.flat[access.source], [self.offset(access.source, access.indices, bounds)])

        def store(access: Store) -> Any:
            if access.buffer not in self.flat:
                return None
            where = self.offset(access.buffer, access.indices, bounds)
            return b.store(self.flat[access.buffer], access.value, [where])

        def region(part: Region) -> Any:
            if part.source not in self.flat:
                return None
            where = self.offset(part.source, [r.min for r in part.region], bounds)
            return b.region(self.flat[part.source], [(where, part.region[-1].extent)])

        with at(node.span):
            new = rewrite(node, (Load, load), (Store, store), (Region, region))
        return with_children(new, kids) if kids else new


def _uses(value: Any, flat: dict[Var, Var]) -> bool:
    return any(x.source in flat for x in collect(value, Load))


def _is_tensor(param: Var) -> bool:
    return is_buffer(param)


def _reach(buffer: Var, strides: list[Any]) -> Any:
    """The number of elements from the first to the last one, gaps included."""
    known = [(b.as_int(n), b.as_int(s)) for n, s in zip(buffer.shape, strides, strict=True)]
    if all(n is not None and s is not None for n, s in known):
        if any(n == 0 for n, _ in known):
            return 0
        return 1 + sum((n - 1) * s for n, s in known if n is not None and s is not None)
    total: Any = 1
    for extent in buffer.shape:
        total = total * extent
    return total


def run(f: PrimFunc) -> PrimFunc:
    flat = _Flat(f)
    new = map_scoped(f, flat.rule)
    params = [flat.flat.get(p, p) if _is_tensor(p) else p for p in f.params]
    return PrimFunc(params, new.body, new.ret_type, new.attrs)


flatten_buffers = Pass("flatten_buffers", run, needs="synced", gives="device")
