"""What the shared printer asks of a language; CUDA and HIP fill it in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tilelab.codegen.helpers import Helper
from tilelab.codegen.names import LOOP
from tilelab.codegen.types import is_float
from tilelab.errors import InternalError
from tilelab.hardware.model import Instruction, bits
from tilelab.ir import nodes as n
from tilelab.ir.build import as_expr, cast, plain
from tilelab.ir.tile_ops import operand
from tilelab.trace.code import Parameter

__all__ = ["Dialect"]

Use = Callable[[str], str]

TYPES = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "int",
    "uint32": "u32",
    "int64": "i64", "uint64": "u64", "float16": "half", "bfloat16": "bfloat16", "float32": "float",
    "float64": "double",
}  # fmt: skip

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
_ABBREVIATED = ("i8", "u8", "i16", "u16", "u32", "i64", "u64")


class Dialect:
    """The words of one language, and how it prints tile operations (one method `op_<name>` each)."""

    language = ""
    warp = 32
    dynamic_pool = True  # whether the launch gives the pool's size
    helpers: dict[str, Helper]
    words: Mapping[int, str]
    math_words: Mapping[tuple[str, str], str]
    extra_types: Mapping[str, str] = MappingProxyType({})

    # ---- words

    def type_name(self, dtype: str) -> str:
        """The C++ type of one element."""
        name = self.extra_types.get(dtype) or TYPES.get(dtype)
        if name is None:
            raise InternalError(f"no type for {dtype} in {self.language}")
        return name

    def require(self, dtype: str, use: Use) -> None:
        """Note that the type is used, for those that a helper declares."""
        if (name := self.type_name(dtype)) in self.helpers:
            use(name)
        elif name in _ABBREVIATED:
            use("integers")

    def math(self, word: str, dtype: str, use: Use) -> str | None:
        """The function that computes `word` for a dtype, or None."""
        found = self.math_words.get((word, dtype))
        return use(found) if found in self.helpers else found

    def packed_conversion(self, wanted: str, given: str) -> str | None:
        """The helper that converts two elements at once, where there is one."""
        name = f"pack_{self.type_name(wanted)}"
        return name if given == "float32" and name in self.helpers else None

    def shuffle(self, expressions: Any, word: str, call: Any) -> str:
        """An exchange of values between the lanes of a warp; those under 32 bits travel as float or int."""
        name, kind = expressions.use(word), n.dtype_of(call)
        value, by = (expressions.text(a) for a in call.args)
        if bits(kind) >= 32:
            return f"{name}({value}, {by})"
        self.require(kind, expressions.use)
        return f"{self.type_name(kind)}({name}({'float' if is_float(kind) else 'int'}({value}), {by}))"

    def index(self, tag: str) -> str:
        """A launch index such as threadIdx.x."""
        raise NotImplementedError

    def known_range(self, name: str, tag: str, block: tuple[int, int, int]) -> str:
        """What the compiler is told of an index, where it does not know the range by itself."""
        return ""

    def uniform(self, text: str, use: Use) -> str:
        """A value that is the same on all threads of a warp, told to the compiler."""
        raise NotImplementedError

    def signature(self, printer: Any, parameters: tuple[Parameter, ...]) -> str:
        """The kernel's head, up to the opening brace."""
        raise NotImplementedError

    def pool(self, size: int) -> str:
        """The declaration of the pool of shared memory."""
        raise NotImplementedError

    def word(self, size: int, use: Use) -> str | None:
        """The type that moves `size` bytes at once, or None."""
        return self.words.get(size)

    # ---- tile operations

    def tile_call(self, printer: Any, name: str, call: Any) -> None:
        """Print one tile operation."""
        method = getattr(self, f"op_{name}", None)
        if method is None:
            raise InternalError(f"no printing for the operation {name} in {self.language}")
        method(printer, call)

    def op_atomic_add(self, p: Any, call: Any) -> None:
        """One atomic addition per element of the region; pairs of 16-bit floats go together."""
        target: Any = operand(call, "dst")
        value = operand(call, "value")
        kind = n.dtype_of(target.source)
        name, count = self.type_name(kind), _extent(target)
        scalar = not isinstance(value, n.Region)
        step = 2 if f"atomic_add_pair_{name}" in self.helpers and count % 2 == 0 else 1
        single = f"atomic_add_{name}" if f"atomic_add_{name}" in self.helpers else "atomic_add"
        helper = p.use(f"atomic_add_pair_{name}" if step == 2 else single)
        first = p.pointer(target)
        given = p.text(cast(kind, as_expr(value, kind))) if scalar else p.pointer(value)
        if count == step:
            values = ", ".join([given if scalar else f"{_indexed(given)}[{i}]" for i in range(step)])
            p.write(f"{helper}({first}, {values});")
            return
        values = ", ".join(
            given if scalar else f"{_indexed(given)}[{LOOP}{f' + {j}' if j else ''}]" for j in range(step)
        )
        p.write("#pragma unroll")
        p.write(
            f"for (int {LOOP} = 0; {LOOP} < {count}; {LOOP} += {step}) {helper}({first} + {LOOP}, {values});"
        )


def config(call: Any, key: str, default: Any = None) -> Any:
    """A keyword of a tile operation as a Python value (or the expression it is)."""
    held = {str(k): v for k, v in call.config.items()}
    return plain(held[key]) if key in held else default


def _indexed(pointer: str) -> str:
    return f"({pointer})" if " " in pointer else pointer


def _extent(region: Any) -> int:
    total = 1
    for r in region.region:
        if not isinstance(r.extent, n.IntImm):
            raise InternalError(f"a region of unknown extent: {region}")
        total *= int(r.extent.value)
    return total


def row_name(row: Instruction) -> str:
    """The row's name as a C++ identifier."""
    return re.sub(r"\W", "_", row.name)
