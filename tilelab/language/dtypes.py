"""Element types of the language: `T.float16` and its like are strings that can also convert a value."""

from __future__ import annotations

import builtins
import difflib
import importlib
import re
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError
from tilelab.language.lazy import LazyModule

if TYPE_CHECKING:
    from tilelab.language import values
else:
    values = LazyModule("tilelab.language.values")

__all__ = ["ALIASES", "DTYPES", "dtype"]

DTYPES: tuple[str, ...] = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
)  # fmt: skip

# Other spellings that TileLang and Python's own types have.
ALIASES: dict[str, str] = {
    "float": "float32", "half": "float16", "double": "float64", "int": "int32", "long": "int64",
    "short": "int16", "uint": "uint32", "boolean": "bool", "float8_e4m3": "float8_e4m3fn",
    "bfloat": "bfloat16",
}  # fmt: skip


class dtype(str):
    """An element type such as `float16`: equal to its name, and callable to convert a value.

    Built from a name, another dtype, a Python type, or a torch or NumPy dtype.
    """

    __slots__ = ()

    def __new__(cls, value: Any) -> dtype:
        name = value if isinstance(value, str) else _foreign_name(value)
        name = ALIASES.get(name, name)
        if name not in DTYPES:
            near = difflib.get_close_matches(str(name), [*DTYPES, *ALIASES], 3)
            help = f"did you mean {' or '.join(near)}?" if near else "dtypes: " + ", ".join(DTYPES)
            raise TileError("TL112", f"{value!r} is not a dtype that this version knows", help=help)
        return super().__new__(cls, name)

    def __call__(self, value: Any) -> Any:
        return values.convert(value, self)

    def __repr__(self) -> str:
        return f"T.{self!s}"

    @property
    def bits(self) -> int:
        """Size of an element in bits."""
        return 8 if self == "bool" else int(re.search(r"\d+", self)[0])  # type: ignore[index]

    @property
    def bytes(self) -> int:
        """Size of an element in bytes."""
        return self.bits // 8

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes, by NumPy's and torch's name."""
        return self.bytes

    @property
    def is_float(self) -> builtins.bool:
        """Whether it is a floating-point type."""
        return "float" in self

    @property
    def is_signed(self) -> builtins.bool:
        """Whether it is a signed integer or a floating-point type."""
        return self.is_float or self.startswith("int")

    def as_torch(self) -> Any:
        """The torch dtype of the same name."""
        return getattr(importlib.import_module("torch"), str(self))


def _foreign_name(value: Any) -> str:
    """The name of a Python type, or of a torch or NumPy dtype."""
    if value in (builtins.float, builtins.int, builtins.bool):
        return value.__name__
    text = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    return str(text).removeprefix("torch.")
