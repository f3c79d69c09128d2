"""The `with` statement: T.Kernel opens the launch, other context managers are Python's."""

from __future__ import annotations

import ast
import sys
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.spans import at, current_span
from tilelab.language.builder import TAGS, Launch
from tilelab.language.kernel import KernelSpec
from tilelab.language.parser.assignment import give
from tilelab.language.parser.hooks import guarded
from tilelab.language.parser.interpreter import Activation
from tilelab.language.values import Scalar, raw

__all__ = ["do_with"]


def do_with(run: Activation, node: ast.With) -> Any:
    """Enter the items one after another and interpret the body."""
    return _enter(run, list(node.items), node.body)


def _enter(run: Activation, items: list[ast.withitem], body: list[ast.stmt]) -> Any:
    if not items:
        return run.run(body)
    item, rest = items[0], items[1:]
    manager = run.evaluate(item.context_expr)
    if isinstance(manager, KernelSpec):
        return _kernel(run, manager, item, rest, body)
    with guarded():
        value = manager.__enter__()
    try:
        if item.optional_vars is not None:
            give(run, item.optional_vars, value)
        signal = _enter(run, rest, body)
    except BaseException:
        if not manager.__exit__(*sys.exc_info()):
            raise
        return None
    with guarded():
        manager.__exit__(None, None, None)
    return signal


def _kernel(
    run: Activation, spec: KernelSpec, item: ast.withitem, rest: list[ast.withitem], body: Any
) -> None:
    builder = run.builder
    if builder.launched:
        raise TileError(
            "TL106", "T.Kernel stands twice in this function", help="write one function for each launch"
        )
    if run.scope.control or len(builder.frames) > 1:
        raise TileError("TL106", "T.Kernel stands inside a loop or branch")
    target = item.optional_vars
    names = _names(target)
    if isinstance(target, ast.Tuple | ast.List) and len(target.elts) != len(spec.blocks):
        raise TileError(
            "TL106",
            f"T.Kernel has {len(spec.blocks)} grid extents and {len(target.elts)} names",
            help=f"as ({', '.join(('bx', 'by', 'bz')[: len(spec.blocks)])})",
        )
    span = current_span()
    launch = spec.start(names, span)
    builder.launch, builder.launched = launch, True
    if target is not None:
        indices = [Scalar(v) for v in launch.blocks]
        one = len(indices) == 1 and isinstance(target, ast.Name)
        give(run, target, indices[0] if one else tuple(indices))
    with builder.frame("kernel") as frame:
        run.loops.append(("kernel", 0))
        _enter(run, rest, body)
        run.loops.pop()
    builder.launch = None
    with at(span):
        builder.frames[-1].statements.append(_nest(launch, b.seq(*frame.statements)))
    builder.attrs["threads"] = launch.thread_count


def _names(target: ast.expr | None) -> tuple[str, ...]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return tuple(p.id for p in parts if isinstance(p, ast.Name))


def _nest(launch: Launch, body: Any) -> Any:
    for tag, variable, extent in reversed(
        list(zip(TAGS, launch.threads, launch.thread_extents, strict=False))
    ):
        body = b.launch(f"threadIdx.{tag}", variable, extent, body)
    for tag, variable, extent in reversed(list(zip(TAGS, launch.blocks, launch.block_extents, strict=False))):
        body = b.launch(f"blockIdx.{tag}", variable, raw(extent), body)
    return body
