"""Turn channels carried by mbarriers into those: for each slot one that it is full, one that it is empty.

A producer that loads by the tensor memory accelerator waits for the slot, announces the bytes of all loads up
to the commit, and issues them, all from one thread; one that writes by itself arrives at the commit with one
thread of each warp. Consumers wait until the slot is full and give it back with one arrival a warp. A role of
which only one thread does anything is left to that thread. One thread sets the barriers up, before the roles
part. Tiles that are written between acquire and commit are marked as carried by the channel (`tl.channel`):
it orders who uses them.

Before (cuda:sm_90a, threads=160):

    c = T.alloc_buffer((2,), "uint64", scope="shared.barrier", annotations={"tl.transport": "mbarrier"})
    S = T.alloc_buffer((2, 8), scope="shared.dyn", annotations={"tl.layout": "16:1"})
    with T.attr({"tl.group": "producer:0:128"}):
        for k in T.serial(2):
            T.acquire(c[k], 1)
            if tx == 0:
                T.issue(S[k, 0:8], A[k * 8:k * 8 + 8], c[k], row="tma.load.2d.1x8.float32.s0")
            T.commit(c[k])
    with T.attr({"tl.group": "consumer:128:32"}):
        for k in T.serial(2):
            T.wait(c[k], 0)
            B[k * 32 + tx - 128] = S[k, tx % 8]
            T.release(c[k])

After:

    c_full = T.alloc_buffer((2,), "uint64", scope="shared.barrier")
    c_empty = T.alloc_buffer((2,), "uint64", scope="shared.barrier")
    S = T.alloc_buffer((2, 8), scope="shared.dyn", annotations={"tl.channel": "c", "tl.layout": "16:1"})
    if tx == 0:
        for slot in T.unroll(2):
            T.mbarrier_init(c_full[slot], 1)
            T.mbarrier_init(c_empty[slot], 1)
        T.fence(kind="mbarrier_init")
    T.barrier(why="the roles' mbarriers are set up")
    with T.attr({"tl.group": "producer:0:128"}):
        if tx == 0:
            for k in T.serial(2):
                T.mbarrier_wait(c_empty[k], 1)
                T.mbarrier_expect(c_full[k], 32)
                T.issue(S[k, 0:8], A[k * 8:k * 8 + 8], c_full[k], row="tma.load.2d.1x8.float32.s0")
    with T.attr({"tl.group": "consumer:128:32"}):
        for k in T.serial(2):
            T.mbarrier_wait(c_full[k], 0)
            B[k * 32 + tx - 128] = S[k, tx % 8]
            T.barrier(threads=32, why="S: read by all lanes before the slot is given back")
            if tx % 32 == 0:
                T.mbarrier_arrive(c_empty[k])
"""

from __future__ import annotations

from tilelab.hardware import row
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, Load, PrimFunc, Region, Stmt, Store, TileCall, Var
from tilelab.ir.rewrite import collect, substitute
from tilelab.ir.scoped import Scope, block_body, map_scoped, with_block_body
from tilelab.ir.spans import at
from tilelab.ir.statements import children, each_statement, flatten, seq
from tilelab.ir.tile_ops import op_of
from tilelab.passes.base import Pass, because, decide
from tilelab.passes.channels import WARP, Channel, channel_of, clash, find_channels, is_load
from tilelab.passes.one_thread import by_one_thread, merge_guards
from tilelab.passes.share_out import elected, thread_number

__all__ = ["lower_channels"]


class _Lowering:
    """The walk that replaces the channel operations of one function."""

    def __init__(self, f: PrimFunc, channels: dict[Var, Channel]) -> None:
        self.f, self.channels = f, channels
        self.role: Stmt = f.body

    def rule(self, node: Stmt, scope: Scope) -> Stmt | None:
        """See `map_scoped`."""
        if isinstance(node, AllocBuffer) and node.buffer in self.channels:
            channel = self.channels[node.buffer]
            return seq(b.alloc(channel.full), b.alloc(channel.empty))
        if isinstance(node, AllocBuffer):
            names = [c.name for c in self.channels.values() if node.buffer in c.tiles]
            return b.annotated(node, channel=names[0]) if names else None
        if b.group_of(node) is not None:
            self.role = node
        if not isinstance(node, TileCall):
            return None
        buffer = channel_of(node, self.channels)
        if buffer is not None:
            return getattr(self, f"_{op_of(node).name}")(node, self.channels[buffer], scope)
        if is_load(node) and node.args[2].source in self.channels:
            return substitute(node, {node.args[2].source: self.channels[node.args[2].source].full})
        return None

    def _acquire(self, node: TileCall, channel: Channel, scope: Scope) -> Stmt:
        wait = b.tile("mbarrier_wait", _slot(channel.empty, node), node.args[1])
        announced = channel.bytes[node]
        if not announced:
            return wait
        expect = b.tile("mbarrier_expect", _slot(channel.full, node), b.const(announced))
        return b.if_(elected(self.f, scope), seq(wait, expect))

    def _commit(self, node: TileCall, channel: Channel, scope: Scope) -> Stmt:
        if channel.bytes.get(node):
            return seq()
        if channel.by_hardware:
            raise clash(
                f"{channel.name} is filled by the hardware in one place and by threads in another", node
            )
        return self._arrive(channel.full, node, channel, scope, "written")

    def _wait(self, node: TileCall, channel: Channel, scope: Scope) -> Stmt:
        return b.tile("mbarrier_wait", _slot(channel.full, node), node.args[1])

    def _release(self, node: TileCall, channel: Channel, scope: Scope) -> Stmt:
        return self._arrive(channel.empty, node, channel, scope, "read")

    def _arrive(self, barrier: Var, node: TileCall, channel: Channel, scope: Scope, what: str) -> Stmt:
        """One arrival a warp, after what its lanes did to the slot by themselves."""
        first = scope.bounds.simplify(b.floormod(thread_number(self.f, scope), WARP)) == 0
        arrive = b.if_(first, b.tile("mbarrier_arrive", _slot(barrier, node)))
        names = [str(t.name) for t in channel.tiles if _lanes_touch(self.role, t)]
        if not names:
            return arrive
        after = "given back" if what == "read" else "handed over"
        why = f"{', '.join(names)}: {what} by all lanes before the slot is {after}"
        return seq(b.tile("barrier", threads=WARP, why=why), arrive)

    def setup(self) -> Stmt:
        """One thread initialises the barriers; all wait for it."""
        parts: list[Stmt] = []
        for channel in self.channels.values():
            slot = b.var("slot")
            # Of hardware's loads one thread a role arrives, with their bytes; of threads' writes one a warp.
            loaders = len(channel.users.get("commit", ()))
            arrivals = (loaders if channel.by_hardware else channel.warps("commit"), channel.warps("release"))
            barriers = zip((channel.full, channel.empty), arrivals, strict=True)
            inits = [
                b.tile("mbarrier_init", b.region(x, [(slot, 1)]), b.const(count)) for x, count in barriers
            ]
            parts.append(b.for_(slot, channel.depth, seq(*inits), b.UNROLLED))
            sizes = {n for n in channel.bytes.values() if n}
            loads = f", {' or '.join(map(str, sorted(sizes)))} bytes a slot" if sizes else ""
            decide(f"{channel.name}: {channel.depth} slots, {arrivals[0]} and {arrivals[1]} arrivals{loads}")
        return seq(
            b.if_(thread_number(self.f) == 0, seq(*parts, b.tile("fence", kind="mbarrier_init"))),
            b.tile("barrier", why="the roles' mbarriers are set up"),
        )


def _slot(barrier: Var, node: TileCall) -> Region:
    (only,) = node.args[0].region
    return b.region(barrier, [(only.min, 1)])


def _lanes_touch(role: Stmt, tile: Var) -> bool:
    """Whether threads of a role access a tile by themselves, rather than through the asynchronous proxy."""
    for node in each_statement(role):
        if isinstance(node, TileCall) and op_of(node).name == "issue":
            by_hardware = row(str(b.plain(node.config)["row"])).proxy == "async"
            if not by_hardware and any(isinstance(a, Region) and a.source.same_as(tile) for a in node.args):
                return True
        elif isinstance(node, Store) and node.buffer.same_as(tile):
            return True
        if not children(node) and any(x.source.same_as(tile) for x in collect(node, Load)):
            return True
    return False


def run(f: PrimFunc) -> PrimFunc:
    channels = find_channels(f)
    if not channels:
        because("no channel is carried by mbarriers")
        return f
    lowering = _Lowering(f, channels)
    new = map_scoped(f, lowering.rule)
    parts = flatten(block_body(new))
    first = next(i for i, part in enumerate(parts) if not isinstance(part, AllocBuffer))
    with at(None):
        setup = lowering.setup()
    new = with_block_body(new, seq(*parts[:first], setup, *parts[first:]))
    return by_one_thread(new.with_body(merge_guards(new.body)))


lower_channels = Pass("lower_channels", run, needs="threaded", gives="threaded")
