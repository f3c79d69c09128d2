"""The printer that CUDA and HIP share: statements, declarations, roles and the kernel's frame.

It takes a device-stage function (a synced-stage one too, where its buffers have no swizzled layout). What
differs between the languages is asked of a `Dialect`.
"""

from __future__ import annotations

import math
from typing import Any

from tilelab.codegen.expressions import Expressions
from tilelab.codegen.frame import Frame, python_text, read_frame
from tilelab.codegen.helpers import in_order
from tilelab.codegen.roles import condition_of, role_index
from tilelab.codegen.shared_tiles import tile_layout
from tilelab.codegen.vectors import Vectors
from tilelab.codegen.writer import Writer
from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.rewrite import collect
from tilelab.ir.spans import at
from tilelab.ir.statements import each_statement, flatten
from tilelab.ir.tile_ops import op_of
from tilelab.trace.code import CodeText, Parameter, TensorMap

__all__ = ["Printer", "print_kernel"]

LONG_LOOP = 8  # a serial loop of more steps is kept a loop: unrolling it costs compile time and buys little


# What stands beside a comparison must bind tighter than it.
_ABOVE_COMPARISON = 10


class Printer:
    """Prints one function. Dialects read `write`, `expressions`, `use`, `frame`, `group` and `tensor_map`."""

    def __init__(self, f: Any, dialect: Any, line_directives: bool = False) -> None:
        self.function = f
        self.dialect = dialect
        self.frame: Frame = read_frame(f, {*dialect.helpers, *dialect.math_words.values()})
        self.used: set[str] = set()
        self.write = Writer(line_directives)
        self.expressions = Expressions(self.frame.names, dialect, self.use)
        self.expressions.nonnegative |= self.frame.nonnegative
        self.expressions.layouts = {
            buffer: tile_layout(buffer, text)
            for buffer, text in self.frame.swizzles.items()
            if len(buffer.shape) > 1
        }
        self.vectors = Vectors(self.write, self.expressions, dialect, self.use)
        self.maps: dict[str, TensorMap] = {}
        self.roles: list[tuple[str, int, int]] = [("block", 0, self.frame.threads)]
        self.accumulators: dict[str, int] = {}

    # ---- what dialects call

    def use(self, helper: str) -> str:
        """Note that a helper is used, and give its name."""
        self.used.add(helper)
        return helper

    def text(self, e: Any, limit: int = 0) -> str:
        """An expression (or a Python number) as text, in parentheses if it binds weaker than `limit`."""
        return self.expressions.text(b.as_expr(e), limit)

    def pointer(self, region: Any) -> str:
        """The address of a region's first element as text."""
        return self.expressions.pointer(region)

    @property
    def group(self) -> tuple[str, int, int]:
        """The role being printed: name, first thread, count."""
        return self.roles[-1]

    def tensor_map(self, made: TensorMap) -> str:
        """The name of the kernel parameter that holds this tensor map."""
        for name, known in self.maps.items():
            if known == made:
                return name
        name = self.frame.claim(f"{made.buffer}_map")
        self.maps[name] = made
        return name

    # ---- statements

    def statement(self, s: Any) -> None:
        """Print one statement and those inside."""
        handler = _STATEMENTS.get(type(s))
        if handler is None:
            raise InternalError(f"no printing for a statement of type {type(s).__name__}: {s}")
        if isinstance(s, n.SeqStmt | n.AttrStmt):
            handler(self, s)
            return
        with self.write.at(s, _touched(s)):
            handler(self, s)

    def _sequence(self, s: Any) -> None:
        parts, i = flatten(s), 0
        while i < len(parts):
            groups = []
            while i < len(parts) and b.group_of(parts[i]) is not None:
                groups.append(parts[i])
                i += 1
            if groups:
                self._groups(groups)
            else:
                self.statement(parts[i])
                i += 1

    def _attribute(self, s: Any) -> None:
        if b.group_of(s) is not None:
            self._groups([s])
        else:
            self.statement(s.body)

    def _groups(self, groups: list[Any]) -> None:
        end = 0
        for position, s in enumerate(groups):
            role: Any = b.group_of(s)
            name, first, count = role
            test = condition_of(self, first, count, after=end if position else None)
            end = first + count if first >= end else -1
            head = f"{'else ' if position else ''}{f'if ({test}) ' if test else ''}{{  // {name}"
            self.roles.append((name, first, count))
            outer, self.accumulators = self.accumulators, dict(self.accumulators)
            with self.write.block(head):
                self.statement(s.body)
            self.accumulators = outer
            self.roles.pop()

    def _for(self, s: Any) -> None:
        name = self.frame.define(s.loop_var)
        if self.expressions.is_nonnegative(s.min):
            self.expressions.nonnegative.add(s.loop_var)
        if pragma := _unrolling(s):
            self.write(pragma)
        kind = self.dialect.type_name(n.dtype_of(s.loop_var))
        first, end = self.text(s.min), self.text(_plus(s.min, s.extent), _ABOVE_COMPARISON)
        step = "" if s.step is None else self.text(s.step)
        move = f"{name} += {step}" if step not in ("", "1") else f"++{name}"
        with self.write.block(f"for ({kind} {name} = {first}; {name} < {end}; {move}) {{"):
            self.statement(s.body)
        self.frame.release(s.loop_var)

    def _while(self, s: Any) -> None:
        with self.write.block(f"while ({self.text(s.condition)}) {{"):
            self.statement(s.body)

    def _if(self, s: Any) -> None:
        with self.write.block(f"if ({self.text(s.condition)}) {{"):
            self.statement(s.then_case)
        if s.else_case is not None:
            with self.write.block("else {"):
                self.statement(s.else_case)

    def _break(self, _: Any) -> None:
        self.write("break;")

    def _continue(self, _: Any) -> None:
        self.write("continue;")

    def _bind(self, s: Any) -> None:
        value = self.text(s.value)
        if self.expressions.is_nonnegative(s.value):
            self.expressions.nonnegative.add(s.var)
        kind = n.dtype_of(s.var)
        self.dialect.require(kind, self.use)
        self.write(f"const {self.dialect.type_name(kind)} {self.frame.define(s.var)} = {value};")

    def _allocate(self, s: Any) -> None:
        buffer = s.buffer
        name, kind, scope = self.frame.define(buffer), n.dtype_of(buffer), buffer.scope()
        self.dialect.require(kind, self.use)
        word = self.dialect.type_name(kind)
        if scope == "local.var":
            self.write(f"{word} {name};")
        elif scope == "local":
            size = math.prod(int(e) for e in buffer.shape)
            self.write(f"alignas(16) {word} {name}[{size}];")
        elif scope in ("shared.dyn", "shared.barrier"):
            self.write(f"{word}* const {name} = ({word}*)(pool + {self.frame.offsets[buffer]});")
        else:
            raise InternalError(f"no printing for an allocation in scope {scope}: {name}")

    def _store(self, s: Any) -> None:
        if isinstance(s.indices[-1], n.Ramp):
            self.vectors.store(s)
            return
        name = self.expressions.name(s.buffer)
        self.dialect.require(n.dtype_of(s.buffer), self.use)
        if s.buffer.scope() == "local.var":
            self.write(f"{name} = {self.text(s.value)};")
            return
        index = self.text(self.expressions.offset(s.buffer, s.indices))
        self.write(f"{name}[{index}] = {self.text(s.value)};")

    def _evaluate(self, s: Any) -> None:
        if not isinstance(s.value, n.IntImm):
            self.write(f"{self.text(s.value)};")

    def _tile_call(self, s: Any) -> None:
        with at(s.span):
            self.dialect.tile_call(self, op_of(s).name, s)


def _unrolling(s: Any) -> str | None:
    if s.kind in (n.ForKind.UNROLLED, n.ForKind.VECTORIZED):
        return "#pragma unroll"
    if s.kind != n.ForKind.SERIAL:
        raise InternalError(f"no printing for a loop of kind {s.kind.name}: {s.loop_var}")
    extent = int(s.extent.value) if isinstance(s.extent, n.IntImm) else None
    if extent is not None and _indexes_registers(s):
        return "#pragma unroll"
    # The steps of a loop around instructions are alike: unrolling them only costs compile time.
    is_pipeline = any(isinstance(inner, n.TileCall) for inner in each_statement(s.body))
    return "#pragma unroll 1" if extent is None or extent > LONG_LOOP or is_pipeline else None


def _indexes_registers(s: Any) -> bool:
    """Whether the loop's variable picks elements of an array that should stay in registers."""
    accesses = [(e.source, e.indices) for e in collect(s.body, n.Load)]
    accesses += [(e.buffer, e.indices) for e in collect(s.body, n.Store)]
    accesses += [(e.source, [r.min for r in e.region]) for e in collect(s.body, n.Region)]
    return any(
        buffer.scope() == "local"
        and any(v.same_as(s.loop_var) for index in indices for v in collect(index, n.Var))
        for buffer, indices in accesses
    )


def _plus(first: Any, extent: Any) -> Any:
    return extent if isinstance(first, n.IntImm) and int(first.value) == 0 else first + extent


def _touched(s: Any) -> tuple[str, ...]:
    if isinstance(s, n.For | n.While | n.IfThenElse):
        return ()
    return tuple(dict.fromkeys(str(v.name) for v in collect(s, n.Var) if n.is_buffer(v)))


_STATEMENTS: dict[Any, Any] = {
    n.SeqStmt: Printer._sequence,
    n.AttrStmt: Printer._attribute,
    n.For: Printer._for,
    n.While: Printer._while,
    n.IfThenElse: Printer._if,
    n.Break: Printer._break,
    n.Continue: Printer._continue,
    n.Bind: Printer._bind,
    n.AllocBuffer: Printer._allocate,
    n.Store: Printer._store,
    n.Evaluate: Printer._evaluate,
    n.TileCall: Printer._tile_call,
}


def print_kernel(f: Any, dialect: Any, line_directives: bool = False) -> CodeText:
    """The function as C++ of the dialect, with its lines' sources and all that a launch has to know."""
    printer = Printer(f, dialect, line_directives)
    frame, write = printer.frame, printer.write
    write.depth = 1
    role = role_index(printer)
    printer.statement(frame.body)
    body, write.lines, write.depth = write.lines, [], 0
    for launch in frame.launches:
        write.plain(f"  const int {launch.name} = {dialect.index(launch.tag)};")
        if known := dialect.known_range(launch.name, launch.tag, frame.block):
            write.plain(f"  {known}")
    if role:
        write.plain(f"  {role}")
    parameters = _parameters(printer)
    prologue = "\n".join(helper.text for helper in in_order(printer.used, dialect.helpers))
    opening, write.lines = write.lines, []
    if prologue:
        write.plain(prologue + "\n")
    write.plain(dialect.signature(printer, parameters))
    write.lines += opening
    if frame.pool_bytes:
        write.plain("  " + dialect.pool(frame.pool_bytes))
    write.lines += body
    write.plain("}")
    lines = tuple(write.lines)
    return CodeText(
        dialect.language,
        "\n".join(line.text for line in lines) + "\n",
        lines,
        frame.entry,
        parameters,
        frame.grid,
        frame.block,
        frame.pool_bytes if dialect.dynamic_pool else 0,
        tuple((frame.names[p], i) for i, p in enumerate(frame.params) if n.is_buffer(p)),
        tuple(sorted(printer.used)),
    )


def _parameters(printer: Printer) -> tuple[Parameter, ...]:
    frame, out = printer.frame, []
    for index, param in enumerate(frame.params):
        if n.is_buffer(param) and param not in printer.expressions.mentioned:
            continue  # reached through tensor maps only
        kind = "buffer" if n.is_buffer(param) else "scalar"
        printer.dialect.require(n.dtype_of(param), printer.use)
        out.append(Parameter(kind, frame.names[param], n.dtype_of(param), index))
    out += [Parameter("scalar", frame.names[v], n.dtype_of(v)) for v in frame.free]
    out += [Parameter("tensor_map", name, made.dtype, None, made) for name, made in printer.maps.items()]
    return tuple(out)


def tensor_map_of(printer: Printer, region: Any, box: tuple[int, ...], swizzle_bytes: int) -> str:
    """The tensor-map parameter for boxes of a global buffer, made when it is first asked for."""
    buffer = region.source
    made = TensorMap(
        printer.frame.parameter_name(buffer),
        n.dtype_of(buffer),
        tuple(python_text(e, printer.frame.names) for e in buffer.shape),
        tuple(python_text(e, printer.frame.names) for e in printer.expressions.strides(buffer)),
        box,
        swizzle_bytes,
    )
    return printer.tensor_map(made)
