"""A block being executed: its memory, barriers and clocks; and `emulate`, which runs the blocks of a
function.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelab.emulate.barriers import BarrierArray, Wait, deadlock, force_one
from tilelab.emulate.compile import Program, compile_function
from tilelab.emulate.context import Context
from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.instructions import issue
from tilelab.emulate.memory import LogicalBuffer
from tilelab.emulate.pool import Pool, PoolBuffer, offsets_of
from tilelab.emulate.races import Tracker
from tilelab.emulate.registers import LocalBuffer
from tilelab.emulate.report import Race, Report, fault
from tilelab.emulate.sync_ops import SYNC_OPS
from tilelab.emulate.tile_ops import TILE_OPS
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.nodes import dtype_of, is_buffer

__all__ = ["Machine", "emulate"]

FREE = ("synced", "device")
_OPS = {**TILE_OPS, **SYNC_OPS, "issue": issue}
_ALIGN = 1024


class Machine:
    """One block: everything that its threads share, and what was found while it ran."""

    def __init__(
        self, program: Program, stage: str, mode: str, seed: int, threads: int, warp: int, limit: int
    ) -> None:
        self.program, self.stage, self.mode, self.threads, self.warp = program, stage, mode, threads, warp
        self.is_free = stage in FREE
        self.random = np.random.default_rng(seed)
        self.steps, self.limit = 0, limit
        self.issued: dict[str, int] = {}
        self.prints: list[str] = []
        self.races: list[Race] = []
        self.notes: list[str] = []
        self.collect_races = False
        self.index: dict[str, Any] = {}
        self.has_roles = self.is_asynchronous = False
        self.reset(())

    def reset(self, block: tuple[int, ...]) -> None:
        """Fresh shared memory, barriers and clocks for a block."""
        self.block = block
        self.meetings: dict[Any, Any] = {}
        self.transfers: list[Any] = []
        self.contexts = [Context(self, "the block", 0, self.threads)]
        self.tracker: Tracker | None = None
        self.pool: Pool | None = None
        self.pooled: dict[int, PoolBuffer] = {}
        if self.is_free:
            self._plan_pool()

    def _plan_pool(self) -> None:
        shared = [
            (number, spec, self.program.fixed_shapes[number])
            for number, spec in enumerate(self.program.allocations)
            if spec.scope.startswith("shared") and spec.scope != "shared.barrier"
        ]
        end, grain, places = 0, 16, {}
        for number, spec, shape in shared:
            size = shared_bytes(spec, shape)
            if spec.offset is not None:
                places[number] = int(spec.offset)
                end = max(end, int(spec.offset) + size)
            grain = min(grain, np.dtype(numpy_type(spec.dtype)).itemsize)
        for number, spec, shape in shared:
            if number not in places:
                places[number] = -(-end // _ALIGN) * _ALIGN
                end = places[number] + shared_bytes(spec, shape)
        for number in places:
            grain = math.gcd(grain, places[number]) or grain
        if self.threads > 1:
            self.tracker = Tracker(self.threads, 2 + self.threads // 128, -(-end // grain) + 1)
        self.pool = Pool(-(-end // 16) * 16 + 16, grain, self.tracker)
        for number, spec, shape in shared:
            # A buffer of one dimension is addressed by offsets already; tiles that rows take whole keep their
            # shape.
            layout = "" if len(shape or ()) == 1 else spec.layout
            self.pooled[number] = PoolBuffer(
                self.pool, spec.name, spec.dtype, shape, layout, places[number], spec.span
            )

    # ---- what contexts ask for

    def span(self, at: int) -> Any:
        """The span of a statement number."""
        return self.program.spans[at] if at < len(self.program.spans) else None

    def block_text(self) -> str:
        """The block's index, for messages; empty for a grid of one."""
        return "" if all(i == 0 for i in self.block) else str(self.block)

    def column_name(self, column: int) -> str:
        """The accessor of a clock column, in words."""
        if column < self.threads:
            return f"thread {column}"
        agent = column - self.threads
        return "the TMA engine" if agent == 0 else f"wgmma of warpgroup {agent - 1}"

    def note_race(self, race: Race) -> None:
        """Keep a race when races are collected; the same pair of places is kept once."""
        known = {(r.first.place, r.second.place) for r in self.races}
        if (race.first.place, race.second.place) not in known:
            self.races.append(race)

    def in_flight(self, buffer) -> Any:
        """An asynchronous operation under way that writes this buffer, if there is one."""
        root = getattr(buffer, "root", buffer)
        under_way = [
            op for context in self.contexts for queue in context.queues.values() for op in queue.under_way()
        ]
        for op in itertools.chain(under_way, (t for t in self.transfers if not t.landed)):
            if getattr(op.target, "root", op.target) is root:
                return op
        return None

    def tick(self, context) -> None:
        """Count a step; raise TL604 when there are too many."""
        self.steps += 1
        if self.steps > self.limit:
            raise fault("TL604", f"no end after {self.limit} steps{context.iteration_text()}", context.span())

    def tile(self, context, op: str, operands: list[Any], config: dict[str, Any], mask):
        """Execute a tile operation."""
        self.tick(context)
        return _OPS[op](context, operands, config, mask)

    def allocate(self, context, number: int, shape: tuple[int, ...]):
        """The buffer of an allocation: a new one, or for the pool its fixed place."""
        spec = self.program.allocations[number]
        if spec.scope == "shared.barrier":
            return self._barriers(spec, math.prod(shape))
        if spec.scope in ("local", "local.var"):
            return LocalBuffer(spec.name, spec.dtype, shape, context.count, spec.layout, spec.span)
        if number in self.pooled:
            return self.pooled[number]
        data = np.zeros(shape, numpy_type(spec.dtype))
        return LogicalBuffer(
            spec.name, spec.dtype, data, tracked=True, lenient=not self.is_free, span=spec.span
        )

    def _barriers(self, spec, slots: int) -> BarrierArray:
        users = self.program.channel_groups.get(spec.name, {})
        # A role that waits but never releases is still a consumer: the producer must not overtake it.
        commits = users.get("commit", set()) | users.get("acquire", set())
        releases = users.get("wait", set()) | users.get("release", set())
        producers = spec.annotations.get("tl.producers") or max(len(commits), 1)
        consumers = spec.annotations.get("tl.consumers") or max(len(releases), 1)
        return BarrierArray(spec.name, slots, int(producers), int(consumers), bool(users), spec.span)

    def report(self, seconds: float, blocks: int) -> Report:
        """What was found."""
        return Report(
            steps=self.steps,
            races=tuple(self.races),
            prints=tuple(self.prints),
            notes=tuple(self.notes),
            seconds=seconds,
            blocks=blocks,
            issued=self.issued,
            has_roles=self.has_roles,
            is_asynchronous=self.is_asynchronous,
        )

    # ---- running

    def run(self, generator: Any) -> None:
        """Run the block to its end."""
        for wait in generator:
            while not wait.ready():
                if not self._progress(wait):
                    raise deadlock([wait])
        for context in self.contexts:
            for kind in ("cp.async", "wgmma"):
                left = len(context.queues[kind].under_way())
                if left:
                    self.notes.append(f"{context.name} never waits for {left} {kind} operations")
            for op in context.queues["bulk"].under_way():
                raise fault(
                    "TL603",
                    f"the block ends while {op.name} still reads its shared memory",
                    op.span,
                    help='wait for the stores first: T.wait_group(kind="bulk", pending=0)',
                )

    def _progress(self, wait: Wait) -> bool:
        return force_one(self, wait.leaves())


def shared_bytes(spec, shape: tuple[int, ...] | None) -> int:
    """The bytes that a shared buffer takes, its layout's gaps included."""
    if shape is None:
        raise fault("TL104", f"the shape of the shared buffer {spec.name} is not known", spec.span)
    table = offsets_of("" if len(shape) == 1 else spec.layout, shape)
    return (int(table.max()) + 1 if table.size else 0) * np.dtype(numpy_type(spec.dtype)).itemsize


# ---- arguments


def _arguments(f: n.PrimFunc, args: Any, scalars: Mapping[str, Any]) -> list[Any]:
    names = [str(p.name) for p in f.params]
    if isinstance(args, Mapping):
        given = {**args, **scalars}
    else:
        left = [name for name in names if name not in scalars]
        if len(args) != len(left):
            raise TileError(
                "TL501", f"{f.attrs['global_symbol']} takes {len(left)} arguments, not {len(args)}"
            )
        given = {**dict(zip(left, args, strict=True)), **scalars}
    missing = [name for name in names if name not in given]
    if missing:
        raise TileError("TL501", f"no argument is given for {', '.join(missing)}")
    return [given[name] for name in names]


def _variables(
    f: n.PrimFunc, program: Program, values: Sequence[Any], scalars: Mapping[str, Any]
) -> list[Any]:
    """The values of the scalar parameters and of the variables in the parameters' shapes and strides."""
    known: dict[Any, Any] = {}
    for param, value in zip(f.params, values, strict=True):
        if not is_buffer(param):
            known[param] = value
            continue
        shape = np.shape(value)
        if len(shape) == len(param.shape):
            known.update({d: s for d, s in zip(param.shape, shape, strict=True) if isinstance(d, n.Var)})
        steps = [s // value.itemsize for s in value.strides]
        if len(steps) == len(param.strides):
            known.update({d: s for d, s in zip(param.strides, steps, strict=True) if isinstance(d, n.Var)})
    out = []
    for var in program.free:
        value = known.get(var, scalars.get(str(var.name)))
        if value is None:
            raise TileError("TL501", f"nothing gives the value of {var.name}")
        out.append(value)
    return out


def _flat(array: np.ndarray) -> np.ndarray:
    """The memory of an array as one dimension, strides included."""
    if array.size == 0:
        return array.reshape(-1)
    reach = 1 + sum(
        (size - 1) * (step // array.itemsize) for size, step in zip(array.shape, array.strides, strict=True)
    )
    return np.lib.stride_tricks.as_strided(array, (reach,), (array.itemsize,))


def _global(param: Any, array: np.ndarray, shape: tuple[int, ...], lenient: bool) -> LogicalBuffer:
    name, dtype = str(param.name), dtype_of(param)
    kind = np.dtype(numpy_type(dtype))
    if array.dtype != kind:
        if array.dtype.itemsize != kind.itemsize:
            raise TileError("TL503", f"{name} is {array.dtype}, the kernel takes {dtype}")
        array = array.view(kind)
    if len(shape) == 1 and array.shape != tuple(shape):
        array = _flat(array)
    elif tuple(array.shape) != tuple(shape):
        raise TileError(
            "TL502", f"{name} has the shape {tuple(array.shape)}, the kernel takes {tuple(shape)}"
        )
    return LogicalBuffer(name, dtype, array, tracked=False, lenient=lenient)


# ---- the entry


def emulate(
    func: n.PrimFunc,
    args: Mapping[str, Any] | Sequence[Any],
    *,
    mode: str = "late",
    seed: int = 0,
    grid: Iterable[tuple[int, ...]] | None = None,
    stage: str | None = None,
    max_steps: int = 10_000_000,
    warp: int | None = None,
    collect_races: bool = False,
    **scalars: Any,
) -> Report:
    """Run a function at any stage on NumPy arrays, which are written in place.

    `args` are by name or in the parameters' order, keywords give scalars (and dimensions that no shape
    gives). `mode` says when asynchronous rows land at `synced` and `device`: "late" or "early". `seed`
    chooses among interleavings of roles, `grid` the blocks (x, y, z) to run. Raises TL601 to TL605 for
    faults of the kernel.
    """
    started = time.perf_counter()
    if mode not in ("late", "early"):
        raise ValueError(f"mode must be 'late' or 'early', not {mode!r}")
    stage = stage or b.stage_of(func)
    program = compile_function(func, stage)
    values = _arguments(func, args, scalars)
    free = _variables(func, program, values, scalars)
    extents, shapes = program.launch(free)
    lenient = stage not in FREE
    buffers = [
        _global(param, np.asarray(value), shape, lenient) if is_buffer(param) else value
        for param, value, shape in zip(func.params, values, shapes, strict=True)
    ]
    sizes = [int(extents.get(f"threadIdx.{axis}", 1)) for axis in "xyz"]
    blocks = [int(extents.get(f"blockIdx.{axis}", 1)) for axis in "xyz"]
    machine = Machine(program, stage, mode, seed, math.prod(sizes), warp or _warp_of(func), max_steps)
    machine.collect_races = collect_races
    lanes = np.arange(machine.threads)
    done = 0
    with np.errstate(all="ignore"):
        for block in grid if grid is not None else itertools.product(*map(range, blocks)):
            place = (*block, 0, 0)[:3]
            machine.reset(place)
            machine.index = {f"blockIdx.{axis}": place[i] for i, axis in enumerate("xyz")}
            for i, axis in enumerate("xyz"):
                machine.index[f"threadIdx.{axis}"] = lanes // math.prod(sizes[:i]) % sizes[i]
            machine.run(program.run(machine.contexts[0], buffers, free))
            done += 1
    return machine.report(time.perf_counter() - started, done)


def _warp_of(func: n.PrimFunc) -> int:
    """64 lanes for AMD targets, else 32."""
    target = str(func.attrs.get("tl.target", "")) if func.attrs is not None else ""
    return 64 if "gfx" in target or target.startswith("hip") else 32
