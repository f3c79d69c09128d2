"""Scalar instructions: arithmetic on scalar registers, compares, EXEC manipulation.

Tables hold pure functions of NumPy arrays; `bind` turns an instruction into a step. Results that set SCC
say how.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942.decode import EXEC, Instruction
from tilelab.emulate.gfx942.formats import I32, I64, U32, U64, Array
from tilelab.emulate.gfx942.operands import Step, scalar32, scalar64
from tilelab.emulate.gfx942.salu_table import (
    CARRY,
    COMPARE,
    COUNT64,
    LOGIC,
    MIN_MAX,
    NONZERO,
    NONZERO64,
    OVERFLOW,
    PLAIN,
)
from tilelab.emulate.gfx942.waves import Waves

__all__ = ["bind"]

_COMPARE_NAME = re.compile(r"s_cmpk?_(eq|lg|gt|ge|lt|le)_(i32|u32|u64)$")
_SAVE_EXEC_NAME = re.compile(r"s_(and|or|xor|andn2|orn2|andn1)_saveexec_b64$")
_SHIFT_ADD_NAME = re.compile(r"s_lshl([1-4])_add_u32$")


def bind(instruction: Instruction) -> Step | None:
    """The step of a scalar arithmetic instruction, or None if it is not one."""
    name = instruction.name
    for table, maker in ((PLAIN, _bind_plain), (NONZERO, _bind_nonzero), (NONZERO64, _bind_nonzero64)):
        if name in table:
            return maker(instruction, *table[name])
    if name in COUNT64:
        return _bind_count64(instruction, *COUNT64[name])
    if name in CARRY:
        return _bind_carry(instruction, CARRY[name])
    if name in OVERFLOW:
        return _bind_overflow(instruction, OVERFLOW[name])
    if name in MIN_MAX:
        return _bind_min_max(instruction, MIN_MAX[name])
    if found := _COMPARE_NAME.match(name):
        return _bind_compare(instruction, COMPARE[found[1]], found[2])
    if found := _SAVE_EXEC_NAME.match(name):
        return _bind_save_exec(instruction, LOGIC[found[1]])
    if found := _SHIFT_ADD_NAME.match(name):
        return _bind_shift_add(instruction, int(found[1]))
    special = _SPECIAL.get(name)
    return special(instruction) if special else None


def _sources32(instruction: Instruction, count: int) -> list[Callable[[Waves], Array]]:
    return [scalar32(instruction, operand) for operand in instruction.operands[1 : 1 + count]]


def _destination(instruction: Instruction) -> int:
    return instruction.operands[0].register


def _bind_plain(instruction: Instruction, count: int, function: Callable[..., Array]) -> Step:
    target, sources = _destination(instruction), _sources32(instruction, count)
    return lambda w: w.write_scalar(target, function(*[read(w) for read in sources]))


def _bind_nonzero(instruction: Instruction, count: int, function: Callable[..., Array]) -> Step:
    target, sources = _destination(instruction), _sources32(instruction, count)

    def step(w: Waves) -> None:
        result = function(*[read(w) for read in sources])
        w.scc[w.selected] = result != 0
        w.write_scalar(target, result)

    return step


def _bind_nonzero64(instruction: Instruction, count: int, function: Callable[..., Array]) -> Step:
    target = _destination(instruction)
    operands = instruction.operands[1 : 1 + count]
    sources = [scalar64(instruction, operand) for operand in operands]
    if "_lsh" in instruction.name or "_ash" in instruction.name:
        shift = scalar32(instruction, operands[1])
        sources[1] = lambda w: shift(w).astype(U64)

    def step(w: Waves) -> None:
        result = function(*[read(w) for read in sources])
        w.scc[w.selected] = result != 0
        w.write_scalar_pair(target, result)

    return step


def _bind_carry(instruction: Instruction, function: Callable[[Array, Array, Array], Array]) -> Step:
    target, sources = _destination(instruction), _sources32(instruction, 2)

    def step(w: Waves) -> None:
        a, b = (read(w).astype(I64) for read in sources)
        result = function(a, b, w.scc[w.selected].astype(I64))
        w.scc[w.selected] = (result > 0xFFFFFFFF) | (result < 0)
        w.write_scalar(target, (result & 0xFFFFFFFF).astype(U32))

    return step


def _bind_overflow(instruction: Instruction, function: Callable[[Array, Array], Array]) -> Step:
    target = _destination(instruction)
    operands = instruction.operands[-2:]
    sources = [scalar32(instruction, operand) for operand in operands]

    def step(w: Waves) -> None:
        a, b = (read(w).view(I32).astype(I64) for read in sources)
        exact = function(a, b)
        w.scc[w.selected] = exact.astype(I32) != exact
        w.write_scalar(target, exact.astype(I32).view(U32))

    return step


def _bind_min_max(instruction: Instruction, function: Callable[[Array, Array], Array]) -> Step:
    target, sources = _destination(instruction), _sources32(instruction, 2)
    dtype = I32 if "_i32" in instruction.name else U32

    def step(w: Waves) -> None:
        a, b = (read(w).view(dtype) for read in sources)
        result = function(a, b)
        w.scc[w.selected] = result == a
        w.write_scalar(target, result.view(U32))

    return step


def _bind_compare(instruction: Instruction, function: Callable[[Array, Array], Array], kind: str) -> Step:
    if kind == "u64":
        wide = [scalar64(instruction, operand) for operand in instruction.operands]
        return lambda w: w.scc.__setitem__(w.selected, function(wide[0](w), wide[1](w)))
    dtype = I32 if kind == "i32" else U32
    first, second = (scalar32(instruction, operand) for operand in instruction.operands)
    return lambda w: w.scc.__setitem__(w.selected, function(first(w).view(dtype), second(w).view(dtype)))


def _bind_save_exec(instruction: Instruction, function: Callable[[Array, Array], Array]) -> Step:
    target, source = _destination(instruction), scalar64(instruction, instruction.operands[1])

    def step(w: Waves) -> None:
        before = w.read_scalar_pair(EXEC)
        after = function(source(w), before)
        w.write_scalar_pair(target, before)
        w.write_scalar_pair(EXEC, after)
        w.scc[w.selected] = after != 0

    return step


def _bind_shift_add(instruction: Instruction, shift: int) -> Step:
    target, sources = _destination(instruction), _sources32(instruction, 2)

    def step(w: Waves) -> None:
        a, b = (read(w).astype(U64) for read in sources)
        result = (a << U64(shift)) + b
        w.scc[w.selected] = result > U64(0xFFFFFFFF)
        w.write_scalar(target, (result & U64(0xFFFFFFFF)).astype(U32))

    return step


def _move64(instruction: Instruction) -> Step:
    target, source = _destination(instruction), scalar64(instruction, instruction.operands[1])
    return lambda w: w.write_scalar_pair(target, source(w))


def _bind_count64(instruction: Instruction, function: Callable[[Array], Array], sets_scc: bool) -> Step:
    target, source = _destination(instruction), scalar64(instruction, instruction.operands[1])

    def step(w: Waves) -> None:
        result = function(source(w))
        if sets_scc:
            w.scc[w.selected] = result != 0
        w.write_scalar(target, result)

    return step


def _set_bit(instruction: Instruction) -> Step:
    """s_bitset0_b32 and s_bitset1_b32."""
    target = _destination(instruction)
    old, index = (scalar32(instruction, operand) for operand in instruction.operands)
    sets = instruction.name == "s_bitset1_b32"

    def step(w: Waves) -> None:
        bit = U32(1) << (index(w) & U32(31))
        w.write_scalar(target, old(w) | bit if sets else old(w) & ~bit)

    return step


def _select32(instruction: Instruction) -> Step:
    target, (a, b) = _destination(instruction), _sources32(instruction, 2)
    return lambda w: w.write_scalar(target, np.where(w.scc[w.selected], a(w), b(w)))


def _select64(instruction: Instruction) -> Step:
    target = _destination(instruction)
    a, b = (scalar64(instruction, operand) for operand in instruction.operands[1:3])
    return lambda w: w.write_scalar_pair(target, np.where(w.scc[w.selected], a(w), b(w)))


def _move_if(instruction: Instruction) -> Step:
    target = _destination(instruction)
    old, new = (scalar32(instruction, operand) for operand in instruction.operands[:2])
    return lambda w: w.write_scalar(target, np.where(w.scc[w.selected], new(w), old(w)))


def _multiply_constant(instruction: Instruction) -> Step:
    target = _destination(instruction)
    a, b = (scalar32(instruction, operand) for operand in instruction.operands[:2])
    return lambda w: w.write_scalar(target, a(w) * b(w))


def _test_bit(instruction: Instruction) -> Step:
    wanted = U32(1 if instruction.name == "s_bitcmp1_b32" else 0)
    value, index = (scalar32(instruction, operand) for operand in instruction.operands)
    return lambda w: w.scc.__setitem__(w.selected, (value(w) >> (index(w) & U32(31)) & U32(1)) == wanted)


_SPECIAL: dict[str, Callable[[Instruction], Step]] = {
    "s_mov_b64": _move64,
    "s_bitset0_b32": _set_bit,
    "s_bitset1_b32": _set_bit,
    "s_cselect_b32": _select32,
    "s_cselect_b64": _select64,
    "s_cmov_b32": _move_if,
    "s_mulk_i32": _multiply_constant,
    "s_bitcmp0_b32": _test_bit,
    "s_bitcmp1_b32": _test_bit,
}
