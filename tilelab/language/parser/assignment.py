"""Assignment: a value of the kernel that must be computed where it stands gets a name in the IR."""

from __future__ import annotations

import ast
from typing import Any

from tilelab.errors import TileError
from tilelab.ir.nodes import FloatImm, IntImm, Var
from tilelab.language.builder import bind
from tilelab.language.parser.expressions import reads_memory
from tilelab.language.parser.hooks import guarded
from tilelab.language.parser.interpreter import Activation
from tilelab.language.store import assign as store
from tilelab.language.values import Element, Scalar, Slice, Tile, Variable

__all__ = ["give"]


def give(run: Activation, target: ast.expr, value: Any, origin: ast.expr | None = None) -> None:
    """Assign a value to a target; `origin` is the expression that it came from."""
    if isinstance(target, ast.Name):
        _give_name(run, target.id, value, isinstance(origin, ast.Call))
    elif isinstance(target, ast.Tuple | ast.List):
        if isinstance(origin, ast.Attribute) and origin.attr == "shape" and isinstance(value, tuple):
            _agree(run, target.elts, value, ast.unparse(origin.value))
        run.unpack(target.elts, value, lambda t, v: give(run, t, v))
    elif isinstance(target, ast.Subscript):
        holder, index = run.evaluate(target.value), run.evaluate(target.slice, "index")
        with guarded():
            holder[index] = value
    elif isinstance(target, ast.Attribute):
        holder = run.evaluate(target.value)
        if isinstance(holder, Tile | Slice | Scalar):
            raise TileError("TL107", f"{target.attr} of {holder!r} cannot be set")
        with guarded():
            setattr(holder, target.attr, value)


def _agree(run: Activation, targets: list[ast.expr], shape: tuple[Any, ...], tensor: str) -> None:
    """A size read off two tensors under one name is one size: `M, K = A.shape` and then `K, N = B.shape`."""
    if len(shape) != len(targets) and not any(isinstance(t, ast.Starred) for t in targets):
        wanted = ", ".join(map(ast.unparse, targets))
        axes = f"{len(shape)} {'axis' if len(shape) == 1 else 'axes'} ({', '.join(map(str, shape))})"
        raise TileError(
            "TL502", f"{tensor} has {axes}, and the kernel wants {len(targets)}: {wanted}",
            help=f"pass a tensor with {len(targets)} {'axis' if len(targets) == 1 else 'axes'}: "
            "reshape it, or add axes of one element",
        )  # fmt: skip
    for axis, (target, size) in enumerate(zip(targets, shape, strict=False)):
        if not isinstance(target, ast.Name) or target.id == "_" or not isinstance(size, int):
            continue
        known, where = run.sizes.setdefault(target.id, (size, f"axis {axis} of {tensor}"))
        if known != size and run.scope.local(target.id) == known:
            raise TileError(
                "TL502",
                f"axis {axis} of {tensor} has {size} elements, and {target.id} is {known} from {where}",
                help=f"pass tensors whose {target.id} is the same, or give the sizes different names",
            )  # fmt: skip


def _give_name(run: Activation, name: str, value: Any, made_here: bool) -> None:
    old = run.scope.local(name)
    fresh = isinstance(value, Variable) and made_here
    if isinstance(old, Variable) and not fresh:
        store(old, value)
        return
    if isinstance(value, Scalar) and not fresh:
        value = named(run, name, value)
    run.scope.bind(name, value)


def named(run: Activation, name: str, value: Scalar) -> Scalar:
    """The value under a name of the IR, when its expression must be computed where the assignment stands.

    Whole-number arithmetic on indices stays in the expressions that use it; loads and floats get a name.
    """
    expr = value.expr
    if isinstance(expr, Var | IntImm | FloatImm):
        return Scalar(expr)
    if isinstance(value, Element) or value.dtype.is_float or reads_memory(expr):
        return bind(name, Scalar(expr))
    return Scalar(expr)
