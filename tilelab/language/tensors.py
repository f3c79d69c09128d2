"""Tensors of a kernel: types for annotations, outputs, and symbols for sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.builder import Param, current
from tilelab.language.dtypes import dtype as dtype_type
from tilelab.language.lazy import LazyModule
from tilelab.language.public import public
from tilelab.language.values import Scalar, Tile, is_symbolic, raw

if TYPE_CHECKING:
    from tilelab.ir import build as b
else:
    b = LazyModule("tilelab.ir.build")

__all__ = ["Buffer", "StridedTensor", "Tensor", "TensorType", "const", "dynamic", "empty", "symbolic"]


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor parameter: shape and strides hold whole numbers and symbols; no strides means
    contiguous."""

    shape: tuple[Any, ...]
    dtype: str
    strides: tuple[Any, ...] = ()


def _extents(shape: Any, what: str) -> tuple[Any, ...]:
    items = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for n in items:
        if not is_symbolic(n) and (isinstance(n, bool) or not isinstance(n, int)):
            raise TileError(
                "TL105",
                f"{what}: the extent {n!r} in shape {items} is not a whole number",
                help="extents are whole numbers, T.const names or T.dynamic names",
            )
        if isinstance(n, int) and n < 0:
            raise TileError("TL105", f"{what}: the extent {n} in shape {items} is negative")
    return items


class _TensorMaker:
    """`T.Tensor((M, N), dtype)` and `T.Tensor[(M, N), dtype]`: the type of a contiguous tensor parameter."""

    def __call__(self, shape: Any, dtype: Any = "float32", data: Any = None, scope: Any = None) -> TensorType:
        if data is not None or scope not in (None, "global"):
            raise TileError(
                "TL103",
                "T.Tensor takes no data and lives in global memory",
                help="T.Tensor takes shape, dtype",
            )
        return TensorType(_extents(shape, "T.Tensor"), dtype_type(dtype))

    def __getitem__(self, key: Any) -> TensorType:
        if not isinstance(key, tuple) or len(key) != 2:
            raise TileError(
                "TL105", "T.Tensor[…] takes a shape and a dtype", help="T.Tensor[(M, N), T.float16]"
            )
        return self(*key)


Tensor = _TensorMaker()
Buffer = Tensor


@public()
def StridedTensor(
    shape: Any, strides: Any, dtype: Any = "float32", scope: Any = None, *, data: Any = None
) -> TensorType:
    """The type of a tensor parameter with explicit strides, counted in elements."""
    if data is not None or scope not in (None, "global"):
        raise TileError("TL103", "T.StridedTensor takes no data and lives in global memory")
    extents, steps = _extents(shape, "T.StridedTensor"), _extents(strides, "T.StridedTensor")
    if len(extents) != len(steps):
        raise TileError("TL105", f"T.StridedTensor has {len(extents)} extents and {len(steps)} strides")
    return TensorType(extents, dtype_type(dtype), steps)


@public()
def dynamic(name: str, dtype: Any = "int32") -> Any:
    """Sizes that are known only when the kernel runs; several names, parted by commas, give a tuple."""
    made = tuple(Scalar(b.var(part, dtype_type(dtype))) for part in _names(name, "T.dynamic"))
    return made[0] if len(made) == 1 else made


symbolic = dynamic


@public()
def const(name: str, dtype: Any = "int32") -> Any:
    """Sizes read from the arguments' shapes through annotations such as `A: T.Tensor((M, K), T.float16)`."""
    builder = current("T.const")
    sizes = builder.sizes
    found = []
    for part in _names(name, "T.const"):
        builder.asked.append(part)
        if part not in sizes and builder.find_sizes is not None:
            builder.find_sizes()
        if part not in sizes and builder.given:
            raise TileError("TL501", f"the size {part} is not given", help=f"kernel.compile({part}=1024, …)")
        if part not in sizes:
            raise TileError(
                "TL104",
                f"the size {part} is no extent of an annotated argument",
                help=f"annotate an argument with it: A: T.Tensor(({part}, …), T.float16)",
            )
        found.append(sizes[part])
    return found[0] if len(found) == 1 else tuple(found)


def _names(name: str, what: str) -> list[str]:
    parts = [part for part in name.replace(",", " ").split() if part] if isinstance(name, str) else []
    if not parts or not all(part.isidentifier() for part in parts):
        raise TileError(
            "TL103", f"{what}({name!r}): names parted by commas are needed", help=f'{what}("M, N")'
        )
    return parts


@public()
def empty(*shape: Any, dtype: Any = None) -> Tile:
    """A new output tensor of the kernel: `T.empty((M, N), dtype)` or `T.empty(M, N, dtype=dtype)`."""
    builder = current("T.empty")
    if builder.launched:
        raise TileError(
            "TL106", "T.empty stands inside or after T.Kernel", help="make outputs before `with T.Kernel`"
        )
    sizes: tuple[Any, ...] = shape
    if shape and isinstance(shape[0], tuple | list):
        sizes = tuple(shape[0])
        if len(shape) == 2 and dtype is None:
            dtype = shape[1]
        elif len(shape) > 1:
            raise TileError("TL103", "T.empty takes a shape and a dtype", help="T.empty((M, N), dtype)")
    elif shape and isinstance(shape[-1], str) and dtype is None:
        sizes, dtype = shape[:-1], shape[-1]
    extents = _extents(sizes, "T.empty")
    var = b.buffer(builder.fresh("out"), [raw(n) for n in extents], dtype_type(dtype or "float32"))
    builder.params.append(Param(str(var.name), var, "tensor", output=True))
    return Tile(var)
