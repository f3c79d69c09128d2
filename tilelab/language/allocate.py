"""Memory on the chip: shared tiles, fragments, private arrays and variables."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileError
from tilelab.language.builder import current
from tilelab.language.public import public
from tilelab.language.store import assign
from tilelab.language.values import Tile, Variable

__all__ = ["alloc_fragment", "alloc_local", "alloc_shared", "alloc_var"]

_SHARED = ("shared.dyn", "shared")


@public()
def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> Tile:
    """A tile in the block's shared memory."""
    if scope not in _SHARED:
        raise TileError("TL103", f"T.alloc_shared(scope={scope!r})", help="scopes: " + ", ".join(_SHARED))
    return current("T.alloc_shared").allocate(shape, dtype, "shared.dyn", "shared")


@public()
def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> Tile:
    """A tile spread over the registers of the block's threads."""
    if scope != "local.fragment":
        raise TileError("TL103", f"T.alloc_fragment(scope={scope!r})", help="scopes: local.fragment")
    return current("T.alloc_fragment").allocate(shape, dtype, "local.fragment", "fragment")


@public()
def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> Tile:
    """An array that each thread has for itself."""
    if scope != "local":
        raise TileError("TL103", f"T.alloc_local(scope={scope!r})", help="scopes: local")
    return current("T.alloc_local").allocate(shape, dtype, "local", "local")


@public()
def alloc_var(dtype: Any, *args: Any, scope: str = "local.var", init: Any = None) -> Variable:
    """A mutable scalar of each thread; assignment to its name stores a new value."""
    if args and isinstance(args[0], str):
        scope, args = args[0], args[1:]
    if len(args) > 1 or (args and init is not None) or scope != "local.var":
        raise TileError(
            "TL103", "T.alloc_var takes a dtype and a first value", help="T.alloc_var(dtype, init=0)"
        )
    variable = Variable(current("T.alloc_var").allocate((1,), dtype, "local.var", "var"))
    first = args[0] if args else init
    if first is not None:
        assign(variable, first)
    return variable
