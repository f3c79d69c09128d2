"""Tensor arguments of the eager style: their buffers, and the sizes that annotations name."""

from __future__ import annotations

import ast
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.language.builder import Builder, Param
from tilelab.language.dtypes import dtype
from tilelab.language.specs import TensorSpec
from tilelab.language.tensors import TensorType
from tilelab.language.values import Scalar, Tile, is_symbolic, raw

__all__ = ["Tensors", "contiguous", "dimension_names"]

_MAKERS = ("Tensor", "StridedTensor", "Buffer")


def dimension_names(function: ast.FunctionDef) -> dict[tuple[str, int], str]:
    """(argument, axis) → the plain name that an annotation statement gives to that extent."""
    found: dict[tuple[str, int], str] = {}
    for node in function.body:
        if (
            not isinstance(node, ast.AnnAssign)
            or node.value is not None
            or not isinstance(node.target, ast.Name)
        ):
            continue
        shape = _shape_of(node.annotation)
        for axis, part in enumerate(shape):
            if isinstance(part, ast.Name):
                found[node.target.id, axis] = part.id
    return found


def _shape_of(node: ast.expr) -> list[ast.expr]:
    """The extents in `T.Tensor((M, N), dtype)` or `T.Tensor[(M, N), dtype]` as nodes."""
    shape: ast.expr | None = None
    maker = getattr(node, "func", getattr(node, "value", None))
    if getattr(maker, "attr", getattr(maker, "id", None)) not in _MAKERS:
        return []
    if isinstance(node, ast.Call):
        named = [k.value for k in node.keywords if k.arg == "shape"]
        shape = node.args[0] if node.args else (named[0] if named else None)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        shape = node.slice.elts[0]
    return (
        list(shape.elts) if isinstance(shape, ast.Tuple | ast.List) else [shape] if shape is not None else []
    )


def contiguous(shape: tuple[Any, ...], strides: tuple[Any, ...]) -> bool:
    """Whether known strides are those of a contiguous tensor; the stride of an axis of one element is
    free."""
    step: Any = 1
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n is None or stride is None or step is None:
            return False
        if n != 1 and stride != step:
            return 0 in shape
        step = step * n
    return True


class Tensors:
    """The tensor arguments of one kernel; `sizes` holds the value of each name that annotations give to
    extents."""

    def __init__(self, builder: Builder, names: dict[tuple[str, int], str]) -> None:
        self.builder = builder
        self.names = names
        self.specs: dict[str, TensorSpec] = {}
        self.sizes: dict[str, Any] = {}
        self._where: dict[str, str] = {}

    def declare(self, name: str, spec: TensorSpec) -> Tile:
        """The buffer of an argument; extents that are known only at the launch become variables."""
        self.specs[name] = spec
        shape = tuple(self._extent(name, axis, n) for axis, n in enumerate(spec.shape))
        self.builder.fresh(name)
        return self._buffer(name, shape, self._strides(name, spec))

    def _extent(self, name: str, axis: int, extent: int | None) -> Any:
        label = self.names.get((name, axis))
        if label is None:
            return Scalar(b.var(f"{name}_{axis}")) if extent is None else extent
        if label not in self.sizes:
            self.sizes[label] = Scalar(b.var(label)) if extent is None else extent
            self._where[label] = f"axis {axis} of {name}"
        elif extent is None:
            return self.sizes[label]
        elif is_symbolic(self.sizes[label]):
            self.sizes[label] = extent
        return extent if extent is not None else self.sizes[label]

    def _strides(self, name: str, spec: TensorSpec) -> tuple[Any, ...]:
        if spec.strides is None or contiguous(spec.shape, spec.strides):
            return ()
        return tuple(
            Scalar(b.var(f"{name}_stride_{axis}")) if s is None else s for axis, s in enumerate(spec.strides)
        )

    def _buffer(self, name: str, shape: tuple[Any, ...], strides: tuple[Any, ...]) -> Tile:
        kind = dtype(self.specs[name].dtype)
        var = b.buffer(name, [raw(n) for n in shape], kind, strides=[raw(s) for s in strides])
        for param in self.builder.params:
            if param.name == name:
                param.var = var
                return Tile(var)
        self.builder.params.append(Param(name, var, "tensor"))
        return Tile(var)

    def annotate(self, name: str, kind: TensorType) -> Tile:
        """The argument's buffer as its annotation says; TileError when the argument is not of that type."""
        spec = self.specs[name]
        if len(kind.shape) != len(spec.shape):
            raise TileError(
                "TL502",
                f"{name} has {len(spec.shape)} axes {_text(spec.shape)}, and the annotation has "
                f"{len(kind.shape)}: {_text(kind.shape)}",
            )
        if dtype(spec.dtype) != kind.dtype:
            raise TileError(
                "TL503",
                f"{name} is {spec.dtype}, and the annotation says {kind.dtype}",
                help=f"pass a tensor of {kind.dtype}, or change the annotation",
            )
        for axis, (wanted, given) in enumerate(zip(kind.shape, spec.shape, strict=True)):
            if isinstance(wanted, int) and given is not None and wanted != given:
                label = self.names.get((name, axis))
                why = (
                    f"{label} is {wanted} from {self._where[label]}"
                    if label in self._where
                    else f"{wanted} is wanted"
                )
                raise TileError("TL502", f"axis {axis} of {name} has {given} elements, and {why}")
        strides = kind.strides or self._strides(name, spec)
        return self._buffer(name, kind.shape, strides)


def _text(shape: tuple[Any, ...]) -> str:
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
