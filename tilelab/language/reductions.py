"""Reductions of a tile along one of its axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.builder import current
from tilelab.language.lazy import LazyModule
from tilelab.language.public import public
from tilelab.language.regions import need_tile, region, squeezed
from tilelab.language.tile_ops import axis_of

if TYPE_CHECKING:
    from tilelab.ir import build as b
else:
    b = LazyModule("tilelab.ir.build")

__all__ = [
    "reduce", "reduce_absmax", "reduce_abssum", "reduce_bitand", "reduce_bitor", "reduce_bitxor",
    "reduce_max", "reduce_min", "reduce_sum",
]  # fmt: skip

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")


def _reduce(buffer: Any, out: Any, kind: str, dim: Any, clear: bool, nan_propagate: bool = False) -> None:
    what = f"T.reduce_{kind}"
    if kind not in KINDS:
        raise TileError("TL103", f"T.reduce(reduce_type={kind!r})", help="kinds: " + ", ".join(KINDS))
    source, target = need_tile(buffer, f"the source of {what}"), need_tile(out, f"the result of {what}")
    axis = axis_of(source, dim, what)
    shape, result = tuple(source.shape), tuple(target.shape)
    dropped = shape[:axis] + shape[axis + 1 :]
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    if result not in (dropped, kept) and squeezed(result) != squeezed(dropped):
        raise TileError(
            "TL201",
            f"{what}: {source.name} {shape} along axis {axis} gives {dropped or (1,)}, "
            f"and {target.name} is {result}",
            help=f"{target.name} must have shape {dropped or (1,)} or {kept}",
        )
    if kind.startswith("bit") and source.dtype.is_float:
        raise TileError(
            "TL201", f"{what}: {source.name} is {source.dtype}, and bits are combined of integers"
        )
    current(what).emit(
        b.tile(
            "reduce",
            region(source),
            region(target),
            kind=kind,
            dim=axis,
            clear=bool(clear),
            nan_propagate=bool(nan_propagate) or None,
        )
    )


@public(ignored=("batch", "annotations"))
def reduce(
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Any = None,
) -> None:
    """out = reduction of buffer along axis `dim`; with clear=False the old out takes part."""
    _reduce(buffer, out, str(reduce_type), dim, clear)


@public(ignored=("batch", "annotations"))
def reduce_sum(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: Any = None
) -> None:
    """out = sum of buffer along axis `dim`."""
    _reduce(buffer, out, "sum", dim, clear)


@public(ignored=("batch", "annotations"))
def reduce_max(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """out = greatest element of buffer along axis `dim`."""
    _reduce(buffer, out, "max", dim, clear, nan_propagate)


@public(ignored=("batch", "annotations"))
def reduce_min(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """out = least element of buffer along axis `dim`."""
    _reduce(buffer, out, "min", dim, clear, nan_propagate)


@public(ignored=("batch", "annotations"))
def reduce_abssum(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: Any = None
) -> None:
    """out = sum of absolute values of buffer along axis `dim`."""
    _reduce(buffer, out, "abssum", dim, clear)


@public(ignored=("batch", "annotations"))
def reduce_absmax(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """out = greatest absolute value of buffer along axis `dim`."""
    _reduce(buffer, out, "absmax", dim, clear, nan_propagate)


@public(ignored=("batch", "annotations"))
def reduce_bitand(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: Any = None
) -> None:
    """out = bitwise and of buffer along axis `dim`."""
    _reduce(buffer, out, "bitand", dim, clear)


@public(ignored=("batch", "annotations"))
def reduce_bitor(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: Any = None
) -> None:
    """out = bitwise or of buffer along axis `dim`."""
    _reduce(buffer, out, "bitor", dim, clear)


@public(ignored=("batch", "annotations"))
def reduce_bitxor(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: Any = None
) -> None:
    """out = bitwise exclusive or of buffer along axis `dim`."""
    _reduce(buffer, out, "bitxor", dim, clear)
