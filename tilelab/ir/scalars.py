"""How reductions join two values, and the value they start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from tilelab.ir.build import cast, const
from tilelab.ir.nodes import Expr, dtype_of

__all__ = ["REDUCTIONS", "Reduction"]


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _infinity(dtype: str, text: str) -> Expr:
    wide = dtype if dtype in ("float16", "float32", "float64") else "float32"
    return cast(dtype, tirx.const(float(text), wide))


def _lowest(dtype: str) -> Expr:
    return _infinity(dtype, "-inf") if _is_float(dtype) else tirx.min_value(dtype)


def _highest(dtype: str) -> Expr:
    return _infinity(dtype, "inf") if _is_float(dtype) else tirx.max_value(dtype)


def _zero(dtype: str) -> Expr:
    return const(0, dtype)


def _ones(dtype: str) -> Expr:
    if dtype == "bool":
        return const(True, dtype)
    return tirx.max_value(dtype) if dtype.startswith("uint") else const(-1, dtype)


def _absolute(value: Expr) -> Expr:
    return tirx.abs(value)


def _itself(value: Expr) -> Expr:
    return value


def _largest(old: Expr, new: Expr) -> Expr:
    return tirx.max(old, new)


def _smallest(old: Expr, new: Expr) -> Expr:
    return tirx.min(old, new)


@dataclass(frozen=True)
class Reduction:
    """One kind: the value that changes nothing, what each element becomes first, and how two values become one."""

    kind: str
    start: Callable[[str], Expr]
    term: Callable[[Expr], Expr]
    join: Callable[[Expr, Expr], Expr]

    def joined(self, old: Expr, new: Expr, nan_propagate: bool = False) -> Expr:
        """The two values as one; with `nan_propagate` a NaN on either side wins."""
        value = self.join(old, new)
        if not nan_propagate or not _is_float(dtype_of(old)) or self.kind in ("sum", "abssum"):
            return value
        return tirx.Select(tirx.NE(new, new), new, tirx.Select(tirx.NE(old, old), old, value))


def _sum(old: Expr, new: Expr) -> Expr:
    return old + new


REDUCTIONS: dict[str, Reduction] = {
    r.kind: r
    for r in (
        Reduction("sum", _zero, _itself, _sum),
        Reduction("max", _lowest, _itself, _largest),
        Reduction("min", _highest, _itself, _smallest),
        Reduction("abssum", _zero, _absolute, _sum),
        Reduction("absmax", _zero, _absolute, _largest),
        Reduction("bitand", _ones, _itself, tirx.bitwise_and),
        Reduction("bitor", _zero, _itself, tirx.bitwise_or),
        Reduction("bitxor", _zero, _itself, tirx.bitwise_xor),
    )
}

