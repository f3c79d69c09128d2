"""The launch: T.Kernel, and the indices of blocks and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.builder import TAGS, Launch, current
from tilelab.language.lazy import LazyModule
from tilelab.language.public import public
from tilelab.language.values import Scalar, is_symbolic

if TYPE_CHECKING:
    from tilelab.ir import build as b
else:
    b = LazyModule("tilelab.ir.build")

__all__ = [
    "MOST_THREADS", "Kernel", "KernelSpec", "get_block_binding", "get_block_bindings", "get_block_extent",
    "get_block_extents", "get_thread_binding", "get_thread_bindings", "get_thread_extent",
    "get_thread_extents",
]  # fmt: skip

DEFAULT_THREADS = 128
MOST_THREADS = 1024  # of a block, on every target


class KernelSpec:
    """What `with T.Kernel(...)` opens: grid extents, and threads along x, y, z."""

    def __init__(self, blocks: tuple[Any, ...], threads: tuple[int, ...]) -> None:
        self.blocks = blocks
        self.threads = threads

    def start(self, names: tuple[str, ...], span: Any) -> Launch:
        """The launch, with its index variables named."""
        count = len(self.blocks)
        labels = names if len(names) == count else tuple(f"b{t}" for t in TAGS[:count])
        blocks = tuple(b.var(name) for name in labels)
        threads = tuple(b.var(f"t{t}") for t in TAGS[: len(self.threads)])
        return Launch(blocks, self.blocks, threads, self.threads, span)

    def __enter__(self) -> Any:
        raise TileError(
            "TL106",
            "T.Kernel is entered by Python itself",
            help="write `with T.Kernel(...)` in the kernel function, not in a helper",
        )

    def __exit__(self, *_: object) -> None:
        return None


@public(ignored=("cluster_dims",))
def Kernel(*blocks: Any, threads: Any = None, prelude: Any = None, cluster_dims: Any = None) -> KernelSpec:
    """Open the kernel: a grid of one to three extents, `threads` a block (a number or one for each of x,
    y, z)."""
    if prelude is not None:
        raise TileError(
            "TL103",
            "T.Kernel(prelude=…): raw source cannot be part of a kernel in this version",
            help="leave prelude out",
        )
    if not 1 <= len(blocks) <= 3:
        raise TileError("TL106", f"T.Kernel has {len(blocks)} grid extents, and one to three are possible")
    for axis, n in enumerate(blocks):
        _check_extent(n, f"grid extent {axis} of T.Kernel", least=0)
    given = DEFAULT_THREADS if threads is None else threads
    counts = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(counts) <= 3:
        raise TileError("TL106", f"threads={given!r}: one to three numbers are possible")
    for n in counts:
        if is_symbolic(n):
            raise TileError("TL104", f"threads={n} is known only when the kernel runs")
        _check_extent(n, f"threads={given!r} of T.Kernel", least=1)
    return KernelSpec(tuple(blocks), counts)


def _check_extent(n: Any, what: str, least: int) -> None:
    if is_symbolic(n):
        if n.dtype.is_float:
            raise TileError("TL106", f"{what} is {n}, a {n.dtype}", help="use T.ceildiv for divisions")
        return
    if isinstance(n, bool) or not isinstance(n, int):
        raise TileError(
            "TL106", f"{what} is {n!r}, which is not a whole number", help="use T.ceildiv or // for divisions"
        )
    if n < least:
        raise TileError("TL106", f"{what} is {n}, and it must be at least {least}")


def _pick(items: tuple[Any, ...], dim: int, what: str) -> Any:
    if not isinstance(dim, int) or not 0 <= dim < len(items):
        raise TileError("TL103", f"{what}({dim!r}): this kernel has {len(items)} of them")
    return items[dim]


@public()
def get_thread_binding(dim: int = 0) -> Any:
    """The thread's index along dimension `dim`."""
    return Scalar(
        _pick(current("T.get_thread_binding").need_kernel("it").threads, dim, "T.get_thread_binding")
    )


@public()
def get_thread_bindings() -> list[Any]:
    """The thread's indices along all dimensions."""
    return [Scalar(v) for v in current("T.get_thread_bindings").need_kernel("it").threads]


@public()
def get_thread_extent(dim: int = 0) -> int:
    """Threads of a block along dimension `dim`."""
    return _pick(current("T.get_thread_extent").need_kernel("it").thread_extents, dim, "T.get_thread_extent")


@public()
def get_thread_extents() -> list[int]:
    """Threads of a block along all dimensions."""
    return list(current("T.get_thread_extents").need_kernel("it").thread_extents)


@public()
def get_block_binding(dim: int = 0) -> Any:
    """The block's index along dimension `dim`."""
    return Scalar(_pick(current("T.get_block_binding").need_kernel("it").blocks, dim, "T.get_block_binding"))


@public()
def get_block_bindings() -> list[Any]:
    """The block's indices along all dimensions."""
    return [Scalar(v) for v in current("T.get_block_bindings").need_kernel("it").blocks]


@public()
def get_block_extent(dim: int = 0) -> Any:
    """Blocks of the grid along dimension `dim`."""
    return _pick(current("T.get_block_extent").need_kernel("it").block_extents, dim, "T.get_block_extent")


@public()
def get_block_extents() -> list[Any]:
    """Blocks of the grid along all dimensions."""
    return list(current("T.get_block_extents").need_kernel("it").block_extents)
