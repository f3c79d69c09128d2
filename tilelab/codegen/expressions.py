"""Expressions as C++: precedence, literals, conversions, division that rounds down, and calls of intrinsics.

A vector expression prints for one of its lanes: `lane` names the loop variable over lanes, a `Ramp` becomes
its element and a load becomes the element of the temporary that holds the vector, or of memory itself.
"""

from __future__ import annotations

import math
import re
from typing import Any

from tilelab.codegen.facts import is_nonnegative, known, operands, times
from tilelab.codegen.types import element, is_float, is_small_float
from tilelab.errors import InternalError
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.indices import offset_of
from tilelab.layout import Composed

__all__ = ["Expressions"]

_ATOM, _UNARY, _CONDITIONAL = 16, 14, 2
_BINARY: dict[Any, tuple[str, int]] = {
    n.Add: ("+", 11), n.Sub: ("-", 11), n.Mul: ("*", 12), n.Div: ("/", 12), n.Mod: ("%", 12),
    n.EQ: ("==", 8), n.NE: ("!=", 8), n.LT: ("<", 9), n.LE: ("<=", 9), n.GT: (">", 9), n.GE: (">=", 9),
    n.And: ("&&", 4), n.Or: ("||", 3),
    n.BitwiseAnd: ("&", 7), n.BitwiseOr: ("|", 5), n.BitwiseXor: ("^", 6),
    n.LShift: ("<<", 10), n.RShift: (">>", 10),
}  # fmt: skip
_CALLED_BINARY = {
    "bitwise_and": ("&", 7), "bitwise_or": ("|", 5), "bitwise_xor": ("^", 6), "shift_left": ("<<", 10),
    "shift_right": (">>", 10),
}  # fmt: skip


class Expressions:
    """Prints expressions for one kernel: `names` gives variables and buffers their names, `dialect` the
    words.
    """

    def __init__(self, names: dict[Any, str], dialect: Any, use: Any) -> None:
        self.names = names
        self.dialect = dialect
        self.use = use
        self.nonnegative: set[Any] = set()
        self.layouts: dict[Any, Any] = {}  # of shared tiles whose accesses still have logical indices
        self.mentioned: set[Any] = set()
        self.lane: str | None = None
        self.held: dict[Any, str] = {}  # vector expressions that a temporary already holds
        # Quotients of the thread's number that all threads of a warp agree on, by (name, divisor).
        self.uniform: dict[tuple[str, int], str] = {}

    # ---- entry points

    def text(self, e: Any, limit: int = 0) -> str:
        """The expression as text, in parentheses if it binds weaker than `limit`."""
        text, strength = self._print(e)
        return f"({text})" if strength < limit else text

    def offset(self, buffer: Any, indices: Any) -> Any:
        """The offset of an element, in elements: by the tile's layout, the buffer's strides, or row-major."""
        indices = [i.base if isinstance(i, n.Ramp) else i for i in indices]
        if buffer in self.layouts:
            return b.as_expr(offset_of(self.layouts[buffer], indices))
        if len(indices) == 1 and not buffer.strides:
            return indices[0]
        total: Any = None
        for index, stride in zip(indices, self.strides(buffer), strict=True):
            term = index if known(stride) == 1 else times(index, stride)
            total = (
                term if total is None or known(total) == 0 else (total if known(term) == 0 else total + term)
            )
        return b.as_expr(0) if total is None else total

    def strides(self, buffer: Any) -> list[Any]:
        """The strides of a buffer's axes, in elements."""
        if buffer.strides:
            return list(buffer.strides)
        out: list[Any] = []
        step: Any = b.as_expr(1)
        for extent in reversed(list(buffer.shape)):
            out.append(step)
            step = times(extent, step)
        return out[::-1]

    def pointer(self, region: Any) -> str:
        """The address of a region's first element: `A_shared + 64 * k`."""
        return self.address(region.source, [r.min for r in region.region])

    def tile_start(self, region: Any) -> str:
        """The address of a tile for hardware that swizzles by itself: its first element's, unswizzled."""
        layout = self.layouts.get(region.source)
        if not isinstance(layout, Composed):
            return self.pointer(region)
        first = b.as_expr(offset_of(layout.layout, [r.min for r in region.region]))
        return self._moved(region.source, first)

    def address(self, buffer: Any, indices: Any) -> str:
        """The address of an element, or of a ramp's first one."""
        return self._moved(buffer, self.offset(buffer, indices))

    def _moved(self, buffer: Any, first: Any) -> str:
        name = self.name(buffer)
        return name if known(first) == 0 else f"{name} + {self.text(first, 12)}"

    def name(self, v: Any) -> str:
        """The variable's name in the text."""
        if v not in self.names:
            raise InternalError(f"{v} is used outside the scope of its definition")
        self.mentioned.add(v)
        return self.names[v]

    # ---- one node

    def _print(self, e: Any) -> tuple[str, int]:
        if e in self.held:
            return f"{self.held[e]}[{self.lane}]", _ATOM
        if swizzled := self._swizzle(e):
            return swizzled, _ATOM
        if type(e) in _BINARY:
            return self._binary(e, *_BINARY[type(e)])
        handler = _HANDLERS.get(type(e))
        if handler is None:
            raise InternalError(f"no printing for an expression of type {type(e).__name__}: {e}")
        return handler(self, e)

    def _binary(self, e: Any, symbol: str, strength: int) -> tuple[str, int]:
        # Both sides at the next strength where C++ would regroup, or where readers would have to think.
        left = strength + (symbol in ("==", "!=", "<", "<=", ">", ">="))
        mixed = strength in (5, 6, 7, 10)
        left_limit, right_limit = (
            (13, 13) if mixed else (left, strength + (symbol not in ("*", "+", "&&", "||")))
        )
        if symbol == "*":
            right_limit = strength + 1
        if symbol == "&&" or symbol == "||":
            left_limit = right_limit = strength
        return f"{self.text(e.a, left_limit)} {symbol} {self.text(e.b, right_limit)}", strength

    def _variable(self, e: Any) -> tuple[str, int]:
        return self.name(e), _ATOM

    def _integer(self, e: Any) -> tuple[str, int]:
        kind, value = n.dtype_of(e), int(e.value)
        if kind == "bool":
            return ("true" if value else "false"), _ATOM
        suffix = {"int64": "ll", "uint64": "ull", "uint32": "u"}.get(kind, "")
        if kind == "int32" and value == -(2**31):
            return "(-2147483647 - 1)", _ATOM
        text = f"{value}{suffix}"
        if kind in ("int8", "uint8", "int16", "uint16"):
            return f"{self.dialect.type_name(kind)}({text})", _ATOM
        return text, (_ATOM if value >= 0 else _UNARY)

    def _float(self, e: Any) -> tuple[str, int]:
        kind, value = n.dtype_of(e), float(e.value)
        if math.isinf(value) or math.isnan(value):
            word = "not_a_number" if math.isnan(value) else "infinity"
            self.use(word)
            text = f"{word}()" if value > 0 or math.isnan(value) else f"-{word}()"
        else:
            text = f"{value:.17g}" if kind == "float64" else f"{value:.9g}"
            text = text if re.search(r"[.e]", text) else text + ".0"
            text += "" if kind == "float64" else "f"
        if kind not in ("float32", "float64"):
            return f"{self.dialect.type_name(kind)}({text})", _ATOM
        return text, (_UNARY if text.startswith("-") else _ATOM)

    def _load(self, e: Any) -> tuple[str, int]:
        buffer = e.source
        if buffer.scope() == "local.var":
            return self.name(buffer), _ATOM
        index = self.text(self.offset(buffer, e.indices))
        last = e.indices[-1]
        if isinstance(last, n.Ramp):
            step = "" if known(last.stride) == 1 else f"{self.text(last.stride, 13)} * "
            shift = f"{step}{self._needed_lane(e)}"
            index = shift if index == "0" else f"{index} + {shift}"
        return f"{self.name(buffer)}[{index}]", _ATOM

    def _needed_lane(self, e: Any) -> str:
        if self.lane is None:
            raise InternalError(f"a vector stands where one element is wanted: {e}")
        return self.lane

    def _ramp(self, e: Any) -> tuple[str, int]:
        step = (
            self._needed_lane(e)
            if known(e.stride) == 1
            else f"{self.text(e.stride, 13)} * {self._needed_lane(e)}"
        )
        return f"{self.text(e.base, 11)} + {step}", 11

    def _broadcast(self, e: Any) -> tuple[str, int]:
        return self._print(e.value)

    def _cast(self, e: Any) -> tuple[str, int]:
        wanted, given = element(n.dtype_of(e)), element(n.dtype_of(e.value))
        if wanted == given:
            return self._print(e.value)
        self.dialect.require(wanted, self.use)
        return f"{self.dialect.type_name(wanted)}({self.text(e.value)})", _ATOM

    def _select(self, e: Any) -> tuple[str, int]:
        return self._choice(e.condition, e.true_value, e.false_value)

    def _choice(self, condition: Any, yes: Any, no: Any) -> tuple[str, int]:
        return f"{self.text(condition, 3)} ? {self.text(yes, 3)} : {self.text(no, 2)}", _CONDITIONAL

    def _not(self, e: Any) -> tuple[str, int]:
        return f"!{self.text(e.a, _UNARY)}", _UNARY

    def _bitwise_not(self, e: Any) -> tuple[str, int]:
        return f"~{self.text(e.a, _UNARY)}", _UNARY

    def _minmax(self, e: Any) -> tuple[str, int]:
        word = "min" if isinstance(e, n.Min) else "max"
        return self._function(word, element(n.dtype_of(e)), [e.a, e.b])

    def _floor_div(self, e: Any) -> tuple[str, int]:
        kind, divisor = element(n.dtype_of(e)), known(e.b)
        if isinstance(e.a, n.Var) and (held := self.uniform.get((self.names.get(e.a, ""), divisor or 0))):
            return held, _ATOM
        if is_float(kind):
            return self._function("floor", kind, [e.a / e.b])
        if kind.startswith("uint") or (self.is_nonnegative(e.a) and self.is_nonnegative(e.b)):
            return self._binary(e, "/", 12)
        if divisor and divisor > 0 and divisor & (divisor - 1) == 0:
            return f"{self.text(e.a, 13)} >> {divisor.bit_length() - 1}", 10
        self.use("floor_div")
        return f"floor_div({self.text(e.a)}, {self.text(e.b)})", _ATOM

    def _floor_mod(self, e: Any) -> tuple[str, int]:
        kind, divisor = element(n.dtype_of(e)), known(e.b)
        if kind.startswith("uint") or (self.is_nonnegative(e.a) and self.is_nonnegative(e.b)):
            return self._binary(e, "%", 12)
        if divisor and divisor > 0 and divisor & (divisor - 1) == 0:
            return f"{self.text(e.a, 11)} & {divisor - 1}", 7
        self.use("floor_mod")
        return f"floor_mod({self.text(e.a)}, {self.text(e.b)})", _ATOM

    def _call(self, e: Any) -> tuple[str, int]:
        name = str(e.op.name)
        word, kind = name.rpartition(".")[2], element(n.dtype_of(e))
        if name.startswith("tl.shuffle_"):
            return self.dialect.shuffle(self, word, e), _ATOM
        if word == "if_then_else":
            return self._choice(*e.args)
        if word == "likely":
            return self._print(e.args[0])
        if word in _CALLED_BINARY:
            return self._called_binary(e, *_CALLED_BINARY[word])
        if word == "bitwise_not":
            return f"~{self.text(e.args[0], _UNARY)}", _UNARY
        if word == "reinterpret":
            self.use("reinterpret")
            return f"reinterpret<{self.dialect.type_name(kind)}>({self.text(e.args[0])})", _ATOM
        if word in ("isnan", "isinf", "isfinite"):
            self.use(f"is_{word[2:]}")
            return f"is_{word[2:]}({self.text(e.args[0])})", _ATOM
        return self._function(word, kind, list(e.args))

    def _called_binary(self, e: Any, symbol: str, strength: int) -> tuple[str, int]:
        return f"{self.text(e.args[0], 13)} {symbol} {self.text(e.args[1], 13)}", strength

    def _swizzle(self, e: Any) -> str | None:
        """x ^ ((x >> shift) & mask), which is how swizzles come, as the call of a helper."""
        whole = operands(e, n.BitwiseXor, "bitwise_xor")
        masked = whole and operands(whole[1], n.BitwiseAnd, "bitwise_and")
        moved = masked and operands(masked[0], n.RShift, "shift_right")
        if not whole or not masked or not moved:
            return None
        shift, mask = known(moved[1]), known(masked[1])
        if shift is None or mask is None or not n.same_structure(whole[0], moved[0]):
            return None
        return f"{self.use('swizzle')}<{shift}, {mask}>({self.text(whole[0])})"

    def _function(self, word: str, kind: str, args: list[Any]) -> tuple[str, int]:
        # 16- and 8-bit floats are computed in float32 and rounded once.
        small = is_small_float(kind)
        called = self.dialect.math(word, "float32" if small else kind, self.use)
        if called is None:
            raise InternalError(f"no printing for {word} of {kind} in {self.dialect.language}")
        inner = ", ".join(f"float({self.text(a)})" if small else self.text(a) for a in args)
        if not small:
            return f"{called}({inner})", _ATOM
        self.dialect.require(kind, self.use)
        return f"{self.dialect.type_name(kind)}({called}({inner}))", _ATOM

    def is_nonnegative(self, e: Any) -> bool:
        """Whether the integer is known not to be negative, from the ranges of loops, threads and extents."""
        return is_nonnegative(e, self.nonnegative)


_HANDLERS: dict[Any, Any] = {
    n.Var: Expressions._variable,
    n.IntImm: Expressions._integer,
    n.FloatImm: Expressions._float,
    n.Load: Expressions._load,
    n.Ramp: Expressions._ramp,
    n.Broadcast: Expressions._broadcast,
    n.Cast: Expressions._cast,
    n.Select: Expressions._select,
    n.Not: Expressions._not,
    n.BitwiseNot: Expressions._bitwise_not,
    n.Min: Expressions._minmax,
    n.Max: Expressions._minmax,
    n.FloorDiv: Expressions._floor_div,
    n.FloorMod: Expressions._floor_mod,
    n.Call: Expressions._call,
}
