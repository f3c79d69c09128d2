"""Which nodes each stage allows, and the check that a pass left only those behind."""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.errors import InternalError
from tilelab.ir.build import SERIAL, UNROLLED, VECTORIZED, plain
from tilelab.ir.nodes import AllocBuffer, For, ForKind, PrimFunc, TileCall
from tilelab.ir.statements import each_statement
from tilelab.ir.text import last_line
from tilelab.ir.tile_ops import OPS, op_of

__all__ = ["STAGES", "Stage", "check_stage", "stage"]

PARALLEL = ForKind.PARALLEL
LOOPS = (SERIAL, UNROLLED, VECTORIZED)


@dataclass(frozen=True)
class Stage:
    """A stage: the tile operations, loop kinds and buffer scopes that may stand in it.

    `annotated` are the annotations that every shared or fragment allocation must carry.
    """

    name: str
    doc: str
    loops: tuple[ForKind, ...]
    scopes: tuple[str, ...]
    annotated: tuple[str, ...] = ()

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(op.name for op in OPS if self.name in op.stages)


TILES = ("global", "shared.dyn", "shared.barrier", "local.fragment", "local", "local.var")
THREADS = ("global", "shared.dyn", "shared.barrier", "local", "local.var")

STAGES: tuple[Stage, ...] = (
    Stage("tile", "whole tiles, one statement after another", (*LOOPS, PARALLEL), TILES),
    Stage("laid_out", "every buffer has a layout and every tile operation a row", (*LOOPS, PARALLEL), TILES,
          ("tl.layout",)),
    Stage("threaded", "one thread's program in lockstep", LOOPS, TILES),
    Stage("synced", "threads run free between barriers and waits", LOOPS, THREADS),
    Stage("device", "one-dimensional buffers, ready to print; on the CPU the grid is a parallel loop",
          (*LOOPS, PARALLEL), THREADS),
)  # fmt: skip
_BY_NAME = {s.name: s for s in STAGES}


def stage(name: str) -> Stage:
    """The stage of this name."""
    return _BY_NAME[name]


def check_stage(f: PrimFunc, name: str, made_by: str) -> None:
    """Raise InternalError, naming the pass, when the function holds what the stage does not allow."""
    rules = stage(name)
    for node in each_statement(f.body):
        wrong = _what_is_wrong(node, rules)
        if wrong:
            raise InternalError(f"{made_by} left {wrong} in a function at stage {name}: {last_line(node)}")


def _what_is_wrong(node: object, rules: Stage) -> str | None:
    match node:
        case TileCall() if op_of(node).name not in rules.operations:
            return f"the operation {op_of(node).name}"
        case For() if node.kind not in rules.loops:
            return f"a {ForKind(node.kind).name.lower()} loop"
        case AllocBuffer():
            scope = str(node.buffer.scope())
            if scope not in rules.scopes:
                return f"a buffer of scope {scope}"
            tiled = scope in ("shared.dyn", "local.fragment")
            missing = [a for a in rules.annotated if tiled and a not in plain(node.annotations)]
            return f"a buffer without {missing[0]}" if missing else None
    return None
