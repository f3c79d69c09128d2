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

from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import TileError
from tilelab.hardware import Completes, row
from tilelab.ir import build as b
from tilelab.ir.nodes import (
    AllocBuffer,
    AttrStmt,
    Bind,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Region,
    SeqStmt,
    Stmt,
    Store,
    TileCall,
    Var,
    While,
    same_structure,
)
from tilelab.ir.rewrite import collect, substitute
from tilelab.ir.scoped import Scope, allocations, block_body, map_scoped, with_block_body
from tilelab.ir.spans import at, place_of
from tilelab.ir.statements import children, each_statement, flatten, seq, with_children
from tilelab.ir.tile_ops import op_of, writes
from tilelab.passes.base import Pass, because, decide, threads_of
from tilelab.passes.share_out import elected, thread_number

__all__ = ["lower_channels"]

WARP = 32  # threads; only chips of this warp width have mbarriers
_OPERATIONS = ("acquire", "commit", "wait", "release")
Group = tuple[str, int, int]


@dataclass
class _Channel:
    """A channel being lowered: its two barriers, the tiles that it carries, and who does what with it."""

    name: str
    depth: int
    full: Var
    empty: Var
    tiles: list[Var] = field(default_factory=list)
    users: dict[str, list[Group]] = field(default_factory=dict)
    bytes: dict[TileCall, int] = field(default_factory=dict)
    by_hardware: bool = False

    def warps(self, operation: str) -> int:
        """The warps of the groups that execute an operation."""
        return sum(-(-count // WARP) for _, _, count in self.users.get(operation, ()))


def _is_load(node: Stmt) -> bool:
    if not isinstance(node, TileCall) or op_of(node).name != "issue":
        return False
    return row(str(b.plain(node.config)["row"])).completes is Completes.MBARRIER


def _clash(text: str, node: Stmt) -> TileError:
    where = place_of(node.span)
    return TileError("TL304", text, places=(where,) if where else ())


def _bytes_of(node: Stmt, channel: Var) -> int:
    """The bytes that the loads inside a statement bring to a channel's slot."""
    if isinstance(node, TileCall):
        if not _is_load(node) or not node.args[2].source.same_as(channel):
            return 0
        return row(str(b.plain(node.config)["row"])).bytes
    total = sum(_bytes_of(child, channel) for child in children(node))
    if not total or not isinstance(node, For | While):
        return total
    trips = b.as_int(node.extent) if isinstance(node, For) else None
    if trips is None:
        raise _clash("the bytes of a slot must be known: its loads stand in a loop of unknown length", node)
    return trips * total


def _read_brackets(f: PrimFunc, channels: dict[Var, _Channel]) -> None:
    """Find each acquire's commit in the same sequence, and the bytes loaded between the two."""
    for node in each_statement(f.body):
        open_ones: dict[Var, tuple[TileCall, int]] = {}
        for part in flatten(node) if isinstance(node, SeqStmt) else [node]:
            buffer = _channel_of(part, channels)
            name = op_of(part).name if buffer is not None else ""
            if name == "acquire":
                open_ones[buffer] = (part, 0)
            elif name == "commit" and buffer in open_ones:
                acquire, total = open_ones.pop(buffer)
                channels[buffer].bytes |= {acquire: total, part: total}
                channels[buffer].by_hardware |= bool(total)
            else:
                for key, (acquire, total) in open_ones.items():
                    open_ones[key] = (acquire, total + _bytes_of(part, key))
                    channels[key].tiles += [t for t in _written(part) if t not in channels[key].tiles]
        if open_ones and isinstance(node, SeqStmt):
            acquire, _ = next(iter(open_ones.values()))
            name = acquire.args[0].source.name
            raise _clash(f"the slot acquired of {name} is not committed in the same sequence", acquire)


def _written(node: Stmt) -> list[Var]:
    """The shared tiles that a statement writes."""
    found: list[Var] = []
    for part in each_statement(node):
        if isinstance(part, Store):
            found.append(part.buffer)
        elif isinstance(part, TileCall):
            regions = part.args[:1] if op_of(part).name == "issue" else writes(part)
            found += [r.source for r in regions if isinstance(r, Region)]
    return [t for t in found if str(t.scope()) == "shared.dyn"]


def _channel_of(node: Stmt, channels: dict[Var, _Channel]) -> Var | None:
    """The channel that a channel operation is about."""
    if not isinstance(node, TileCall) or op_of(node).name not in _OPERATIONS:
        return None
    source = node.args[0].source
    return source if source in channels else None


def _find(f: PrimFunc) -> dict[Var, _Channel]:
    channels: dict[Var, _Channel] = {}
    for a in allocations(f):
        if b.plain(a.annotations).get("tl.transport") != "mbarrier":
            continue
        name, depth = str(a.buffer.name), b.as_int(a.buffer.shape[0]) or 1
        full, empty = (
            b.buffer(f"{name}_{what}", (depth,), "uint64", "shared.barrier") for what in ("full", "empty")
        )
        channels[a.buffer] = _Channel(name, depth, full, empty)

    def note(node: Stmt, scope: Scope) -> None:
        if (buffer := _channel_of(node, channels)) is not None:
            group = scope.group or ("block", 0, threads_of(f))
            users = channels[buffer].users.setdefault(op_of(node).name, [])
            if group not in users:
                users.append(group)

    map_scoped(f, note)
    _read_brackets(f, channels)
    return channels


class _Lowering:
    """The walk that replaces the channel operations of one function."""

    def __init__(self, f: PrimFunc, channels: dict[Var, _Channel]) -> None:
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
        buffer = _channel_of(node, self.channels)
        if buffer is not None:
            return getattr(self, f"_{op_of(node).name}")(node, self.channels[buffer], scope)
        if _is_load(node) and node.args[2].source in self.channels:
            return substitute(node, {node.args[2].source: self.channels[node.args[2].source].full})
        return None

    def _acquire(self, node: TileCall, channel: _Channel, scope: Scope) -> Stmt:
        wait = b.tile("mbarrier_wait", _slot(channel.empty, node), node.args[1])
        announced = channel.bytes[node]
        if not announced:
            return wait
        expect = b.tile("mbarrier_expect", _slot(channel.full, node), b.const(announced))
        return b.if_(elected(self.f, scope), seq(wait, expect))

    def _commit(self, node: TileCall, channel: _Channel, scope: Scope) -> Stmt:
        if channel.bytes.get(node):
            return seq()
        if channel.by_hardware:
            raise _clash(
                f"{channel.name} is filled by the hardware in one place and by threads in another", node
            )
        return self._arrive(channel.full, node, channel, scope, "written")

    def _wait(self, node: TileCall, channel: _Channel, scope: Scope) -> Stmt:
        return b.tile("mbarrier_wait", _slot(channel.full, node), node.args[1])

    def _release(self, node: TileCall, channel: _Channel, scope: Scope) -> Stmt:
        return self._arrive(channel.empty, node, channel, scope, "read")

    def _arrive(self, barrier: Var, node: TileCall, channel: _Channel, scope: Scope, what: str) -> Stmt:
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


# ---- what one thread does


def _merge_guards(node: Stmt) -> Stmt:
    """Neighbouring branches under one condition become one."""
    kids = children(node)
    node = with_children(node, tuple(_merge_guards(k) for k in kids)) if kids else node
    if not isinstance(node, SeqStmt):
        return node
    out: list[Stmt] = []
    for part in flatten(node):
        last = out[-1] if out else None
        if _is_guard(part) and _is_guard(last) and same_structure(part.condition, last.condition):
            out[-1] = IfThenElse(last.condition, seq(last.then_case, part.then_case), None, last.span)
        else:
            out.append(part)
    return seq(*out, span=node.span)


def _is_guard(node: Stmt | None) -> bool:
    return isinstance(node, IfThenElse) and node.else_case is None


def _without_guard(node: Stmt, condition: Any) -> Stmt | None:
    """The statement as the condition's thread does it; None where other threads have work of their own."""
    if _is_guard(node) and same_structure(node.condition, condition):
        return node.then_case
    kids = children(node)
    if kids:
        inner = [_without_guard(k, condition) for k in kids]
        return None if any(k is None for k in inner) else with_children(node, tuple(inner))
    buffer = node.buffer if isinstance(node, AllocBuffer | Store) else None
    is_scalar = isinstance(node, Bind) or (buffer is not None and str(buffer.scope()) == "local.var")
    return node if is_scalar else None


def _by_one_thread(f: PrimFunc) -> PrimFunc:
    def role(node: Stmt, scope: Scope) -> Stmt | None:
        if b.group_of(node) is None:
            return None
        return _guarded_whole(node, elected(f, scope.inside(node)))

    return map_scoped(f, role)


def _guarded_whole(node: Stmt, condition: Any) -> Stmt | None:
    """A role's scopes with one branch around all inside, where only one thread has work in it."""
    if isinstance(node.body, AttrStmt):
        inner = _guarded_whole(node.body, condition)
        return None if inner is None else with_children(node, (inner,))
    alone = _without_guard(node.body, condition)
    if alone is None or not any(_is_guard(s) for s in each_statement(node.body)):
        return None
    with at(node.span):
        return with_children(node, (b.if_(condition, alone),))


def run(f: PrimFunc) -> PrimFunc:
    channels = _find(f)
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
    return _by_one_thread(new.with_body(_merge_guards(new.body)))


lower_channels = Pass("lower_channels", run, needs="threaded", gives="threaded")
