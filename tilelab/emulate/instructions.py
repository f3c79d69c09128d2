"""`T.issue`: hardware rows executed as their rows say, from lanes' registers and addresses.

A row's operands, scope, completion and proxy all come from `tilelab.hardware.row`: no instruction is known
by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.async_rows import tma, warpgroup_matrix
from tilelab.emulate.copy_rows import copy_async, load_matrix, move, store_matrix
from tilelab.emulate.lanes import put, registers_of, whole_groups
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import and_mask
from tilelab.emulate.tile_ops import is_region
from tilelab.hardware import Completes, Instruction, row
from tilelab.hardware.meanings import emulate_registers

__all__ = ["issue"]


def issue(context, operands, config, mask) -> None:
    """Execute the row that the keyword `row` names."""
    name = str(config["row"])
    instruction = row(name)
    issued = context.machine.issued
    issued[name] = issued.get(name, 0) + 1
    wanted = len(instruction.operands) + (instruction.completes is Completes.MBARRIER)
    regions, rest = list(operands[:wanted]), operands[wanted:]
    if len(regions) < wanted or not all(is_region(r) for r in regions) or len(rest) > 1:
        raise fault("TL201", f"{name} takes {wanted} operands and a predicate", context.span())
    predicate = rest[0] if rest else None
    if instruction.family not in ("wgmma",) and instruction.scope.threads > 1:
        mask = whole_groups(context, instruction, mask)
    if mask is not None and not mask.any():
        return
    _FAMILIES[instruction.family](context, instruction, regions, predicate, config, mask)


def _matrix(context, instruction: Instruction, regions, predicate, config, mask) -> None:
    d, a, b = regions
    size = instruction.scope.threads
    held_a = registers_of(context, a, instruction.a, size, mask)
    held_b = registers_of(context, b, instruction.b, size, mask)
    clear = bool(config.get("clear"))
    old = registers_of(context, d, instruction.d, size, mask, check=not clear)
    if clear:
        old = np.zeros_like(old)
    mask = mask if predicate is None else and_mask(mask, np.broadcast_to(predicate, (context.count,)))
    put(context, d, emulate_registers(instruction, held_a, held_b, old), mask)


_FAMILIES: dict[str, Callable[..., Any]] = {
    "mma": _matrix,
    "mfma": _matrix,
    "vector": _matrix,
    "fma": _matrix,
    "load": move,
    "store": move,
    "cp_async": copy_async,
    "ldmatrix": load_matrix,
    "stmatrix": store_matrix,
    "tma": tma,
    "wgmma": warpgroup_matrix,
}
