"""The builder: collects the statements of the kernel that is being read, its parameters and its launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.dtypes import dtype
from tilelab.language.lazy import LazyModule
from tilelab.language.values import Scalar, Tile, is_symbolic, raw

if TYPE_CHECKING:
    from tilelab.ir import build as b
    from tilelab.ir import nodes, spans
else:
    b = LazyModule("tilelab.ir.build")
    nodes = LazyModule("tilelab.ir.nodes")
    spans = LazyModule("tilelab.ir.spans")

__all__ = ["Builder", "Frame", "Launch", "Param", "building", "current", "in_kernel", "open_builder"]

TAGS = ("x", "y", "z")


@dataclass
class Frame:
    """A list of statements under construction: the kernel's body, a loop's, or a branch's."""

    kind: str
    statements: list[Any] = field(default_factory=list)


@dataclass
class Param:
    """A parameter under construction; `output` says that T.empty made it."""

    name: str
    var: Any
    kind: str
    output: bool = False


@dataclass
class Launch:
    """What T.Kernel set up: launch indices with their extents, blocks and threads."""

    blocks: tuple[Any, ...]
    block_extents: tuple[Any, ...]
    threads: tuple[Any, ...]
    thread_extents: tuple[int, ...]
    span: Any = None

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        total = 1
        for n in self.thread_extents:
            total *= n
        return total


class Builder:
    """Collects one kernel. `hint` is the name that the next allocation takes, from the assignment being
    read.

    `sizes` are the values of T.const names, `given` says that the caller named them, `find_sizes` looks
    further for values of them, and `asked` lists the names that T.const was called for.
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = [Frame("function")]
        self.params: list[Param] = []
        self.launch: Launch | None = None
        self.launched = False
        self.hint: str | None = None
        self.ignored: list[str] = []
        self.attrs: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.given = False
        self.find_sizes: Callable[[], None] | None = None
        self.asked: list[str] = []
        self.captured: list[tuple[str, Any]] = []
        self.layouts: list[tuple[Any, str]] = []
        self._names: dict[str, int] = {}

    def fresh(self, fallback: str) -> str:
        """A name for a new buffer: the assignment's target, made unique."""
        name = self.hint or fallback
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}_{count}"

    def emit(self, statement: Any) -> None:
        """Add a statement to the innermost frame."""
        self.need_kernel("a statement that does work")
        self.frames[-1].statements.append(statement)

    @contextmanager
    def frame(self, kind: str) -> Iterator[Frame]:
        """A new innermost frame."""
        new = Frame(kind)
        self.frames.append(new)
        try:
            yield new
        finally:
            self.frames.pop()

    def need_kernel(self, what: str) -> Launch:
        """The launch in force; TileError when there is none."""
        if self.launch is None:
            raise TileError(
                "TL106",
                f"{what} stands outside of T.Kernel",
                help="put it inside `with T.Kernel(blocks, threads=128) as bx:`",
            )
        return self.launch

    def ignore(self, what: str) -> None:
        """Record something that is accepted and has no effect."""
        where = spans.place_of(spans.current_span())
        text = f"{what} (line {where.line})" if where else what
        if text not in self.ignored:
            self.ignored.append(text)

    def allocate(self, shape: Sequence[Any], kind: str, scope: str, fallback: str) -> Tile:
        """A new on-chip tile with its allocation statement."""
        what = f"T.alloc_{fallback}"
        self.need_kernel(what)
        extents = tile_shape(shape, what)
        var = b.buffer(self.fresh(fallback), extents, dtype(kind), scope)
        self.emit(b.alloc(var))
        return Tile(var)


def tile_shape(shape: Any, what: str) -> list[int]:
    """The shape of a tile on the chip as positive whole numbers; TileError otherwise."""
    items = list(shape) if isinstance(shape, tuple | list) else [shape]
    if not items:
        items = [1]
    for n in items:
        if is_symbolic(n):
            raise TileError(
                "TL104",
                f"{what}: the extent {n} is known only when the kernel runs",
                help="tiles on the chip need sizes that are known at compile time",
            )
        if isinstance(n, bool) or not isinstance(n, int):
            raise TileError(
                "TL112",
                f"{what}: the extent {n!r} in shape {tuple(items)} is not a whole number",
                help="write // for divisions of sizes",
            )
        if n <= 0:
            raise TileError(
                "TL112",
                f"{what}: the extent {n} in shape {tuple(items)} is not positive",
                help="give every axis at least one element",
            )
    return items


_current: ContextVar[Builder | None] = ContextVar("tilelab_builder", default=None)


def building() -> Builder | None:
    """The builder in force, if a kernel is being read."""
    return _current.get()


def in_kernel() -> bool:
    """Whether the code being read stands inside T.Kernel."""
    builder = _current.get()
    return builder is not None and builder.launch is not None


def current(what: str) -> Builder:
    """The builder in force; TileError when no kernel is being read."""
    builder = _current.get()
    if builder is None:
        raise TileError(
            "TL106",
            f"{what} is called outside of a kernel",
            help="call it inside a function decorated with @tilelab.jit or @T.prim_func",
        )
    return builder


@contextmanager
def open_builder(builder: Builder) -> Iterator[Builder]:
    """Make `builder` the one in force."""
    token = _current.set(builder)
    try:
        yield builder
    finally:
        _current.reset(token)


def bind(name: str, value: Scalar) -> Scalar:
    """The value given a name in the IR, computed where the assignment stands."""
    builder = current("an assignment")
    var = b.var(name, str(value.dtype))
    builder.emit(nodes.Bind(var, raw(value), spans.current_span()))
    return Scalar(var)
