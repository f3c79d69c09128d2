"""A Hopper matmul built by hand at stage laid_out: what planning is to make of a plain one, before it can.

384 threads: a producer that fills a ring of slots by TMA, and two warpgroups that multiply by wgmma, as one
role of 256 threads or as two roles of 128. The ring's position (slot, phase) is state of each role, advanced
with every use.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilelab.hardware import chip, select_gemm
from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Stmt, Var
from tilelab.ir.spans import at, make_span
from tilelab.layout import shared_tile
from tilelab.passes.expand_pipeline import ring_layout
from tilelab.pipelines.cuda import CUDA
from tilelab.pipelines.run import run, start_trace, without
from tilelab.settings import settings
from tilelab.trace.record import Trace
from tilelab.trace.schema import Source

__all__ = ["HopperMatmul"]

BLOCK_M, BLOCK_K = 128, 64
PRODUCER, CONSUMERS, THREADS = 128, 256, 384


class _Here:
    """The builders of `tilelab.ir.build`, each new statement with the caller's line as its source."""

    def __getattr__(self, name: str) -> Any:
        def build(*args: Any, **keywords: Any) -> Any:
            line = sys._getframe(1).f_lineno
            with at(make_span(__file__, line, line, 1, 2)):
                return getattr(b, name)(*args, **keywords)

        return build


t = _Here()


class _Position:
    """Where a role is in the ring: the next slot, and the parity of the round it is in."""

    def __init__(self, role: str, depth: int, first_phase: int) -> None:
        self.depth, self.first_phase = depth, first_phase
        self.slot = b.buffer(f"{role}_slot", (1,), "int32", "local.var")
        self.phase = b.buffer(f"{role}_phase", (1,), "int32", "local.var")

    def start(self) -> Stmt:
        return b.seq(
            t.alloc(self.slot), t.alloc(self.phase),
            t.store(self.slot, b.const(0), [0]), t.store(self.phase, b.const(self.first_phase), [0]),
        )  # fmt: skip

    @property
    def now(self) -> Any:
        return b.load(self.slot, [0])

    @property
    def parity(self) -> Any:
        return b.load(self.phase, [0])

    def advance(self) -> Stmt:
        around = b.seq(
            t.store(self.slot, b.const(0), [0]),
            t.store(self.phase, b.bitwise("xor", self.parity, b.const(1)), [0]),
        )
        return b.seq(t.store(self.slot, self.now + 1, [0]), t.if_(self.now == self.depth, around))


@dataclass(frozen=True)
class HopperMatmul:
    """C (m, n) = A (m, k) · B in float16, sums in float32; B is (n, k) for b_major "k", (k, n) for "mn".

    A block computes `tiles` neighbouring tiles of 128 × block_n. `roles` is 1 for one role of both consumer
    warpgroups, 2 for one each. `steps` replaces the number of steps along k. `planted` names a defect.
    """

    m: int = 128
    n: int = 256
    k: int = 256
    block_n: int = 256
    depth: int = 3
    roles: int = 1
    b_major: str = "k"
    tiles: int = 1
    steps: int | None = None
    clear: str = "fill"
    planted: str = ""

    # ---- what it computes

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """A, B, and a C full of NaN."""
        random = np.random.default_rng(seed)
        shapes = [(self.m, self.k), self._b_shape]
        a, right = (random.standard_normal(shape).astype(np.float16) for shape in shapes)
        return [a, right, np.full((self.m, self.n), np.nan, np.float16)]

    def expected(self, a: np.ndarray, right: np.ndarray) -> np.ndarray:
        """A · B in float64, over the steps along k that the kernel makes."""
        used = self._steps * BLOCK_K
        right = right.T if self.b_major == "k" else right
        return a[:, :used].astype(np.float64) @ right[:used].astype(np.float64)

    @property
    def _b_shape(self) -> tuple[int, int]:
        return (self.n, self.k) if self.b_major == "k" else (self.k, self.n)

    @property
    def _steps(self) -> int:
        return self.k // BLOCK_K if self.steps is None else self.steps

    # ---- the kernel

    def build(self, target: str = "cuda:sm_90a") -> PrimFunc:
        """The function at stage laid_out."""
        return _Builder(self).function(target)

    def trace(self, *left_out: str) -> Trace:
        """The trace of CUDA's passes from stage laid_out on, some of them left out."""
        return _traced(self, left_out)

    def device(self, *left_out: str) -> PrimFunc:
        """The function after those passes."""
        return self.trace(*left_out).steps[-1].function


@cache
def _traced(kernel: HopperMatmul, left_out: tuple[str, ...]) -> Trace:
    f = kernel.build()
    first = next(i for i, p in enumerate(CUDA) if p.name == "lower_parallel")
    trace = start_trace(f, Source("hopper.py", 1, ()))
    with settings(verify=True):
        run(f, without(CUDA[first:], *left_out), trace)
    return trace


class _Builder:
    def __init__(self, spec: HopperMatmul) -> None:
        self.spec = spec
        n = spec.block_n
        self.a = b.buffer("A", (spec.m, spec.k), "float16")
        self.b = b.buffer("B", spec._b_shape, "float16")
        self.c = b.buffer("C", (spec.m, spec.n), "float16")
        b_tile = (n, BLOCK_K) if spec.b_major == "k" else (BLOCK_K, n)
        self.a_shared = b.buffer("A_shared", (spec.depth, BLOCK_M, BLOCK_K), "float16", "shared.dyn")
        self.b_shared = b.buffer("B_shared", (spec.depth, *b_tile), "float16", "shared.dyn")
        rows = BLOCK_M // spec.roles
        # Each role has a staging tile of its own: roles meet only at channels.
        self.c_shared = [
            b.buffer(f"C_shared{i or ''}", (rows, n), "float16", "shared.dyn") for i in range(spec.roles)
        ]
        self.ring = b.buffer("ring", (spec.depth,), "uint64", "shared.barrier")
        self.bx, self.by, self.tx = b.var("bx"), b.var("by"), b.var("tx")

    def function(self, target: str) -> PrimFunc:
        spec, tile = self.spec, shared_tile
        b_tile = tuple(int(e) for e in self.b_shared.shape[1:])
        c_layout = str(tile((BLOCK_M // spec.roles, spec.block_n), 16, 128))
        body = b.seq(
            t.alloc(self.a_shared, layout=str(ring_layout(tile((BLOCK_M, BLOCK_K), 16, 128), spec.depth))),
            t.alloc(self.b_shared, layout=str(ring_layout(tile(b_tile, 16, 128), spec.depth))),
            *(t.alloc(c, layout=c_layout) for c in self.c_shared),
            t.alloc(self.ring, transport="mbarrier", producers=1, consumers=spec.roles),
            self.role("producer", 0, PRODUCER, 40, self.producer()),
            *self.consumers(),
        )  # fmt: skip
        body = t.launch("threadIdx.x", self.tx, THREADS, body)
        body = t.launch("blockIdx.y", self.by, spec.m // BLOCK_M, body)
        body = t.launch("blockIdx.x", self.bx, spec.n // (spec.block_n * spec.tiles), body)
        return b.function(
            "matmul",
            [self.a, self.b, self.c],
            body,
            stage="laid_out",
            threads=THREADS,
            outputs=[2],
            target=target,
        )

    def role(self, name: str, first: int, count: int, registers: int, body: Stmt) -> Stmt:
        return t.group(name, first, count, t.attr("tl.registers", registers, body))

    def slot(self, position: _Position) -> Any:
        return b.region(self.ring, [(position.now, 1)])

    def tile_column(self, tile: Var) -> Any:
        return self.bx if self.spec.tiles == 1 else self.bx * self.spec.tiles + tile

    def each_step(self, position: _Position, body: list[Stmt], k: Var) -> Stmt:
        return t.for_(k, self.spec._steps, b.seq(*body, position.advance()))

    def producer(self) -> Stmt:
        spec, at_ring = (
            self.spec,
            _Position("load", self.spec.depth, 0 if self.spec.planted == "producer phase" else 1),
        )
        tile, k, n = b.var("tile"), b.var("ko"), spec.block_n
        rows, columns = (n, BLOCK_K) if spec.b_major == "k" else (BLOCK_K, n)
        first = self.tile_column(tile) * n
        corner = (first, k * BLOCK_K) if spec.b_major == "k" else (k * BLOCK_K, first)
        step = [
            t.tile("acquire", self.slot(at_ring), at_ring.parity, name="ring"),
            t.tile(
                "copy", b.region(self.a, [(self.by * BLOCK_M, BLOCK_M), (k * BLOCK_K, BLOCK_K)]),
                b.region(self.a_shared, [(at_ring.now, 1), (0, BLOCK_M), (0, BLOCK_K)]),
                row="tma.load.2d.128x64.float16.s128", channel="ring",
            ),
            t.tile(
                "copy", b.region(self.b, [(corner[0], rows), (corner[1], columns)]),
                b.region(self.b_shared, [(at_ring.now, 1), (0, rows), (0, columns)]),
                row=f"tma.load.2d.{rows}x64.float16.s128", channel="ring",
            ),
            t.tile("commit", self.slot(at_ring), name="ring"),
        ]  # fmt: skip
        return b.seq(at_ring.start(), self.over_tiles(tile, self.each_step(at_ring, step, k)))

    def over_tiles(self, tile: Var, body: Stmt) -> Stmt:
        return body if self.spec.tiles == 1 else t.for_(tile, self.spec.tiles, body)

    def consumers(self) -> list[Stmt]:
        if self.spec.roles == 1:
            return [self.role("consumers", PRODUCER, CONSUMERS, 232, self.consumer(0, BLOCK_M, CONSUMERS))]
        return [
            self.role(f"consumer{i}", PRODUCER * (i + 1), 128, 232, self.consumer(i, BLOCK_M // 2, 128))
            for i in range(2)
        ]

    def consumer(self, number: int, rows: int, threads: int) -> Stmt:
        """Wait for a slot, multiply, give it back; then the tile goes out through shared memory."""
        spec, n, planted = self.spec, self.spec.block_n, self.spec.planted
        row, staging = number * rows, b.whole(self.c_shared[number])
        at_ring = _Position(f"use{number or ''}", spec.depth, 1 if planted == "consumer phase" else 0)
        tile, k = b.var("tile"), b.var("ko")
        major = "k" if spec.b_major == "k" else "mn"
        choice = select_gemm(
            chip("sm_90a"), rows, n, BLOCK_K, "float16", "float16", "float32", threads=threads, b_major=major
        )
        acc = b.buffer("C_local", (rows, n), "float32", "local.fragment")
        gemm = t.tile(
            "gemm", b.region(self.a_shared, [(at_ring.now, 1), (row, rows), (0, BLOCK_K)]),
            b.region(self.b_shared, [(at_ring.now, 1), *((0, e) for e in self.b_shared.shape[1:])]),
            b.whole(acc), transpose_B=True if major == "k" else None, row=choice.row.name,
            warps=list(choice.warps), repeats=list(choice.repeats), replication=choice.replication,
            clear_accum=k == 0 if spec.clear == "first step" else None,
        )  # fmt: skip
        release = t.tile("release", self.slot(at_ring), name="ring")
        step = [t.tile("wait", self.slot(at_ring), at_ring.parity, name="ring"), gemm, release]
        if planted == "early release":
            step = [step[0], release, gemm]
        if planted == "no release":
            step = step[:2]
        each = b.seq(
            t.tile("fill", b.whole(acc), b.const(0.0, "float32")) if spec.clear == "fill" else b.seq(),
            self.each_step(at_ring, step, k),
            t.tile("copy", b.whole(acc), staging, row="st.shared.b32", vector=2),
            t.tile(
                "copy", staging,
                b.region(self.c, [(self.by * BLOCK_M + row, rows), (self.tile_column(tile) * n, n)]),
                row=f"tma.store.2d.{rows}x64.float16.s128",
            ),
        )  # fmt: skip
        return b.seq(t.alloc(acc, layout=str(choice.d)), at_ring.start(), self.over_tiles(tile, each))
