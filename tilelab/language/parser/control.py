"""Loops and branches: Python's when they are decided by known values, else of the IR."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import Break, Continue
from tilelab.ir.spans import at, current_span
from tilelab.language.builder import in_kernel
from tilelab.language.loops import LoopSpec, one_range
from tilelab.language.parser.assignment import give
from tilelab.language.parser.expressions import truth
from tilelab.language.parser.hooks import guarded
from tilelab.language.parser.interpreter import Activation
from tilelab.language.values import Scalar, is_symbolic, raw, wrap

__all__ = ["do_for", "do_if", "do_while", "leave_loop"]

_KINDS = {
    "serial": b.SERIAL, "pipelined": b.SERIAL, "parallel": b.PARALLEL, "unroll": b.UNROLLED,
    "vectorized": b.VECTORIZED,
}  # fmt: skip
# A loop of Python's that goes on for longer is taken for one that never ends.
MOST_STEPS = 100_000


def do_if(run: Activation, node: ast.If) -> Any:
    """A branch; of the IR when its condition is known only when the kernel runs."""
    test = run.evaluate(node.test)
    if not is_symbolic(test):
        chosen = node.body if _holds(run, node.test, test) else node.orelse
        return run.run(chosen)
    run.builder.need_kernel("a branch on a value of the kernel")
    span = current_span()
    then = run.run_inside("branch", node.body)
    otherwise = run.run_inside("branch", node.orelse) if node.orelse else None
    assert current_span() is span
    run.builder.emit(b.if_(truth(raw(test)), then, otherwise))
    return None


def _holds(run: Activation, node: ast.expr, value: Any) -> bool:
    """Whether a value that is known is true for Python; errors point at the condition."""
    with at(run.span(node)), guarded():
        return bool(value)


def do_while(run: Activation, node: ast.While) -> Any:
    """A loop that runs while a condition holds."""
    endless = isinstance(node.test, ast.Constant) and node.test.value is True and in_kernel()
    test = Scalar(b.const(True, "bool")) if endless else run.evaluate(node.test)
    if is_symbolic(test):
        _no_else(node)
        run.loops.append(("while", len(run.scope.control)))
        body = run.run_inside("loop", node.body)
        run.loops.pop()
        run.builder.emit(b.while_(truth(raw(test)), body))
        return None
    for _ in range(MOST_STEPS):
        if not _holds(run, node.test, run.evaluate(node.test)):
            return run.run(node.orelse)
        signal = _python_step(run, node.body)
        if signal is not None:
            return None if signal == "break" else signal
    raise TileError(
        "TL101",
        f"this loop of Python's has not ended after {MOST_STEPS} steps",
        help="a loop of the kernel needs a condition on a T.alloc_var",
    )


def do_for(run: Activation, node: ast.For) -> Any:
    """A loop over indices of the IR, or over the items of a Python value."""
    items = _iterated(run, node.iter)
    if isinstance(items, LoopSpec):
        _no_else(node)
        _loop(run, node, items)
        return None
    if is_symbolic(items):
        raise TileError(
            "TL101", f"{items} is a number and cannot be gone through", help=f"for i in range({items}):"
        )
    with guarded():
        iterator = iter(items)
    while True:
        with guarded():
            item = next(iterator, iterator)
        if item is iterator:
            return run.run(node.orelse)
        give(run, node.target, item)
        signal = _python_step(run, node.body)
        if signal is not None:
            return None if signal == "break" else signal


def _python_step(run: Activation, body: list[ast.stmt]) -> Any:
    """One step of a loop of Python's: what ends the loop, or None."""
    run.loops.append(("python", len(run.scope.control)))
    signal = run.run(body)
    run.loops.pop()
    return None if signal == "continue" else signal


def _iterated(run: Activation, node: ast.expr) -> Any:
    """What a `for` goes through; inside of T.Kernel `range` is T.serial."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not node.keywords
        and in_kernel()
        and run.evaluate(node.func) is builtins.range
    ):
        args = [run.evaluate(a) for a in node.args]
        if not 1 <= len(args) <= 3:
            raise TileError("TL103", f"range takes one to three numbers, and {len(args)} are given")
        return LoopSpec("serial", (one_range(args[0], *[*args[1:], None, None][:2], what="range"),))
    return run.evaluate(node)


def _no_else(node: ast.For | ast.While) -> None:
    if node.orelse:
        raise TileError("TL101", "a loop of the kernel has an else", help="put the statements after the loop")


def _names(target: ast.expr, count: int) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    if not all(isinstance(p, ast.Name) for p in parts):
        raise TileError("TL101", "the index of a loop of the kernel is not a plain name")
    if len(parts) != count:
        raise TileError(
            "TL101",
            f"the loop has {count} indices and {len(parts)} names",
            help="for i, j in …: one name for each extent",
        )
    return [p.id for p in parts]  # type: ignore[union-attr]


def _loop(run: Activation, node: ast.For, spec: LoopSpec) -> None:
    run.builder.need_kernel(f"a {spec.kind} loop")
    if spec.kind == "parallel" and any(kind == "parallel" for kind, _ in run.loops):
        raise TileError(
            "TL205",
            "a T.Parallel loop stands inside another one",
            help="write one nest: for i, j in T.Parallel(m, n)",
        )
    names = _names(node.target, len(spec.ranges))
    variables = [b.var(name) for name in names]
    span = current_span()

    def start() -> None:
        for name, variable, (first, _, step) in zip(names, variables, spec.ranges, strict=True):
            value: Any = Scalar(variable)
            run.scope.bind_index(name, value if step == 1 else wrap(raw(first + value * step)))

    run.loops.append((spec.kind, len(run.scope.control)))
    body = run.run_inside("loop", node.body, start)
    run.loops.pop()
    assert current_span() is span
    for index in reversed(range(len(names))):
        first, extent, step = spec.ranges[index]
        body = b.for_(
            variables[index],
            raw(extent),
            body,
            _KINDS[spec.kind],
            spec.annotations if index == 0 else None,
            raw(first) if step == 1 else 0,
        )
    run.builder.emit(body)


def leave_loop(run: Activation, how: str) -> Any:
    """`break` or `continue`: of the innermost loop, which is Python's or the IR's."""
    kind, depth = run.loops[-1]
    if kind == "python":
        if len(run.scope.control) > depth:
            raise TileError(
                "TL101",
                f"{how} of a loop of Python's stands in a branch that is decided when the kernel runs",
                help="make the loop one of the kernel: for i in T.serial(...)",
            )
        return how
    if kind in ("parallel", "vectorized", "pipelined"):
        raise TileError(
            "TL101",
            f"{how} stands in a {kind} loop, whose steps do not follow one another",
            help="use T.serial, or an `if` around the statements",
        )
    run.builder.emit((Break if how == "break" else Continue)(current_span()))
    return "stop"
