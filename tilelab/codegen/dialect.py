"""What the shared printer asks of a language; CUDA and HIP fill it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilelab.codegen.code import Parameter
from tilelab.codegen.helpers import Helper
from tilelab.errors import InternalError
from tilelab.ir import nodes as n
from tilelab.ir.tile_ops import op_of, operand

__all__ = ["Dialect"]

Use = Callable[[str], str]

TYPES = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "int", "uint32": "u32",
    "int64": "i64", "uint64": "u64", "float16": "half", "bfloat16": "bfloat16", "float32": "float",
    "float64": "double",
}  # fmt: skip


class Dialect:
    """The words of one language, and how it prints tile operations (one method `op_<name>` each)."""

    language = ""
    warp = 32
    dynamic_pool = True  # whether the launch gives the pool's size
    helpers: Mapping[str, Helper] = {}
    words: Mapping[int, str] = {}
    math_words: Mapping[tuple[str, str], str] = {}
    extra_types: Mapping[str, str] = {}

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

    def math(self, word: str, dtype: str, use: Use) -> str | None:
        """The function that computes `word` for a dtype, or None."""
        found = self.math_words.get((word, dtype))
        return use(found) if found in self.helpers else found

    def packed_conversion(self, wanted: str, given: str) -> str | None:
        """The helper that converts two elements at once, where there is one."""
        name = f"pack_{self.type_name(wanted)}"
        return name if given == "float32" and name in self.helpers else None

    def shuffle(self, expressions: Any, word: str, call: Any) -> str:
        """An exchange of values between the lanes of a warp."""
        name = expressions.use(word)
        return f"{name}({expressions.text(call.args[0])}, {expressions.text(call.args[1])})"

    def index(self, tag: str) -> str:
        """A launch index such as threadIdx.x."""
        raise NotImplementedError

    def uniform(self, text: str, use: Use) -> str:
        """A value that is the same on all threads of a warp, told to the compiler."""
        raise NotImplementedError

    def signature(self, printer: Any, parameters: tuple[Parameter, ...]) -> str:
        """The kernel's head, up to the opening brace."""
        raise NotImplementedError

    def pool(self, size: int) -> str:
        """The declaration of the pool of shared memory."""
        raise NotImplementedError

    # ---- tile operations

    def tile_call(self, printer: Any, name: str, call: Any) -> None:
        """Print one tile operation."""
        method = getattr(self, f"op_{name}", None)
        if method is None:
            raise InternalError(f"no printing for the operation {name} in {self.language}")
        method(printer, call)

    def op_atomic_add(self, p: Any, call: Any) -> None:
        """One atomic addition per element of the region; pairs of 16-bit floats go together."""
        target, value = operand(call, "dst"), operand(call, "value")
        kind = n.dtype_of(target.source)
        count = _extent(target)
        scalar = not isinstance(value, n.Region)
        helper = p.use(
            "atomic_add_pair" if kind in ("float16", "bfloat16") and count % 2 == 0 else "atomic_add"
        )
        step = 2 if helper == "atomic_add_pair" else 1
        first, given = p.pointer(target), p.text(value) if scalar else p.pointer(value)
        if count == step:
            values = ", ".join([given if scalar else f"({given})[{i}]" for i in range(step)])
            p.write(f"{helper}({first}, {values});")
            return
        values = ", ".join(
            given if scalar else f"({given})[i + {j}]" if j else f"({given})[i]" for j in range(step)
        )
        p.write("#pragma unroll")
        p.write(f"for (int i = 0; i < {count}; i += {step}) {helper}({first} + i, {values});")


def config(call: Any, key: str, default: Any = None) -> Any:
    """A keyword of a tile operation as a Python value (or the expression it is)."""
    from tilelab.ir.build import plain

    held = {str(k): v for k, v in call.config.items()}
    return plain(held[key]) if key in held else default


def _extent(region: Any) -> int:
    total = 1
    for r in region.region:
        if not isinstance(r.extent, n.IntImm):
            raise InternalError(f"a region of unknown extent: {region}")
        total *= int(r.extent.value)
    return total


def operation(call: Any) -> str:
    """The operation's name."""
    return op_of(call).name
