"""What each Python statement means in a kernel: one function a kind of statement."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tilelab.errors import TileError
from tilelab.ir.spans import at
from tilelab.language.hints import device_assert
from tilelab.language.kernel import KernelSpec
from tilelab.language.loops import LoopSpec
from tilelab.language.parser.assignment import give
from tilelab.language.parser.control import do_for, do_if, do_while, leave_loop
from tilelab.language.parser.hooks import guarded
from tilelab.language.parser.interpreter import Activation
from tilelab.language.parser.launch import do_with
from tilelab.language.parser.local import LocalFunction
from tilelab.language.parser.rewrite import operator_text
from tilelab.language.values import is_symbolic

__all__ = ["perform"]

# Statements that cannot be part of a kernel, and what to write instead.
_REFUSED = {
    "Try": ("a try statement", "check with `if` or `assert` instead"),
    "TryStar": ("a try statement", "check with `if` or `assert` instead"),
    "ClassDef": ("a class", "define the class outside of the kernel"),
    "Global": ("a global statement", "pass the value as an argument"),
    "Nonlocal": ("a nonlocal statement", "pass the value as an argument"),
    "AsyncFunctionDef": ("an async function", "write a plain def"),
    "AsyncFor": ("an async for loop", "write a plain for"),
    "AsyncWith": ("an async with statement", "write a plain with"),
    "Match": ("a match statement", "write if, elif and else"),
    "TypeAlias": ("a type statement", "define the type outside of the kernel"),
}


def perform(run: Activation, node: ast.stmt) -> Any:
    """Interpret one statement; what ends the block early, or None."""
    kind = type(node).__name__
    with at(run.span(_header(node))):
        if kind in _REFUSED:
            what, instead = _REFUSED[kind]
            raise TileError("TL101", f"{what} cannot be part of a kernel", help=instead)
        return _STATEMENTS[kind](run, node)


def _header(node: ast.stmt) -> ast.AST:
    """The part of a statement that stands for it: for compound statements what comes before the colon."""
    end: ast.AST | None = None
    if isinstance(node, ast.For):
        end = node.iter
    elif isinstance(node, ast.If | ast.While):
        end = node.test
    elif isinstance(node, ast.With):
        end = node.items[-1].optional_vars or node.items[-1].context_expr
    if end is None:
        return node
    return ast.copy_location(
        ast.Pass(
            lineno=node.lineno,
            col_offset=node.col_offset,
            end_lineno=end.end_lineno,
            end_col_offset=end.end_col_offset,
        ),
        ast.Pass(),
    )


def _assign(run: Activation, node: ast.Assign) -> None:
    first = node.targets[0]
    pairs = _pairs(first, node.value) if len(node.targets) == 1 else None
    if pairs is not None:
        values = []
        for target, part in pairs:
            run.builder.hint = target.id if isinstance(target, ast.Name) else None
            values.append(run.evaluate(part))
        for (target, part), value in zip(pairs, values, strict=True):
            give(run, target, value, part)
        return
    run.builder.hint = first.id if isinstance(first, ast.Name) else None
    value = run.evaluate(node.value)
    for target in node.targets:
        give(run, target, value, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    """Targets with their values when both sides of an assignment are written out, item by item."""
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return None
    if len(target.elts) != len(value.elts):
        return None
    if any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)):
        return None
    return list(zip(target.elts, value.elts, strict=True))


def _augment(run: Activation, node: ast.AugAssign) -> None:
    op = operator_text(node.op)
    hook = run.scope.env["__tl_binary__"]
    place = run.source.span(node)
    target = node.target
    if isinstance(target, ast.Subscript):
        holder, index = run.evaluate(target.value), run.evaluate(target.slice, "index")
        value = run.evaluate(node.value)
        with guarded():
            old = holder[index]
            holder[index] = hook(place, op, old, value)
        return
    old = run.evaluate(_as_load(target))
    value = hook(place, op, old, run.evaluate(node.value))
    give(run, target, value)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    assert isinstance(target, ast.Attribute)
    return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)


def _annotated(run: Activation, node: ast.AnnAssign) -> None:
    if node.value is not None:
        run.builder.hint = node.target.id if isinstance(node.target, ast.Name) else None
        give(run, node.target, run.evaluate(node.value), node.value)
    elif run.annotate is not None and isinstance(node.target, ast.Name):
        run.annotate(node.target.id, lambda: run.evaluate(node.annotation))


def _expression(run: Activation, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    value = run.evaluate(node.value)
    if isinstance(value, KernelSpec):
        raise TileError(
            "TL106", "T.Kernel is called and not entered", help="write `with T.Kernel(...) as bx:`"
        )
    if isinstance(value, LoopSpec):
        raise TileError("TL101", f"a {value.kind} loop is made and not run", help="write `for i in …:`")
    if not isinstance(node.value, ast.Call) and callable(value):
        what = ast.unparse(node.value)
        raise TileError("TL101", f"{what} is named and not called", help=f"write {what}(…)")


def _assert(run: Activation, node: ast.Assert) -> None:
    test = run.evaluate(node.test)
    if is_symbolic(test):
        device_assert(test, "" if node.msg is None else str(run.evaluate(node.msg)))
    elif not test:
        message = ast.unparse(node.test) if node.msg is None else str(run.evaluate(node.msg))
        raise TileError("TL110", f"assertion failed: {message}")


def _raise(run: Activation, node: ast.Raise) -> None:
    error = run.evaluate(node.exc) if node.exc is not None else None
    if isinstance(error, TileError):
        raise error
    name = error.__name__ if isinstance(error, type) else type(error).__name__
    raise TileError("TL111", f"{name}: {'' if isinstance(error, type) else error}".rstrip(": "))


def _function(run: Activation, node: ast.FunctionDef) -> None:
    made: Any = LocalFunction(run, node)
    for mark in reversed(node.decorator_list):
        decorate = run.evaluate(mark)
        with guarded():
            made = decorate(made)
    run.scope.bind(node.name, made)


def _delete(run: Activation, node: ast.Delete) -> None:
    for target in node.targets:
        if not isinstance(target, ast.Name):
            raise TileError("TL101", "only names can be deleted in a kernel", help="leave the del out")
        run.scope.delete(target.id)


def _import(run: Activation, node: ast.Import | ast.ImportFrom) -> None:
    run.execute_plain(node)
    for alias in node.names:
        name = (alias.asname or alias.name).split(".")[0]
        run.scope.bind(name, run.scope.env[name])


def _return(run: Activation, node: ast.Return) -> Any:
    return run.leave_by_return(None if node.value is None else run.evaluate(node.value))


def _nothing(run: Activation, node: ast.Pass) -> None:
    return None


_STATEMENTS: dict[str, Callable[[Activation, Any], Any]] = {
    "Assign": _assign, "AugAssign": _augment, "AnnAssign": _annotated, "Expr": _expression,
    "Assert": _assert, "Raise": _raise, "FunctionDef": _function, "Delete": _delete, "Import": _import,
    "ImportFrom": _import, "Return": _return, "Pass": _nothing, "For": do_for, "While": do_while,
    "If": do_if, "With": do_with, "Break": lambda run, node: leave_loop(run, "break"),
    "Continue": lambda run, node: leave_loop(run, "continue"),
}  # fmt: skip
