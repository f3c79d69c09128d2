"""Functions defined inside a kernel: they see its names and are inlined where they are called."""

from __future__ import annotations

import ast
import copy
from typing import Any

from tilelab.errors import TileError
from tilelab.ir.spans import current_span
from tilelab.language.parser.calls import callers_of, deeper
from tilelab.language.parser.interpreter import Activation, Returned

__all__ = ["LocalFunction"]


class LocalFunction:
    """A function defined inside a kernel or a macro."""

    def __init__(self, outer: Activation, node: ast.FunctionDef) -> None:
        self.outer = outer
        self.node = node
        self.__name__ = self.__qualname__ = node.name
        self.bind = self._binder()

    def _binder(self) -> Any:
        """A plain Python function with the same parameters that gives them as a dict."""
        gives = ast.parse("return dict(locals())").body
        stub = copy.copy(self.node)
        stub.body, stub.decorator_list, stub.returns = gives, [], None
        module = ast.fix_missing_locations(ast.Module([stub], []))
        names = dict(self.outer.scope.env)
        exec(compile(module, self.outer.source.file, "exec"), names)
        return names[self.node.name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            arguments = self.bind(*args, **kwargs)
        except TypeError as error:
            raise TileError("TL103", str(error)) from None
        with deeper():
            inner = Activation(
                self.outer.source,
                self.outer.builder,
                self.outer.scope.env,
                arguments,
                self.outer.perform,
                callers_of(current_span()),
            )
            signal = inner.run(self.node.body)
        return signal.value if isinstance(signal, Returned) else None
