"""Turn each gemm of a CPU kernel into loops over blocks of C that live in registers.

A block's sums are small local arrays, one a column vector, which LLVM keeps in vector registers because every
access to them is at a constant place. Rows and columns that fill no whole block get loops of their own.

Before (llvm, cpu=cpu-avx512):

    As = T.alloc_buffer((8, 32), scope="shared.dyn", annotations={"tl.layout": "(8,32):(32,1)"})
    Bs = T.alloc_buffer((32, 16), scope="shared.dyn", annotations={"tl.layout": "(32,16):(16,1)"})
    acc = T.alloc_buffer((8, 16), scope="local.fragment")
    T.gemm(As[0:8, 0:32], Bs[0:32, 0:16], acc[0:8, 0:16], repeats=[8, 1, 1], row="vector.fma.f32x16")

After:

    As = T.alloc_buffer((8, 32), scope="shared.dyn", annotations={"tl.layout": "(8,32):(32,1)"})
    Bs = T.alloc_buffer((32, 16), scope="shared.dyn", annotations={"tl.layout": "(32,16):(16,1)"})
    acc = T.alloc_buffer((8, 16), scope="local.fragment")
    sums = T.alloc_buffer((8, 16), scope="local")
    for r in T.unroll(8):
        for v in T.vectorized(16):
            sums[r, v] = acc[r, v]
    for k in range(32):
        for r in T.unroll(8):
            for v in T.vectorized(16):
                sums[r, v] = sums[r, v] + As[r, k] * Bs[k, v]
    for r in T.unroll(8):
        for v in T.vectorized(16):
            acc[r, v] = sums[r, v]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import add
from tilelab.ir.nodes import Expr, PrimFunc, Stmt, TileCall, Var, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.tile_ops import op_of, operand
from tilelab.layout import Layout
from tilelab.passes.base import Pass, slow
from tilelab.passes.cpu_tiles import Tile, contiguous, cpu_chip, lanes_of, layouts_of, tile_of
from tilelab.passes.plan_gemms import gemm_shape
from tilelab.passes.plan_gemms_cpu import compute_dtype
from tilelab.passes.plan_layouts_cpu import panel_columns


@dataclass(frozen=True)
class Gemm:
    """One gemm: matrices as (row, column) arrays, extents, and how many columns of C make a vector."""

    a: Tile
    b: Tile
    c: Tile
    shape: tuple[int, int, int]
    transposed: tuple[bool, bool]
    dtype: str
    clear: Any
    lanes: int

    def product(self, i: Any, j: Any, k: Any) -> Expr:
        """A[i, k] · B[k, j] in the dtype of the sums."""
        left = self.a.load((k, i) if self.transposed[0] else (i, k))
        right = self.b.load((j, k) if self.transposed[1] else (k, j))
        return b.cast(self.dtype, left) * b.cast(self.dtype, right)


def _matrix(tile: Tile) -> Tile:
    """The tile with the buffer's last two axes, whatever their extents."""
    rank = len(tile.lows)
    return tile.with_axes((rank - 2, rank - 1))


def _read(call: TileCall, lanes: int, layouts: dict[Var, Layout]) -> Gemm:
    config = b.plain(call.config)
    transposed = (bool(config.get("transpose_A")), bool(config.get("transpose_B")))
    left, right, out = (_matrix(tile_of(operand(call, name))) for name in "ABC")
    for tile, column in ((right, 0 if transposed[1] else 1), (out, 1)):
        run = contiguous(tile.buffer, tile.axes[column], layouts)
        if lanes > 1 and (run == 0 or (run > 0 and run % lanes)):
            slow(f"one element at a time: neighboring columns of {tile.buffer.name} lie apart", call.span)
            lanes = 1
    return Gemm(
        left, right, out, gemm_shape(call), transposed, compute_dtype(dtype_of(out.buffer)),
        call.config.get("clear_accum", False), lanes,
    )  # fmt: skip


def _widths(columns: int, lanes: int) -> list[int]:
    """Vectors that cover the columns: full ones, then halves of halves for the rest."""
    out = [lanes] * (columns // lanes)
    rest, width = columns % lanes, lanes // 2
    while rest:
        if rest >= width:
            out.append(width)
            rest -= width
        width //= 2
    return out


def _block(g: Gemm, i0: Any, j0: Any, rows: int, widths: list[int]) -> Stmt:
    """The product of `rows` rows of A and as many columns of B as the widths add up to."""
    sums = [b.buffer("sums", (rows, width), g.dtype, "local") for width in widths]

    def each(body: Callable[[Var, Var, Any, Any, Any], Stmt]) -> Stmt:
        """The body for every row and every element of each vector: (sums, row, lane, i, j)."""
        r, parts, column = b.var("r"), [], j0
        for target, width in zip(sums, widths, strict=True):
            v = b.var("v")
            inner = body(target, r, v if width > 1 else 0, add(i0, r), add(column, v if width > 1 else 0))
            parts.append(b.for_(v, width, inner, kind=b.VECTORIZED) if width > 1 else inner)
            column = add(column, width)
        return b.for_(r, rows, b.seq(*parts), kind=b.UNROLLED)

    def clear(s: Var, r: Any, v: Any, i: Any, j: Any) -> Stmt:
        return b.store(s, b.const(0, g.dtype), [r, v])

    def take(s: Var, r: Any, v: Any, i: Any, j: Any) -> Stmt:
        return b.store(s, g.c.load((i, j)), [r, v])

    k = b.var("k")

    def step(s: Var, r: Any, v: Any, i: Any, j: Any) -> Stmt:
        return b.store(s, b.load(s, [r, v]) + g.product(i, j, k), [r, v])

    def give(s: Var, r: Any, v: Any, i: Any, j: Any) -> Stmt:
        return g.c.store(b.load(s, [r, v]), (i, j))

    known = b.plain(g.clear)
    if isinstance(known, bool | int):
        start = each(clear if known else take)
    else:
        start = b.if_(g.clear, each(clear), each(take))
    return b.seq(*(b.alloc(s) for s in sums), start, b.for_(k, g.shape[2], each(step)), each(give))


def _blocks(g: Gemm, rows: int, columns: int) -> Stmt:
    """The whole product: full blocks, then the strips of columns and of rows that are left."""
    m, n, _ = g.shape
    out = []
    for column, count, wide in ((0, n // columns, columns), (n // columns * columns, 1, n % columns)):
        for first, repeat, tall in ((0, m // rows, rows), (m // rows * rows, 1, m % rows)):
            if not (count and repeat and wide and tall):
                continue
            jo, io = b.var("jo"), b.var("io")
            i0 = add(first, io * rows) if repeat > 1 else first
            j0 = add(column, jo * columns) if count > 1 else column
            body = _block(g, i0, j0, tall, _widths(wide, g.lanes))
            # Columns outside: the panel of B stays in the first-level cache while the rows of A pass by.
            body = b.for_(io, repeat, body) if repeat > 1 else body
            out.append(b.for_(jo, count, body) if count > 1 else body)
    return b.seq(*out)


def run(f: PrimFunc) -> PrimFunc:
    cpu, layouts = cpu_chip(f), layouts_of(f)

    def lower_gemm(call: TileCall) -> Stmt | None:
        if op_of(call).name != "gemm":
            return None
        dtype = compute_dtype(dtype_of(operand(call, "C").source))
        rows = int(b.plain(call.config)["repeats"][0])
        return _blocks(_read(call, lanes_of(cpu, dtype), layouts), rows, panel_columns(call))

    return rewrite(f, (TileCall, lower_gemm))


lower_gemm_cpu = Pass("lower_gemm_cpu", run, needs="laid_out", gives="laid_out")
