"""Give every shared tile its place in the block's pool: tiles that are never alive together share bytes.

Annotates `tl.offset` (bytes) on allocations and `tl.shared_bytes` on the function. A tile is alive from the
first to the last top-level statement of the block that mentions it; roles side by side run together and count
as one. Swizzled tiles start at multiples of 1024 bytes, so that address bits and layout bits agree; others at
multiples of 128.

Before (cuda:sm_80):

    S = T.alloc_buffer((32,), scope="shared.dyn", annotations={"tl.layout": "32:1"})
    S[0] = A[0]

After (shared_bytes=128):

    S = T.alloc_buffer((32,), scope="shared.dyn", annotations={"tl.layout": "32:1", "tl.offset": 0})
    S[0] = A[0]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilelab.errors import TileError
from tilelab.hardware import bits
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, PrimFunc, Stmt, Var, dtype_of, is_buffer
from tilelab.ir.rewrite import rewrite, walk
from tilelab.ir.scoped import block_body
from tilelab.ir.spans import place_of
from tilelab.ir.statements import each_statement, flatten
from tilelab.layout import Composed
from tilelab.passes.annotations import elements_in_memory, layout_text, memory_layout_of
from tilelab.passes.base import Pass, because, chip_of, decide

__all__ = ["bytes_of_tiles", "plan_shared_memory", "pool_bytes"]

SWIZZLED_ALIGNMENT = 1024
PLAIN_ALIGNMENT = 128


@dataclass
class _Tile:
    """A shared allocation: bytes, alignment, and the first and last statement that mention it."""

    node: AllocBuffer
    size: int
    alignment: int
    first: int
    last: int
    offset: int = 0


def _tiles(f: PrimFunc) -> list[_Tile]:
    body = _moments(f)
    uses: list[list[Var]] = []
    for moment in body:
        found: list[Var] = []
        for statement in moment:
            if not isinstance(statement, AllocBuffer):
                walk(statement, (Var, lambda v, found=found: found.append(v) if is_buffer(v) else None))
        uses.append(found)
    tiles = []
    for node in each_statement(f.body):
        if not isinstance(node, AllocBuffer) or str(node.buffer.scope()) not in (
            "shared.dyn",
            "shared.barrier",
        ):
            continue
        if node.buffer.scope() == "shared.barrier" and "tl.transport" in b.plain(node.annotations):
            continue
        where = [i for i, found in enumerate(uses) if any(v.same_as(node.buffer) for v in found)]
        is_swizzled = bool(layout_text(node)) and isinstance(memory_layout_of(node), Composed)
        alignment = SWIZZLED_ALIGNMENT if is_swizzled else PLAIN_ALIGNMENT
        size = _size(node)
        is_barrier = str(node.buffer.scope()) == "shared.barrier"
        first, last = (min(where), max(where)) if where and not is_barrier else (0, len(body))
        tiles.append(_Tile(node, size, alignment, first, last))
    return tiles


def _moments(f: PrimFunc) -> list[list[Stmt]]:
    """The block's statements in order; neighbouring roles, which run at the same time, in one entry."""
    out: list[list[Stmt]] = []
    for statement in flatten(block_body(f)):
        if b.group_of(statement) is not None and out and b.group_of(out[-1][-1]) is not None:
            out[-1].append(statement)
        else:
            out.append([statement])
    return out


def _size(node: AllocBuffer) -> int:
    """The bytes that an allocation takes."""
    elements = elements_in_memory(memory_layout_of(node)) if layout_text(node) else _count(node.buffer)
    return -(-elements * bits(dtype_of(node.buffer)) // 8)


def bytes_of_tiles(f: PrimFunc) -> dict[Var, tuple[int, int]]:
    """The first byte and the end of each shared tile that has its place in the pool."""
    places: dict[Var, tuple[int, int]] = {}
    for node in each_statement(f.body):
        if isinstance(node, AllocBuffer) and str(node.buffer.scope()) == "shared.dyn":
            first = b.plain(node.annotations).get("tl.offset")
            if first is not None:
                places[node.buffer] = (first, first + _size(node))
    return places


def _count(buffer: Var) -> int:
    return prod(b.as_int(extent) or 1 for extent in buffer.shape)


def _place_all(tiles: list[_Tile]) -> int:
    """Place the largest tiles first, each at the lowest free offset; the pool's size in bytes."""
    placed: list[_Tile] = []
    for tile in sorted(tiles, key=lambda t: (-t.alignment, -t.size)):
        rivals = sorted(
            (p for p in placed if p.first <= tile.last and tile.first <= p.last), key=lambda p: p.offset
        )
        offset = 0
        for rival in rivals:
            if offset + tile.size <= rival.offset:
                break
            offset = max(offset, -(-(rival.offset + rival.size) // tile.alignment) * tile.alignment)
        tile.offset = offset
        placed.append(tile)
    return max((t.offset + t.size for t in tiles), default=0)


def pool_bytes(f: PrimFunc, slots: Mapping[Var, int]) -> int:
    """The size of the pool if each tile had so many slots (or one), before its layout is known."""
    tiles = _tiles(f)
    for tile in tiles:
        tile.size *= slots.get(tile.node.buffer, 1)
        tile.alignment = SWIZZLED_ALIGNMENT
    return _place_all(tiles)


def run(f: PrimFunc) -> PrimFunc:
    tiles = _tiles(f)
    if not tiles:
        because("the kernel has no shared tile")
        return f
    chip, total = chip_of(f), _place_all(tiles)
    if total > chip.shared_per_block:
        biggest = max(tiles, key=lambda t: t.size)
        where = place_of(biggest.node.span)
        listing = ", ".join(f"{t.node.buffer.name} {t.size}" for t in sorted(tiles, key=lambda t: -t.size))
        raise TileError(
            "TL301",
            f"a block needs {total} bytes of shared memory; {chip.product} has {chip.shared_per_block} "
            f"({listing})",
            places=(where,) if where else (),
            help="use smaller blocks or a smaller num_stages",
        )
    sum_of_all = sum(t.size for t in tiles)
    saved = ""
    if total < sum_of_all:
        saved = f", {sum_of_all - total} bytes shared by tiles that are never alive together"
    decide(
        f"{total} bytes for {len(tiles)} tiles{saved}",
        offsets={str(t.node.buffer.name): t.offset for t in tiles},
    )
    offsets = {t.node.buffer: t.offset for t in tiles}

    def place_tile(node: AllocBuffer) -> AllocBuffer | None:
        return b.annotated(node, offset=offsets[node.buffer]) if node.buffer in offsets else None

    return b.with_attrs(rewrite(f, (AllocBuffer, place_tile)), shared_bytes=total)


plan_shared_memory = Pass("plan_shared_memory", run, needs="threaded", gives="threaded")
