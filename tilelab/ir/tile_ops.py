"""The operations that tilelab adds to TIR: one row an operation, registered with TVM when this module is
imported.

They are carried by `TilePrimitiveCall` nodes, print as `T.copy(A[...], S[...], row="...")` and survive TVM's
passes. Operands are regions (or, where said, expressions); everything else is a keyword in `config`.
"""

from __future__ import annotations

from dataclasses import dataclass

import tvm_ffi
from tvm.ir import Op

from tilelab.ir.nodes import Region, TileCall

__all__ = ["OPS", "Operand", "TileOp", "op_of", "operand", "reads", "tile_op", "writes"]

READ, WRITE, UPDATE, VALUE = "read", "write", "update", "value"


@dataclass(frozen=True)
class Operand:
    """One operand: its name and whether the region is read, written, updated, or the operand is a plain
    value.
    """

    name: str
    access: str


@dataclass(frozen=True)
class TileOp:
    """A tile operation: its name, operands in order, the keywords it may carry, and what it means.

    `stages` are those in which it may stand. The last operand may repeat when `variadic`.
    """

    name: str
    operands: tuple[Operand, ...]
    config: tuple[str, ...]
    stages: tuple[str, ...]
    doc: str
    variadic: bool = False


def _operands(**access: str) -> tuple[Operand, ...]:
    return tuple(Operand(name, kind) for name, kind in access.items())


TILED = ("tile", "laid_out", "threaded")
LOW = ("tile", "laid_out", "threaded", "synced", "device")
CHANNELED = ("laid_out", "threaded")

OPS: tuple[TileOp, ...] = (
    # ---- whole tiles; all threads of the group take part
    TileOp(
        "copy",
        _operands(src=READ, dst=WRITE),
        ("coalesced_width", "disable_tma", "eviction_policy", "row", "vector", "channel", "major"),
        TILED,
        "dst = src, converted to dst's dtype; elements of src outside its buffer read as zero, "
        "elements of dst outside its buffer are not written",
    ),
    TileOp(
        "gemm",
        _operands(A=READ, B=READ, C=UPDATE),
        ("transpose_A", "transpose_B", "policy", "clear_accum", "row", "warps", "repeats", "replication"),
        TILED,
        "C += op(A) @ op(B), accumulated in C's dtype; with clear_accum C = op(A) @ op(B)",
    ),
    TileOp("fill", _operands(dst=WRITE, value=VALUE), ("row",), TILED, "every element of dst = value"),
    TileOp(
        "reduce",
        _operands(src=READ, dst=UPDATE),
        ("kind", "dim", "clear", "nan_propagate"),
        TILED,
        "dst = reduction of src over axis dim, which dst lacks or has with extent 1; kind is sum, max, min, "
        "abssum, absmax, bitand, bitor or bitxor; with clear=False the old dst takes part",
    ),
    TileOp(
        "cumsum",
        _operands(src=READ, dst=WRITE),
        ("dim", "reverse"),
        TILED,
        "dst = running sums of src along axis dim",
    ),
    TileOp(
        "atomic_add",
        _operands(dst=UPDATE, value=VALUE),
        ("memory_order",),
        LOW,
        "dst += value, each element atomically; value is a region of dst's shape or a scalar",
    ),
    TileOp("print", _operands(value=VALUE), ("message",), LOW, "print a value from one thread"),
    # ---- channels: groups of threads hand tiles over through a ring of slots
    TileOp(
        "acquire",
        _operands(channel=UPDATE, phase=VALUE),
        ("name",),
        CHANNELED,
        "a producer waits until the slot is free: until the consumers of the round `phase` have released it",
    ),
    TileOp(
        "commit",
        _operands(channel=UPDATE),
        ("name", "bytes"),
        CHANNELED,
        "a producer says that its writes to the slot, asynchronous ones included, are all issued",
    ),
    TileOp(
        "wait",
        _operands(channel=UPDATE, phase=VALUE),
        ("name", "pending"),
        CHANNELED,
        "a consumer waits until what was committed to the slot landed; `pending` newer commits may be open",
    ),
    TileOp("release", _operands(channel=UPDATE), ("name",), CHANNELED, "a consumer gives the slot back"),
    # ---- one thread's program
    TileOp(
        "issue",
        _operands(),
        ("row", "clear", "policy", "signature"),
        ("laid_out", "threaded", "synced", "device"),
        "execute the hardware row on the operands in its order, destination first; a predicate may follow",
        variadic=True,
    ),
    TileOp(
        "barrier",
        _operands(),
        ("id", "threads", "why"),
        ("tile", "threaded", "synced", "device"),
        "all threads of the group wait for one another; earlier shared and global accesses are seen after it",
    ),
    TileOp(
        "commit_group",
        _operands(),
        ("kind",),
        ("threaded", "synced", "device"),
        "close a group of asynchronous operations: kind is cp.async, wgmma or bulk",
    ),
    TileOp(
        "wait_group",
        _operands(),
        ("kind", "pending", "why"),
        ("threaded", "synced", "device"),
        "wait until at most `pending` groups of the kind are open; bulk.read: until shared memory is read",
    ),
    TileOp(
        "fence",
        _operands(),
        ("kind", "why"),
        ("threaded", "synced", "device"),
        "order memory accesses: kind is proxy.async, mbarrier_init, or wgmma",
    ),
    TileOp(
        "mbarrier_init",
        _operands(barrier=UPDATE, count=VALUE),
        (),
        LOW,
        "set the number of arrivals a phase takes",
    ),
    TileOp(
        "mbarrier_expect",
        _operands(barrier=UPDATE, bytes=VALUE),
        (),
        LOW,
        "arrive once and raise the bytes that the phase waits for",
    ),
    TileOp("mbarrier_arrive", _operands(barrier=UPDATE), (), LOW, "arrive once"),
    TileOp(
        "mbarrier_wait",
        _operands(barrier=READ, phase=VALUE),
        (),
        LOW,
        "wait until the phase with this parity has completed",
    ),
    TileOp("set_max_registers", _operands(), ("count", "increase"), LOW, "move registers between warpgroups"),
)

_BY_NAME = {op.name: op for op in OPS}
_PREFIX = "tirx.tile.tl_"


def _register(op: TileOp) -> Op:
    tvm_ffi.get_global_func("ir.RegisterOp")(_PREFIX + op.name, op.doc)
    node = Op.get(_PREFIX + op.name)
    node.set_attr("TIRxOpCategory", "tile_primitive")
    node.set_attr("TScriptPrinterName", "tl_" + op.name)
    node.set_attr("TCallEffectKind", 3)  # 3: it updates state, so that no pass drops or moves it
    return node


_NODES = {op.name: _register(op) for op in OPS}


def tile_op(name: str) -> Op:
    """TVM's operator node for our operation."""
    return _NODES[name]


def op_of(call: TileCall) -> TileOp:
    """The row of a call's operation."""
    return _BY_NAME[call.op.name.removeprefix(_PREFIX)]


def operand(call: TileCall, name: str):
    """The call's operand of this name."""
    names = [o.name for o in op_of(call).operands]
    return call.args[names.index(name)]


def reads(call: TileCall) -> list[Region]:
    """Regions that a whole-tile operation reads; an `issue` is described by its hardware row instead."""
    rows = zip(op_of(call).operands, call.args, strict=False)
    return [a for o, a in rows if o.access in (READ, UPDATE, VALUE) and isinstance(a, Region)]


def writes(call: TileCall) -> list[Region]:
    """Regions that a whole-tile operation writes; an `issue` is described by its hardware row instead."""
    rows = zip(op_of(call).operands, call.args, strict=False)
    return [a for o, a in rows if o.access in (WRITE, UPDATE) and isinstance(a, Region)]


# Calls that stand in expressions; registered as state-updating, so that no pass moves them across a branch.
CALLS: tuple[tuple[str, str], ...] = (
    ("tl.shuffle_xor", "the value that lane (own lane xor mask) of the warp has"),
    (
        "tl.shuffle_down",
        "the value that lane (own lane + delta) of the warp has; the own one beyond the last lane",
    ),
)
for _name, _doc in CALLS:
    tvm_ffi.get_global_func("ir.RegisterOp")(_name, _doc)
    Op.get(_name).set_attr("TCallEffectKind", 3)
    Op.get(_name).set_attr("TScriptPrinterName", _name)
