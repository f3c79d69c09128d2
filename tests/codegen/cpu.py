"""Tile-stage kernels for the CPU's tests, and the way from one to a function that runs."""

from __future__ import annotations

from typing import Any

from tilelab.codegen import llvm
from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc
from tilelab.ir.text import parse_function
from tilelab.pipelines.llvm import LLVM
from tilelab.pipelines.run import run, start_trace
from tilelab.targets import parse_target
from tilelab.trace.record import Trace
from tilelab.trace.schema import Source


def kernel(text: str, threads: int = 32, **attrs: Any) -> PrimFunc:
    """A tile-stage kernel from its text."""
    f = parse_function(text).with_attr({"global_symbol": "main", "tl.target": "llvm"})
    return b.with_attrs(b.with_stage(f, "tile"), threads=threads, **attrs)


def matmul(
    m: Any, n: Any, k: Any, dtype: str = "float32", sums: str = "float32", out: str | None = None,
    transpose_a: bool = False, transpose_b: bool = False, block: tuple[int, int, int] = (128, 128, 32),
) -> PrimFunc:  # fmt: skip
    """C = op(A) @ op(B), the article's kernel; extents may be variables."""
    bm, bn, bk = block
    a = b.buffer("A", (k, m) if transpose_a else (m, k), dtype)
    bb = b.buffer("B", (n, k) if transpose_b else (k, n), dtype)
    c = b.buffer("C", (m, n), out or dtype)
    a_tile = b.buffer("A_shared", (bk, bm) if transpose_a else (bm, bk), dtype, "shared.dyn")
    b_tile = b.buffer("B_shared", (bn, bk) if transpose_b else (bk, bn), dtype, "shared.dyn")
    c_tile = b.buffer("C_local", (bm, bn), sums, "local.fragment")
    bx, by, tx, ko = (b.var(name) for name in ("bx", "by", "tx", "ko"))
    rows, columns, depth = (by * bm, bm), (bx * bn, bn), (ko * bk, bk)
    load_a = b.tile("copy", b.region(a, [depth, rows] if transpose_a else [rows, depth]), b.whole(a_tile))
    load_b = b.tile(
        "copy", b.region(bb, [columns, depth] if transpose_b else [depth, columns]), b.whole(b_tile)
    )
    transposed = {"transpose_A": transpose_a or None, "transpose_B": transpose_b or None}
    gemm = b.tile("gemm", b.whole(a_tile), b.whole(b_tile), b.whole(c_tile), **transposed)
    steps = b.for_(ko, b.ceildiv(k, bk), b.seq(load_a, load_b, gemm), annotations={"tl.num_stages": 3})
    body = b.seq(
        *(b.alloc(tile) for tile in (a_tile, b_tile, c_tile)),
        b.tile("fill", b.whole(c_tile), b.const(0, sums)),
        steps,
        b.tile("copy", b.whole(c_tile), b.region(c, [rows, columns])),
    )
    body = b.launch("threadIdx.x", tx, 128, body)
    body = b.launch("blockIdx.y", by, b.ceildiv(m, bm), body)
    body = b.launch("blockIdx.x", bx, b.ceildiv(n, bn), body)
    return b.function("matmul", [a, bb, c], body, stage="tile", outputs=[2], threads=128, target="llvm")


def lowered(f: PrimFunc, until: str | None = None) -> tuple[PrimFunc, Trace]:
    """The kernel after the CPU's pipeline, and what the passes recorded."""
    trace = start_trace(f, Source("kernel.py", 1, ()))
    return run(f, LLVM, trace, until=until), trace


def compiled(f: PrimFunc) -> llvm.LLVMModule:
    """The kernel as a function."""
    return llvm.build(lowered(f)[0], parse_target("llvm"))
