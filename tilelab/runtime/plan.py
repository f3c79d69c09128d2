"""The launch plan of a printed kernel: parameter rows, grid, block, shared memory, and what it presumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tilelab.errors import InternalError
from tilelab.runtime.check import evaluate
from tilelab.trace.code import CodeText, Parameter, TensorMap
from tilelab.trace.schema import Line

__all__ = ["LaunchPlan", "code_from_json", "code_to_json", "plan_of"]


@dataclass(frozen=True)
class LaunchPlan:
    """How a compiled kernel is launched.

    `rows` are the parameters in order (buffer, scalar or tensor_map with its recipe), `grid` the extents of
    x, y and z as Python expressions of the kernel's sizes, `block` the threads, `shared_bytes` the dynamic
    shared memory. Every tensor starts at a multiple of 16 bytes but those in `loose`, (name, bytes) of each.
    """

    entry: str
    rows: tuple[Parameter, ...]
    grid: tuple[str, str, str]
    block: tuple[int, int, int]
    shared_bytes: int
    loose: tuple[tuple[str, int], ...] = ()

    def grid_at(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """The extents of the grid for these sizes."""
        x, y, z = (evaluate(e, sizes) for e in self.grid)
        return x, y, z

    def arguments(self, values: list[Any], sizes: Mapping[str, int]) -> list[Any]:
        """The values of buffer and scalar rows in order, from those of the parameters and the sizes."""
        out = []
        for row in self.rows:
            if row.kind == "tensor_map":
                raise InternalError(
                    f"{self.entry}: {row.name} is a tensor map, which only a CUDA device takes"
                )
            out.append(values[row.index] if row.index is not None else sizes[row.name])
        return out


def plan_of(code: CodeText, loose: tuple[tuple[str, int], ...] = ()) -> LaunchPlan:
    """The launch plan of a printed kernel."""
    return LaunchPlan(code.entry, code.parameters, code.grid, code.block, code.shared_bytes, loose)


def code_to_json(code: CodeText) -> bytes:
    """A printed kernel as the cache keeps it."""
    return json.dumps(asdict(code)).encode()


def code_from_json(data: bytes) -> CodeText:
    """The printed kernel that `code_to_json` wrote."""
    held = json.loads(data)
    held["lines"] = tuple(
        Line(x["text"], tuple(x["source"]) if x["source"] else None, x["made_by"], tuple(x["buffers"]),
             tuple(x["call_sites"]))
        for x in held["lines"]
    )  # fmt: skip
    held["parameters"] = tuple(_parameter(p) for p in held["parameters"])
    held["buffers"] = tuple((name, index) for name, index in held["buffers"])
    for key in ("grid", "block", "helpers"):
        held[key] = tuple(held[key])
    return CodeText(**held)


def _parameter(held: dict[str, Any]) -> Parameter:
    recipe = held.pop("tensor_map")
    if recipe is not None:
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in recipe.items()}
        recipe = TensorMap(**fields)
    return Parameter(**held, tensor_map=recipe)
