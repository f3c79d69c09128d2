"""Stores of vectors: moved as words where they are plain copies, else computed lane by lane through
temporaries.

The temporaries are small arrays whose indices are constant once the lane loop is unrolled, so that the
compiler keeps them in registers.
"""

from __future__ import annotations

from typing import Any

from tilelab.codegen.expressions import Expressions
from tilelab.codegen.names import temporary
from tilelab.codegen.types import bytes_of, element, lanes
from tilelab.codegen.writer import Writer
from tilelab.ir import nodes as n

__all__ = ["Vectors"]


class Vectors:
    """Prints stores whose last index is a ramp."""

    def __init__(self, write: Writer, expressions: Expressions, dialect: Any, use: Any) -> None:
        self.write = write
        self.expressions = expressions
        self.dialect = dialect
        self.use = use
        self._temporaries = 0

    def store(self, node: Any) -> None:
        """Print buffer[…, ramp] = value."""
        last, value = node.indices[-1], node.value
        count = int(lanes(n.dtype_of(value)))
        target = self._contiguous(node.buffer, node.indices)
        if target and self._copy(target, value, bytes_of(n.dtype_of(node.buffer)) * count):
            return
        if self._store_pair(node):
            return
        with self.write.block("{"):
            self._hold_parts(value)
            if target:
                held = self._as_vector(value)
                self.write(f"*({self._vector(value)}*)({target}) = {held};")
            else:
                name = self.expressions.name(node.buffer)
                base = self.expressions.text(self.expressions.offset(node.buffer, node.indices), 11)
                step = self.expressions.text(last.stride, 13)
                at = f"{base} + l" if step == "1" else f"{base} + {step} * l"
                self._lane_loop(count, f"{name}[{at}] = ", value)
            self.expressions.held.clear()

    def _contiguous(self, buffer: Any, indices: Any) -> str | None:
        """The address of the first element when the vector lies in memory in one piece, else None."""
        last = indices[-1]
        if buffer.scope().startswith("local") or not _is_one(last.stride):
            return None
        return self.expressions.address(buffer, indices)

    def _offset(self, buffer: Any, indices: Any) -> Any:
        return self.expressions.offset(buffer, indices)

    def _copy(self, target: str, value: Any, size: int) -> bool:
        if not isinstance(value, n.Load):
            return False
        source = self._contiguous(value.source, value.indices)
        word = self.dialect.word(size, self.use)
        if source is None or word is None:
            return False
        self.write(f"*({word}*)({target}) = *(const {word}*)({source});")
        return True

    def _store_pair(self, node: Any) -> bool:
        """Two floats of an array, rounded together to 16 bits each and stored: what ends most epilogues."""
        value, last = node.value, node.indices[-1]
        if not isinstance(value, n.Cast) or lanes(n.dtype_of(value)) != 2 or not _is_one(last.stride):
            return False
        packed = self.dialect.packed_conversion(element(n.dtype_of(value)), element(n.dtype_of(value.value)))
        source: Any = value.value
        if packed is None or not _is_contiguous_load(source):
            return False
        first, name = self._offset(source.source, source.indices), self.expressions.name(source.source)
        low, high = self.expressions.text(first), self.expressions.text(first + 1)
        target = self.expressions.address(node.buffer, node.indices)
        self.write(f"{self.use(packed)}({target}, {name}[{low}], {name}[{high}]);")
        return True

    # ---- values

    def _vector(self, value: Any) -> str:
        kind = n.dtype_of(value)
        self.use("vec")
        self.dialect.require(element(kind), self.use)
        return f"vec<{self.dialect.type_name(element(kind))}, {lanes(kind)}>"

    def _fresh(self) -> str:
        self._temporaries += 1
        return temporary(self._temporaries)

    def _as_vector(self, value: Any) -> str:
        """The name of a temporary that holds the value."""
        if value in self.expressions.held:
            return self.expressions.held[value]
        name = self._fresh()
        self.write(f"{self._vector(value)} {name};")
        self._lane_loop(lanes(n.dtype_of(value)), f"{name}[l] = ", value)
        return name

    def _lane_loop(self, count: int, target: str, value: Any) -> None:
        self.write("#pragma unroll")
        self.expressions.lane = "l"
        self.write(f"for (int l = 0; l < {count}; ++l) {target}{self.expressions.text(value)};")
        self.expressions.lane = None

    def _hold_parts(self, value: Any) -> None:
        """Give temporaries to the parts of a vector that are worth one: loads, packed conversions, guarded
        parts.
        """
        kind = n.dtype_of(value)
        if lanes(kind) == 1 or value in self.expressions.held:
            return
        match value:
            case n.Load():
                self._hold_load(value)
            case n.Cast():
                self._hold_parts(value.value)
                self._hold_conversion(value)
            case n.Call() if _is_choice(value):
                self._hold_guarded(value)
            case n.Call():
                for part in value.args:
                    self._hold_parts(part)
            case n.Select():
                for part in (value.condition, value.true_value, value.false_value):
                    self._hold_parts(part)
            case n.Not():
                self._hold_parts(value.a)
            case _ if hasattr(value, "a") and hasattr(value, "b"):
                self._hold_parts(value.a)
                self._hold_parts(value.b)

    def _hold_load(self, value: Any) -> None:
        source = (
            self._contiguous(value.source, value.indices) if isinstance(value.indices[-1], n.Ramp) else None
        )
        if source is not None:
            name, kind = self._fresh(), self._vector(value)
            self.write(f"const {kind} {name} = *(const {kind}*)({source});")
            self.expressions.held[value] = name

    def _hold_conversion(self, value: Any) -> None:
        wanted, given = element(n.dtype_of(value)), element(n.dtype_of(value.value))
        packed = self.dialect.packed_conversion(wanted, given)
        if packed is None or lanes(n.dtype_of(value)) % 2:
            return
        held = self._as_vector(value.value)
        name, count = self._fresh(), lanes(n.dtype_of(value))
        self.use(packed)
        self.write(f"{self._vector(value)} {name};")
        self.write("#pragma unroll")
        self.write(f"for (int l = 0; l < {count}; l += 2) {packed}(&{name}[l], {held}[l], {held}[l + 1]);")
        self.expressions.held[value] = name

    def _hold_guarded(self, value: Any) -> None:
        """A choice by one condition for all lanes: neither side is evaluated, let alone loaded, unless it is
        taken.
        """
        condition, yes, no = value.args
        if isinstance(condition, n.Broadcast):
            condition = condition.value
        if lanes(n.dtype_of(condition)) != 1:
            return
        name = self._fresh()
        self.write(f"{self._vector(value)} {name};")
        for head, side in ((f"if ({self.expressions.text(condition)}) {{", yes), ("else {", no)):
            with self.write.block(head):
                outer = dict(self.expressions.held)
                self._hold_parts(side)
                self._lane_loop(lanes(n.dtype_of(value)), f"{name}[l] = ", side)
                self.expressions.held = outer
        self.expressions.held[value] = name


def _is_contiguous_load(e: Any) -> bool:
    return isinstance(e, n.Load) and isinstance(e.indices[-1], n.Ramp) and _is_one(e.indices[-1].stride)


def _is_choice(call: Any) -> bool:
    return str(call.op.name).endswith("if_then_else")


def _is_one(e: Any) -> bool:
    return isinstance(e, n.IntImm) and int(e.value) == 1
