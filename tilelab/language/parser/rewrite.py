"""Rewriting of a Python expression so that each call, operator and look-up goes through the interpreter.

The interpreter learns the place of each, and does what Python cannot overload: and, or, not, conditional
expressions, chained comparisons and `in`. Operands of and, or and conditional expressions become lambdas.
"""

from __future__ import annotations

import ast
import copy
from types import CodeType
from typing import Any

from tilelab.errors import Place, TileError
from tilelab.language.parser.source import FunctionSource

__all__ = ["HOOKS", "compile_expression", "compile_statement"]

HOOKS = ("call", "attribute", "item", "binary", "unary", "compare", "both", "either", "choose")

_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
}  # fmt: skip
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_COMPARE = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def operator_text(op: ast.operator) -> str:
    """A binary operator as text."""
    return _BINARY[type(op)]


def constant(value: Any) -> ast.Constant:
    """A node that stands for a value, which may be a tuple."""
    return ast.Constant(value)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, source: FunctionSource) -> None:
        self.source = source

    def hook(
        self, name: str, node: ast.AST, *args: ast.expr, keywords: list[ast.keyword] | None = None
    ) -> ast.Call:
        place = constant(self.source.span(node))
        return ast.Call(ast.Name(f"__tl_{name}__", ast.Load()), [place, *args], keywords or [])

    def later(self, node: ast.expr) -> ast.Lambda:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Lambda(nothing, self.visit(node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return self.hook("call", node, self.visit(node.func), *map(self.visit, node.args), keywords=keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.hook("attribute", node, self.visit(node.value), ast.Constant(node.attr))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.hook("item", node, self.visit(node.value), self.index(node.slice))

    def index(self, node: ast.expr) -> ast.expr:
        """An index as an expression: slices become calls of `slice`."""
        if isinstance(node, ast.Slice):
            parts: list[ast.expr] = [
                self.visit(p) if p is not None else ast.Constant(None)
                for p in (node.lower, node.upper, node.step)
            ]
            return ast.Call(ast.Name("__tl_slice__", ast.Load()), parts, [])
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self.index(e) for e in node.elts], ast.Load())
        return self.visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        op = ast.Constant(operator_text(node.op))
        return self.hook("binary", node, op, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.operand, ast.Constant):
            return node
        return self.hook("unary", node, ast.Constant(_UNARY[type(node.op)]), self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        ops = constant(tuple(_COMPARE[type(op)] for op in node.ops))
        return self.hook("compare", node, ops, self.visit(node.left), *map(self.visit, node.comparators))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = "both" if isinstance(node.op, ast.And) else "either"
        return self.hook(name, node, *map(self.later, node.values))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self.hook(
            "choose", node, self.visit(node.test), self.later(node.body), self.later(node.orelse)
        )

    def refuse(self, node: ast.expr, what: str, help: str) -> ast.AST:
        file, line, end_line, column, end_column = self.source.span(node)
        raise TileError(
            "TL101",
            f"{what} cannot be part of a kernel",
            places=(Place(file, line, column, end_line, end_column),),
            help=help,
        )

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return self.refuse(
            node, "an assignment inside an expression", "write the assignment on a line of its own"
        )

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.refuse(node, "await", "remove it")

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        return self.refuse(node, "yield", "return the value, or write to a tile")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        return self.refuse(node, "yield", "return the value, or write to a tile")


def compile_expression(source: FunctionSource, node: ast.expr) -> CodeType:
    """Code that evaluates the expression with the interpreter's hooks among its globals."""
    new = _Rewriter(source).visit(copy.deepcopy(node))
    whole = ast.Expression(_placed(new, node))
    return compile(whole, source.file, "eval")


def compile_index(source: FunctionSource, node: ast.expr) -> CodeType:
    """As compile_expression, for what stands between the brackets of an index."""
    new = _Rewriter(source).index(copy.deepcopy(node))
    return compile(ast.Expression(_placed(new, node)), source.file, "eval")


def compile_statement(source: FunctionSource, node: ast.stmt) -> CodeType:
    """Code that executes a plain Python statement."""
    new = _Rewriter(source).visit(copy.deepcopy(node))
    return compile(ast.Module([ast.fix_missing_locations(new)], []), source.file, "exec")


def _placed(new: ast.expr, old: ast.expr) -> ast.expr:
    if not hasattr(new, "lineno"):
        ast.copy_location(new, old)
    return ast.fix_missing_locations(new)
