"""Vector compares: they write one bit per lane to a scalar pair, and `v_cmpx` also to EXEC."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.gfx942.decode import EXEC, Instruction
from tilelab.emulate.gfx942.formats import F16, F32, F64, I16, I32, I64, U16, U32, U64, Array
from tilelab.emulate.gfx942.operands import Step
from tilelab.emulate.gfx942.vector_form import VectorForm
from tilelab.emulate.gfx942.waves import LANES, Waves

__all__ = ["bind"]

_NAME = re.compile(r"v_cmp(x?)_(\w+)_(f32|f16|f64|i32|u32|i64|u64|i16|u16)$")
_TYPES: dict[str, Any] = {
    "f16": F16,
    "f32": F32,
    "f64": F64,
    "i16": I16,
    "i32": I32,
    "i64": I64,
    "u16": U16,
    "u32": U32,
    "u64": U64,
}


def _unordered(a: Array, b: Array) -> Array:
    return (a != a) | (b != b)


_CONDITIONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lg": lambda a, b: (a < b) | (a > b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~_unordered(a, b),
    "u": _unordered,
    "neq": lambda a, b: ~(a == b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "t": lambda a, b: np.ones((1, 1), bool),
    "f": lambda a, b: np.zeros((1, 1), bool),
}


def _class_of(a: Array, wanted: Array) -> Array:
    """v_cmp_class: whether the value is of one of the ten kinds that the mask names."""
    is_nan, is_zero, is_negative, is_infinite = np.isnan(a), a == 0, np.signbit(a), np.isinf(a)
    is_subnormal = (np.abs(a) < np.finfo(a.dtype).tiny) & ~is_zero
    is_normal = ~(is_nan | is_zero | is_subnormal | is_infinite)
    kinds = [is_nan, is_nan]
    kinds += [kind & is_negative for kind in (is_infinite, is_normal, is_subnormal, is_zero)]
    kinds += [kind & ~is_negative for kind in (is_zero, is_subnormal, is_normal, is_infinite)]
    asked = [(wanted >> U32(bit) & U32(1)) == 1 for bit in range(len(kinds))]
    return np.logical_or.reduce([kind & ask for kind, ask in zip(kinds, asked, strict=True)])


def bind(instruction: Instruction) -> Step | None:
    """The step of a vector compare, or None if it is not one."""
    found = _NAME.match(instruction.name)
    if not found or (found[2] not in _CONDITIONS and found[2] != "class"):
        return None
    sets_exec, condition, dtype = bool(found[1]), found[2], _TYPES[found[3]]
    form = VectorForm(instruction)
    first = form.source(1, dtype)
    second = form.source(2, U32 if condition == "class" else dtype)
    decide = _class_of if condition == "class" else _CONDITIONS[condition]
    target = instruction.operands[0].register

    def step(w: Waves) -> None:
        result = np.broadcast_to(decide(first(w), second(w)), (w.count, LANES))
        w.write_mask(target, result)
        if sets_exec:
            w.write_scalar_pair(EXEC, w.read_scalar_pair(target))

    return step
