"""Tensor arguments of the eager style: their buffers, and the sizes that annotations name."""

from __future__ import annotations

import ast
from collections.abc import Mapping
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


def dimension_names(function: ast.FunctionDef) -> dict[tuple[str, str, int], str]:
    """(argument, extent or stride, axis) → the plain name that an annotation statement gives to it."""
    found: dict[tuple[str, str, int], str] = {}
    for node in function.body:
        if (
            not isinstance(node, ast.AnnAssign)
            or node.value is not None
            or not isinstance(node.target, ast.Name)
        ):
            continue
        for kind, extents in (
            ("extent", _listed(node.annotation, 0)),
            ("stride", _listed(node.annotation, 1)),
        ):
            for axis, part in enumerate(extents):
                if isinstance(part, ast.Name):
                    found[node.target.id, kind, axis] = part.id
    return found


def _listed(node: ast.expr, position: int) -> list[ast.expr]:
    """The extents (position 0) or strides (1) in `T.Tensor((M, N), dtype)`, `T.Tensor[(M, N), dtype]` or
    `T.StridedTensor((M, N), (S, 1), dtype)` as nodes."""
    maker = getattr(node, "func", getattr(node, "value", None))
    name = getattr(maker, "attr", getattr(maker, "id", None))
    if name not in _MAKERS or (position == 1 and name != "StridedTensor"):
        return []
    found: ast.expr | None = None
    if isinstance(node, ast.Call):
        named = [k.value for k in node.keywords if k.arg == ("shape", "strides")[position]]
        found = node.args[position] if len(node.args) > position else (named[0] if named else None)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        found = node.slice.elts[0]
    if isinstance(found, ast.Tuple | ast.List):
        return list(found.elts)
    return [] if found is None else [found]


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


def strides_of(spec: TensorSpec) -> tuple[int | None, ...]:
    """The strides of a tensor in elements, None where unknown."""
    if spec.strides is not None:
        return spec.strides
    out: list[int | None] = []
    step: int | None = 1
    for n in reversed(spec.shape):
        out.insert(0, step)
        step = None if n is None or step is None else step * n
    return tuple(out)


class Tensors:
    """The tensor arguments of one kernel; `sizes` holds the value of each name that the caller states or that
    annotations give to extents."""

    def __init__(
        self, builder: Builder, names: dict[tuple[str, str, int], str], sizes: Mapping[str, int]
    ) -> None:
        self.builder = builder
        self.names = names
        self.specs: dict[str, TensorSpec] = {}
        self.sizes: dict[str, Any] = dict(sizes)
        self._where: dict[str, str] = dict.fromkeys(sizes, "the call")

    def learn(self, sizes: Mapping[str, tuple[int, str]]) -> None:
        """Take in sizes that are not known yet, each with the axis that gives it."""
        for label, (size, where) in sizes.items():
            if label not in self.sizes:
                self.sizes[label], self._where[label] = size, where

    def declare(self, name: str, spec: TensorSpec) -> Tile:
        """The buffer of an argument; extents that are known only at the launch become variables."""
        self.specs[name] = spec
        shape = tuple(self._extent(name, axis, n) for axis, n in enumerate(spec.shape))
        self.builder.fresh(name)
        self._name_strides(name, spec)
        return self._buffer(name, shape, self._strides(name, spec))

    def _extent(self, name: str, axis: int, extent: int | None) -> Any:
        label = self.names.get((name, "extent", axis))
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

    def _name_strides(self, name: str, spec: TensorSpec) -> None:
        known = strides_of(spec)
        for axis, stride in enumerate(known):
            label = self.names.get((name, "stride", axis))
            if label is not None and label not in self.sizes:
                self.sizes[label] = Scalar(b.var(label)) if stride is None else stride

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
                label = self.names.get((name, "extent", axis))
                why = (
                    f"{label} is {wanted} from {self._where[label]}"
                    if label in self._where
                    else f"{wanted} is wanted"
                )
                raise TileError("TL502", f"axis {axis} of {name} has {given} elements, and {why}")
        for axis, (wanted, given) in enumerate(zip(kind.strides, strides_of(spec), strict=False)):
            if isinstance(wanted, int) and given is not None and wanted != given and spec.shape[axis] != 1:
                raise TileError(
                    "TL505", f"axis {axis} of {name} has stride {given}, and the annotation says {wanted}"
                )
        strides = kind.strides or self._strides(name, spec)
        return self._buffer(name, kind.shape, strides)


def _text(shape: tuple[Any, ...]) -> str:
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
