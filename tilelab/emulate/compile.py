"""A function of the IR as one Python generator: made once, run for every block.

Lanes are the threads of the block (or of the group, inside a role), or the iterations of a `T.parallel` nest.
Control flow that lanes agree on is Python's own; where they may differ, both sides run under masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tilelab.emulate import runtime
from tilelab.emulate.dtypes import element, numpy_type
from tilelab.emulate.expressions import Value, expression
from tilelab.emulate.intrinsics import INTRINSICS, TESTS
from tilelab.emulate.loops import Loop
from tilelab.emulate.statements import statement
from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.nodes import dtype_of, is_buffer
from tilelab.ir.rewrite import collect
from tilelab.ir.statements import each_statement

__all__ = ["Allocation", "Compiler", "Program", "compile_function"]


@dataclass(frozen=True)
class Allocation:
    """A buffer of the function as it was declared: its node, what annotations say of it, and its span."""

    name: str
    dtype: str
    scope: str
    layout: str
    offset: int | None
    annotations: dict[str, Any]
    span: Any


@dataclass
class Program:
    """The compiled function: `run(X, P, V)` is a block's generator, `launch(V)` gives extents and shapes."""

    run: Any
    launch: Any
    source: str
    spans: list[Any]
    allocations: list[Allocation]
    fixed_shapes: list[tuple[int, ...] | None]
    free: list[n.Var]
    channel_groups: dict[str, dict[str, set[str]]]


@dataclass
class Compiler:
    """The state of one compilation: the text so far, names of variables and buffers, the mask in force."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    counter: int = 0
    context: str = "X"
    mask: str = "None"
    in_iterations: bool = False
    one_thread: bool = False
    wide_loops: bool = True
    variables: dict[Any, Value] = field(default_factory=dict)
    buffers: dict[Any, tuple[str, bool]] = field(default_factory=dict)
    constants: dict[tuple[str, str], str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    spans: list[Any] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    fixed_shapes: list[tuple[int, ...] | None] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    group: str = ""
    channel_groups: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def statement(self, node: Any) -> None:
        """Emit a statement."""
        statement(self, node)

    # ---- text

    def emit(self, line: str) -> None:
        """Append a line at the current depth."""
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines emitted inside are one level deeper; an empty block gets a `pass`."""
        self.depth += 1
        before = len(self.lines)
        try:
            yield
        finally:
            if len(self.lines) == before:
                self.emit("pass")
            self.depth -= 1

    def fresh(self, stem: str) -> str:
        """A name that is not in use."""
        self.counter += 1
        kept = "".join(ch if ch.isalnum() and ch.isascii() else "_" for ch in stem)
        return f"{kept}_{self.counter}"

    def named(self, value: Value) -> Value:
        """The value held in a variable, so that its text is short and it is computed once."""
        if value.code.isidentifier():
            return value
        name = self.fresh("t")
        self.emit(f"{name} = {value.code}")
        return Value(name, value.varying, value.width)

    def constant(self, number: float, dtype: str) -> str:
        """The name of a floating-point constant."""
        key = (repr(number), dtype)
        if key not in self.constants:
            self.constants[key] = f"K{len(self.constants)}"
            self.values[self.constants[key]] = numpy_type(dtype)(number)
        return self.constants[key]

    def type_of(self, dtype: str) -> str:
        """The name of a NumPy type in the generated text."""
        name = f"dtype_{element(dtype)}"
        self.values[name] = numpy_type(dtype)
        return name

    def mark(self, span: Any) -> None:
        """Faults from here on point at `span`."""
        self.spans.append(span)
        self.emit(f"{self.context}.at = {len(self.spans) - 1}")

    @staticmethod
    def width_of(node: Any) -> int:
        """The number of vector elements of an expression."""
        head, x, lanes = dtype_of(node).rpartition("x")
        return int(lanes) if x and head and lanes.isdigit() else 1

    def needs_intrinsic(self, name: str) -> None:
        """Refuse a call that the emulator cannot evaluate, while compiling."""
        if name not in INTRINSICS and name not in TESTS:
            raise InternalError(f"the emulator knows no intrinsic {name}")

    # ---- names

    def define(self, var: Any, value: Value) -> str:
        """Bind a variable to a value under a new name."""
        name = self.fresh(f"v_{var.name}")
        self.emit(f"{name} = {value.code}")
        self.variables[var] = Value(name, value.varying, value.width)
        return name

    def variable(self, var: Any) -> Value:
        """The value of a variable; inside iterations a value of the threads must be the same on all of
        them.
        """
        if var not in self.variables:
            raise InternalError(f"{var.name} is used where it has no value")
        value = self.variables[var]
        if self.in_iterations and value.varying and not value.code.startswith("i_"):
            return Value(f"agreed({value.code}, X)", False, value.width)
        return value

    def buffer(self, var: Any) -> tuple[str, bool]:
        """The name of a buffer and whether each thread has its own."""
        if var not in self.buffers:
            raise InternalError(f"buffer {var.name} is used where it is not allocated")
        return self.buffers[var]

    def region(self, node: Any) -> str:
        """An operand as (buffer, first indices, extents)."""
        name, _ = self.buffer(node.source)
        low = ", ".join(expression(self, r.min).code for r in node.region)
        extent = ", ".join(self.uniform(r.extent) for r in node.region)
        return f"({name}, ({low},), ({extent},))"

    def uniform(self, node: Any) -> str:
        """The code of a value that all active lanes must agree on."""
        value = expression(self, node)
        return f"agreed({value.code}, {self.context}, {self.mask})" if value.varying else value.code

    # ---- masks

    @contextmanager
    def masked(self, condition: Value | None) -> Iterator[None]:
        """Only lanes for which the condition holds are active inside; uniform conditions change nothing."""
        old = self.mask
        if condition is not None and condition.varying and condition.width == 1:
            self.mask = self.narrowed(condition.code)
        try:
            yield
        finally:
            self.mask = old

    def narrowed(self, code: str) -> str:
        """The name of the mask of lanes that are active and for which `code` holds."""
        name = self.fresh("m")
        self.emit(f"{name} = {code if self.mask == 'None' else f'and_mask({self.mask}, {code})'}")
        return name


def _static_shape(buffer: Any) -> tuple[int, ...] | None:
    sizes = tuple(buffer.shape)
    return tuple(int(s) for s in sizes) if all(isinstance(s, n.IntImm) for s in sizes) else None


def declare(c: Compiler, buffer: Any, annotations: dict[str, Any], span: Any) -> int:
    """Register an allocation and give its number."""
    kept = {key: b.plain(value) for key, value in annotations.items()}
    c.allocations.append(
        Allocation(
            str(buffer.name),
            dtype_of(buffer),
            str(buffer.scope()),
            str(kept.get("tl.layout", "")),
            kept.get("tl.offset"),
            kept,
            span,
        )
    )
    c.fixed_shapes.append(_static_shape(buffer))
    return len(c.allocations) - 1


def _bind_parameters(c: Compiler, f: Any) -> list[Any]:
    """Names for parameters and for the variables in their shapes, which are given as the list V."""
    free: list[Any] = []

    def note(value: Any) -> None:
        for var in [] if isinstance(value, int) else collect(value, n.Var):
            if var not in c.variables:
                c.variables[var] = Value(f"V[{len(free)}]", False)
                free.append(var)

    for param in f.params:
        if not is_buffer(param):
            note(param)
    for param in f.params:
        if is_buffer(param):
            for value in (*param.shape, *param.strides):
                note(value)
    return free


def _launch(c: Compiler, f: Any) -> None:
    extents = [
        s for s in each_statement(f.body) if isinstance(s, n.AttrStmt) and str(s.attr_key) == "thread_extent"
    ]
    grid = ", ".join(f"{str(s.node.thread_tag)!r}: {expression(c, s.value).code}" for s in extents)
    shapes = ", ".join(
        f"({', '.join(expression(c, d).code for d in p.shape)},)" if is_buffer(p) else "None"
        for p in f.params
    )
    c.emit(f"return {{{grid}}}, [{shapes}]")


@lru_cache(maxsize=32)
def compile_function(f: n.PrimFunc, stage: str) -> Program:
    """The function as Python, compiled; raises InternalError for nodes that no stage may hold."""
    c = Compiler()
    free = _bind_parameters(c, f)
    c.lines.append("def launch(V):")
    _launch(c, f)
    c.lines.append("def kernel(X, P, V):")
    for index, param in enumerate(f.params):
        if is_buffer(param):
            c.buffers[param] = (f"b_{index}", False)
            c.emit(f"b_{index} = P[{index}]")
    for position, var in enumerate(free):
        name = c.fresh(f"v_{var.name}")
        c.emit(f"{name} = V[{position}]")
        c.variables[var] = Value(name, False)
    launched = [s for s in each_statement(f.body) if isinstance(s, n.AttrStmt)]
    c.one_thread = not any(
        str(s.attr_key) == "thread_extent" and str(s.node.thread_tag).startswith("threadIdx")
        for s in launched
    )
    # A block of one thread past the tile stages is scalar code: its parallel loops are plain loops.
    c.wide_loops = not c.one_thread or stage in ("tile", "laid_out")
    statement(c, f.body)
    c.emit("return")
    c.emit("yield")
    source = "\n".join(c.lines) + "\n"
    scope = {name: getattr(runtime, name) for name in runtime.NAMES} | c.values
    exec(compile(source, f"<emulation of {f.attrs.get('global_symbol', 'a kernel')}>", "exec"), scope)
    return Program(
        scope["kernel"],
        scope["launch"],
        source,
        c.spans,
        c.allocations,
        c.fixed_shapes,
        free,
        c.channel_groups,
    )
