"""What a function says of its channels: slots, users, tiles carried, and the bytes that a slot receives."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilelab.errors import TileError
from tilelab.hardware import Completes, row
from tilelab.ir import build as b
from tilelab.ir.nodes import For, PrimFunc, Region, SeqStmt, Stmt, Store, TileCall, Var, While
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.spans import place_of
from tilelab.ir.statements import children, each_statement, flatten
from tilelab.ir.tile_ops import op_of, writes
from tilelab.passes.base import threads_of

__all__ = ["WARP", "Channel", "channel_of", "clash", "find_channels", "is_load"]

WARP = 32  # threads; only chips of this warp width have mbarriers
_OPERATIONS = ("acquire", "commit", "wait", "release")
Group = tuple[str, int, int]


@dataclass
class Channel:
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


def is_load(node: Stmt) -> bool:
    """Whether the statement is a load that an mbarrier will hear of."""
    if not isinstance(node, TileCall) or op_of(node).name != "issue":
        return False
    return row(str(b.plain(node.config)["row"])).completes is Completes.MBARRIER


def clash(text: str, node: Stmt) -> TileError:
    """TL304 at a statement."""
    where = place_of(node.span)
    return TileError("TL304", text, places=(where,) if where else ())


def _bytes_of(node: Stmt, channel: Var) -> int:
    """The bytes that the loads inside a statement bring to a channel's slot."""
    if isinstance(node, TileCall):
        if not is_load(node) or not node.args[2].source.same_as(channel):
            return 0
        return row(str(b.plain(node.config)["row"])).bytes
    total = sum(_bytes_of(child, channel) for child in children(node))
    if not total or not isinstance(node, For | While):
        return total
    trips = b.as_int(node.extent) if isinstance(node, For) else None
    if trips is None:
        raise clash("the bytes of a slot must be known: its loads stand in a loop of unknown length", node)
    return trips * total


def _read_brackets(f: PrimFunc, channels: dict[Var, Channel]) -> None:
    """Find each acquire's commit in the same sequence, and the bytes loaded between the two."""
    for node in each_statement(f.body):
        open_ones: dict[Var, tuple[TileCall, int]] = {}
        for part in flatten(node) if isinstance(node, SeqStmt) else [node]:
            buffer = channel_of(part, channels)
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
            raise clash(f"the slot acquired of {name} is not committed in the same sequence", acquire)


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


def channel_of(node: Stmt, channels: dict[Var, Channel]) -> Var | None:
    """The channel that a channel operation is about."""
    if not isinstance(node, TileCall) or op_of(node).name not in _OPERATIONS:
        return None
    source = node.args[0].source
    return source if source in channels else None


def find_channels(f: PrimFunc) -> dict[Var, Channel]:
    """The channels that mbarriers carry. Raises TL304 where acquire and commit do not match."""
    channels: dict[Var, Channel] = {}
    for a in allocations(f):
        if b.plain(a.annotations).get("tl.transport") != "mbarrier":
            continue
        name, depth = str(a.buffer.name), b.as_int(a.buffer.shape[0]) or 1
        full, empty = (
            b.buffer(f"{name}_{what}", (depth,), "uint64", "shared.barrier") for what in ("full", "empty")
        )
        channels[a.buffer] = Channel(name, depth, full, empty)

    def note(node: Stmt, scope: Scope) -> None:
        if (buffer := channel_of(node, channels)) is not None:
            group = scope.group or ("block", 0, threads_of(f))
            users = channels[buffer].users.setdefault(op_of(node).name, [])
            if group not in users:
                users.append(group)

    map_scoped(f, note)
    _read_brackets(f, channels)
    return channels
