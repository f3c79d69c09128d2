"""The frame of a kernel: launch indices, parameters, names that are unique in C++, and the pool of shared
memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tilelab.codegen.names import RESERVED, free_name, kernel_name
from tilelab.codegen.types import bytes_of
from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.rewrite import collect
from tilelab.ir.statements import each_statement, seq
from tilelab.ir.tile_ops import op_of, writes

__all__ = ["Frame", "Launch", "python_text", "read_frame"]

_ALIGN = 128  # where the IR leaves an offset open; swizzled tiles state theirs


@dataclass(frozen=True)
class Launch:
    """One launch index: its tag (blockIdx.x …), the name it has in the text, its extent."""

    tag: str
    name: str
    extent: Any


@dataclass
class Frame:
    """What the printer knows of a function before it prints the body; `names` grows as definitions are
    met.
    """

    entry: str
    params: list[Any]
    free: list[Any]
    launches: list[Launch]
    body: Any
    threads: int
    grid: tuple[str, str, str] = ("1", "1", "1")
    block: tuple[int, int, int] = (1, 1, 1)
    offsets: dict[Any, int] = field(default_factory=dict)
    pool_bytes: int = 0
    swizzles: dict[Any, str] = field(default_factory=dict)
    written: set[Any] = field(default_factory=set)
    names: dict[Any, str] = field(default_factory=dict)
    nonnegative: set[Any] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)
    _reserved: set[str] = field(default_factory=lambda: set(RESERVED))

    def define(self, v: Any) -> str:
        """Give a variable or buffer a name that is new in the text."""
        if v in self.names:
            return self.names[v]
        name = self.claim(str(v.name))
        self.names[v] = name
        return name

    def claim(self, name: str) -> str:
        """The name, or one like it, that is new in the text; taken from now on."""
        out = free_name(name, self._reserved, self._taken)
        self._taken.add(out)
        return out

    def reserve(self, words: Iterable[str]) -> None:
        """Keep names out of the kernel that the helpers have."""
        self._reserved.update(words)

    def release(self, v: Any) -> None:
        """Let a loop's name be used again after the loop."""
        self._taken.discard(self.names.pop(v))

    def parameter_name(self, buffer: Any) -> str:
        """The name of the parameter that a global buffer is, or is a shaped view of."""
        if buffer in self.names:
            return self.names[buffer]
        for param in self.params:
            if n.is_buffer(param) and str(param.name) == str(buffer.name):
                return self.names[param]
        raise InternalError(f"{buffer.name} is no parameter of the kernel")


def read_frame(f: Any, reserved: Iterable[str] = ()) -> Frame:
    """Take the launch bindings off and look up what the printer needs to know beforehand."""
    body, launches = f.body, []
    while isinstance(body, n.AttrStmt) and str(body.attr_key) == "thread_extent":
        launches.append((body.node, body.value))
        body = body.body
    if any(isinstance(s, n.AttrStmt) and str(s.attr_key) == "thread_extent" for s in each_statement(body)):
        raise InternalError("a launch index is bound below the top of the kernel")
    entry = kernel_name(str(f.attrs["global_symbol"]), {*RESERVED, *reserved})
    frame = Frame(entry, list(f.params), [], [], seq(body), 1)
    frame.reserve(reserved)
    frame.claim(entry)
    for param in f.params:
        frame.define(param)
    frame.free = _free_scalars(f, launches)
    for v in frame.free:
        frame.define(v)
    frame.nonnegative |= set(frame.free)
    for axis, extent in launches:
        frame.nonnegative.add(axis.var)
        frame.launches.append(Launch(str(axis.thread_tag), frame.define(axis.var), extent))
    _read_launch(frame)
    _read_shared(frame)
    _read_writes(frame)
    return frame


def _free_scalars(f: Any, launches: list[Any]) -> list[Any]:
    """Scalars that the kernel uses and nothing in it defines: extents and strides of its arguments."""
    defined = {s.loop_var for s in each_statement(f.body) if isinstance(s, n.For)}
    defined |= {s.var for s in each_statement(f.body) if isinstance(s, n.Bind)}
    defined |= {axis.var for axis, _ in launches} | set(f.params)
    # Shapes count too: a tensor map's recipe is an expression of them.
    shapes = [e for p in f.params if n.is_buffer(p) for e in (*p.shape, *p.strides)]
    used = [v for root in (f.body, *shapes) for v in collect(root, n.Var)]
    return list(dict.fromkeys(v for v in used if not n.is_buffer(v) and v not in defined))


def _read_launch(frame: Frame) -> None:
    extents = {launch.tag: launch.extent for launch in frame.launches}
    grid = [
        python_text(extents[f"blockIdx.{a}"], frame.names) if f"blockIdx.{a}" in extents else "1"
        for a in "xyz"
    ]
    block = [int(extents[f"threadIdx.{a}"]) if f"threadIdx.{a}" in extents else 1 for a in "xyz"]
    frame.grid, frame.block = (grid[0], grid[1], grid[2]), (block[0], block[1], block[2])
    frame.threads = math.prod(block)


def _read_shared(frame: Frame) -> None:
    used = 0
    loose = []
    allocations: list[Any] = [s for s in each_statement(frame.body) if isinstance(s, n.AllocBuffer)]
    for s in allocations:
        if not s.buffer.scope().startswith("shared"):
            continue
        if (layout := s.annotations.get("tl.layout")) is not None:
            frame.swizzles[s.buffer] = str(b.plain(layout))
        size = math.prod(int(e) for e in s.buffer.shape) * bytes_of(n.dtype_of(s.buffer))
        offset = s.annotations.get("tl.offset")
        if offset is None:
            loose.append((s.buffer, size))
        else:
            frame.offsets[s.buffer] = int(b.plain(offset))
            used = max(used, frame.offsets[s.buffer] + size)
    for buffer, size in loose:
        align = 1024 if buffer in frame.swizzles else _ALIGN if buffer.scope() == "shared.dyn" else 8
        frame.offsets[buffer] = -(-used // align) * align
        used = frame.offsets[buffer] + size
    frame.pool_bytes = used


def _read_writes(frame: Frame) -> None:
    """Parameters that are written: the others can be read through the read-only path."""
    for s in each_statement(frame.body):
        if isinstance(s, n.Store):
            frame.written.add(s.buffer)
        elif isinstance(s, n.TileCall):
            regions = (
                writes(s) if op_of(s).name != "issue" else [a for a in s.args[:1] if isinstance(a, n.Region)]
            )
            frame.written |= {r.source for r in regions}


_PYTHON = {
    n.Add: "+", n.Sub: "-", n.Mul: "*", n.FloorDiv: "//", n.Div: "//", n.FloorMod: "%", n.Mod: "%",
}  # fmt: skip


def python_text(e: Any, names: dict[Any, str]) -> str:
    """An extent as a Python expression of the kernel's scalars."""
    if isinstance(e, int):
        return str(e)
    if isinstance(e, n.IntImm):
        return str(int(e.value))
    if isinstance(e, n.Var):
        return names[e]
    if isinstance(e, n.Cast):
        return python_text(e.value, names)
    if type(e) in _PYTHON:
        return f"({python_text(e.a, names)} {_PYTHON[type(e)]} {python_text(e.b, names)})"
    if isinstance(e, n.Min | n.Max):
        word = "min" if isinstance(e, n.Min) else "max"
        return f"{word}({python_text(e.a, names)}, {python_text(e.b, names)})"
    raise InternalError(f"an extent cannot hold {type(e).__name__}: {e}")
