"""The kinds of reduction: what an element contributes, how two contributions combine, and what changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilelab.errors import TileError
from tilelab.ir import build as b

__all__ = ["REDUCTIONS", "Reduction", "reduction"]


@dataclass(frozen=True)
class Reduction:
    """A kind of reduction; `prepare` maps an element, `combine` joins two results, `identity(dtype)` is
    neutral.
    """

    name: str
    prepare: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    identity: Callable[[str], Any]


def _same(x: Any) -> Any:
    return x


def _zero(dtype: str) -> Any:
    return b.const(0, dtype)


REDUCTIONS: tuple[Reduction, ...] = (
    Reduction("sum", _same, lambda x, y: x + y, _zero),
    Reduction("max", _same, b.maximum, b.lowest),
    Reduction("min", _same, b.minimum, b.highest),
    Reduction("abssum", b.absolute, lambda x, y: x + y, _zero),
    Reduction("absmax", b.absolute, b.maximum, _zero),
    Reduction("bitand", _same, lambda x, y: b.bitwise("and", x, y), lambda dtype: b.const(-1, dtype)),
    Reduction("bitor", _same, lambda x, y: b.bitwise("or", x, y), _zero),
    Reduction("bitxor", _same, lambda x, y: b.bitwise("xor", x, y), _zero),
)


def reduction(name: str) -> Reduction:
    """The kind of this name. Raises TL201 for an unknown one."""
    for kind in REDUCTIONS:
        if kind.name == name:
            return kind
    raise TileError(
        "TL201", f"no reduction is called {name!r}", help="use " + ", ".join(r.name for r in REDUCTIONS)
    )


def propagating(kind: Reduction) -> Reduction:
    """The kind whose results are NaN wherever an element is; operands are evaluated more than once."""

    def combine(x: Any, y: Any) -> Any:
        return _or_nan(y, _or_nan(x, kind.combine(x, y)))

    return replace(kind, combine=combine)


def _or_nan(value: Any, otherwise: Any) -> Any:
    return b.select(b.call("tirx.isnan", value, dtype="bool"), value, otherwise)
