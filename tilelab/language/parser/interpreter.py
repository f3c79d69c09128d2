"""The interpreter of a kernel's statements: plain Python runs, what depends on the kernel's values becomes
IR."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.spans import at, make_span
from tilelab.language.builder import Builder
from tilelab.language.parser import rewrite
from tilelab.language.parser.expressions import nest
from tilelab.language.parser.hooks import Hooks, guarded
from tilelab.language.parser.scope import Scope
from tilelab.language.parser.source import FunctionSource
from tilelab.language.values import is_symbolic

__all__ = ["Activation", "Returned"]

_code: dict[tuple[int, str], tuple[ast.AST, CodeType]] = {}


@dataclass(frozen=True)
class Returned:
    """That a `return` was met, and its value."""

    value: Any


class Activation:
    """One function being interpreted: the kernel itself, or a macro with the spans of the calls that led
    to it."""

    def __init__(
        self,
        source: FunctionSource,
        builder: Builder,
        outer: Mapping[str, Any],
        arguments: Mapping[str, Any],
        perform: Callable[[Activation, ast.stmt], Any],
        callers: tuple[Any, ...] = (),
    ) -> None:
        self.source = source
        self.builder = builder
        self.perform = perform
        self.callers = callers
        self._spans: dict[tuple[Any, ...], Any] = {}
        hooks = Hooks(self.span_at)
        self.scope = Scope({**outer, **hooks.table()}, arguments)
        self.loops: list[tuple[str, int]] = []
        self.sizes: dict[str, tuple[int, str]] = {}  # names given to extents of tensors, and of which one
        self.annotate: Callable[[str, Any], None] | None = None

    # ---- places

    def span_at(self, place: tuple[Any, ...]) -> Any:
        """The IR span of a place of this function's source, with the calls that led here."""
        if place not in self._spans:
            self._spans[place] = nest(self.callers, make_span(*place))
        return self._spans[place]

    def span(self, node: ast.AST) -> Any:
        """The IR span of a node of this function's source."""
        return self.span_at(self.source.span(node))

    # ---- expressions

    def _compiled(self, node: ast.AST, how: str) -> CodeType:
        # The node is kept beside its code, so that its id is not given to another node.
        key = (id(node), how)
        if key not in _code:
            with at(self.span(node)):
                _code[key] = (node, getattr(rewrite, f"compile_{how}")(self.source, node))
        return _code[key][1]

    def evaluate(self, node: ast.expr, how: str = "expression") -> Any:
        """The value of an expression."""
        code = self._compiled(node, how)
        with at(self.span(node)):
            try:
                return eval(code, self.scope.env)
            except NameError as error:
                raise self._unknown(node, str(error.name or "")) from None

    def _unknown(self, node: ast.AST, name: str) -> TileError:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id == name:
                with at(self.span(part)):
                    return self.scope.unknown(name)
        return self.scope.unknown(name)

    def execute_plain(self, node: ast.stmt) -> None:
        """Run a statement as Python."""
        code = self._compiled(node, "statement")
        with guarded():
            exec(code, self.scope.env)

    # ---- statements

    def run(self, body: list[ast.stmt]) -> Any:
        """Interpret statements: None at the end, else what ended them early: Returned, break, continue or
        stop."""
        for statement in body:
            self.builder.hint = None
            signal = self.perform(self, statement)
            if signal is not None:
                return signal
        return None

    def run_inside(self, kind: str, body: list[ast.stmt], start: Callable[[], None] | None = None) -> Any:
        """Interpret statements as the body of a loop or branch of the IR, and give the body."""
        with self.builder.frame(kind) as frame:
            self.scope.enter(frame)
            try:
                if start is not None:
                    start()
                self.run(body)
            finally:
                self.scope.leave()
        return b.seq(*frame.statements)

    def leave_by_return(self, value: Any) -> Returned:
        """A `return`; TileError inside a loop or branch of the IR."""
        if self.scope.control or any(kind == "kernel" for kind, _ in self.loops):
            raise TileError(
                "TL101",
                f"return stands inside a {self.scope.control[-1].kind if self.scope.control else 'kernel'}",
                help="put return at the end of the function, after the loops and branches",
            )
        return Returned(value)

    # ---- assignment

    def unpack(self, targets: list[ast.expr], value: Any, assign: Callable[[ast.expr, Any], None]) -> None:
        """Assign the items of a value to targets, one of which may be starred."""
        if is_symbolic(value):
            raise TileError("TL107", f"{value} is one number and is given to {len(targets)} names")
        with guarded():
            items = list(value)
        stars = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
        if stars:
            at_star, extra = stars[0], len(items) - (len(targets) - 1)
            if extra >= 0:
                items = [*items[:at_star], items[at_star : at_star + extra], *items[at_star + extra :]]
        if len(items) != len(targets):
            raise TileError("TL111", f"{len(items)} values are given to {len(targets)} names")
        for target, item in itertools.zip_longest(targets, items):
            assign(target.value if isinstance(target, ast.Starred) else target, item)
