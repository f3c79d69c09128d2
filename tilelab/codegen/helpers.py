"""Helpers: the small inline functions that generated code calls; a kernel's text holds those that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilelab.errors import InternalError

__all__ = ["Helper", "in_order", "table"]


@dataclass(frozen=True)
class Helper:
    """A piece of C++ printed before the kernel when it is used, after the helpers that it `needs`."""

    name: str
    text: str
    needs: tuple[str, ...] = ()


def table(*helpers: Helper) -> dict[str, Helper]:
    """Helpers by name."""
    return {helper.name: helper for helper in helpers}


def in_order(used: Iterable[str], known: Mapping[str, Helper]) -> list[Helper]:
    """The used helpers and all they need, each after its needs; otherwise in the table's order."""
    needed: set[str] = set()
    waiting = list(used)
    while waiting:
        name = waiting.pop()
        if name not in known:
            raise InternalError(f"generated code uses a helper {name!r} that no table holds")
        if name not in needed:
            needed.add(name)
            waiting += known[name].needs
    out: list[Helper] = []
    placed: set[str] = set()

    def put(name: str) -> None:
        if name not in placed:
            placed.add(name)
            for need in known[name].needs:
                put(need)
            out.append(known[name])

    for name in known:
        if name in needed:
            put(name)
    return out
