"""Scalar instructions: arithmetic on scalar registers, compares, EXEC manipulation.

Tables hold pure functions of NumPy arrays; `bind` turns an instruction into a step. Results that set SCC
say how.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942.decode import EXEC, Instruction
from tilelab.emulate.gfx942.formats import I16, I32, I64, U8, U16, U32, U64, Array, reverse_bits
from tilelab.emulate.gfx942.operands import Step, scalar32, scalar64
from tilelab.emulate.gfx942.waves import Waves

__all__ = ["bind"]

_LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "andn1": lambda a, b: ~a & b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def _signed(x: Array) -> Array:
    return x.view(I32)


def _bit_count(x: Array) -> Array:
    return np.array([int(value).bit_count() for value in x.tolist()], U32)


def _first_one(x: Array) -> Array:
    return np.array([(v & -v).bit_length() - 1 for v in x.astype(I64).tolist()], I64).astype(I32).view(U32)


def _leading_zeros(x: Array) -> Array:
    return np.array([32 - v.bit_length() if v else -1 for v in x.tolist()], I64).astype(I32).view(U32)


# name → (number of sources, function of uint32 arrays); SCC is left alone
_PLAIN: dict[str, tuple[int, Callable[..., Array]]] = {
    "s_mov_b32": (1, lambda a: a),
    "s_movk_i32": (1, lambda a: a),
    "s_mul_i32": (2, lambda a, b: a * b),
    "s_mul_hi_u32": (2, lambda a, b: (a.astype(U64) * b >> U64(32)).astype(U32)),
    "s_mul_hi_i32": (2, lambda a, b: (_signed(a).astype(I64) * _signed(b) >> 32).astype(I32).view(U32)),
    "s_bfm_b32": (2, lambda a, b: ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31))),
    "s_pack_ll_b32_b16": (2, lambda a, b: a & U32(0xFFFF) | b << U32(16)),
    "s_pack_lh_b32_b16": (2, lambda a, b: a & U32(0xFFFF) | b & U32(0xFFFF0000)),
    "s_pack_hh_b32_b16": (2, lambda a, b: a >> U32(16) | b & U32(0xFFFF0000)),
    "s_sext_i32_i8": (1, lambda a: a.astype(U8).view(np.int8).astype(I32).view(U32)),
    "s_sext_i32_i16": (1, lambda a: a.astype(U16).view(I16).astype(I32).view(U32)),
    "s_ff1_i32_b32": (1, _first_one),
    "s_flbit_i32_b32": (1, _leading_zeros),
    "s_brev_b32": (1, reverse_bits),
}
# the same; SCC becomes "result is not zero"
_NONZERO: dict[str, tuple[int, Callable[..., Array]]] = {
    "s_not_b32": (1, lambda a: ~a),
    "s_lshl_b32": (2, lambda a, b: a << (b & U32(31))),
    "s_lshr_b32": (2, lambda a, b: a >> (b & U32(31))),
    "s_ashr_i32": (2, lambda a, b: (_signed(a) >> (b & U32(31)).astype(I32)).view(U32)),
    "s_bcnt1_i32_b32": (1, _bit_count),
    "s_abs_i32": (1, lambda a: np.abs(_signed(a)).view(U32)),
    "s_bfe_u32": (2, lambda a, b: _field(a, b, signed=False)),
    "s_bfe_i32": (2, lambda a, b: _field(a, b, signed=True)),
}
_NONZERO64: dict[str, tuple[int, Callable[..., Array]]] = {
    "s_not_b64": (1, lambda a: ~a),
    "s_lshl_b64": (2, lambda a, b: a << (b & U64(63))),
    "s_lshr_b64": (2, lambda a, b: a >> (b & U64(63))),
    "s_ashr_i64": (2, lambda a, b: (a.view(I64) >> (b & U64(63)).astype(I64)).view(U64)),
}
for _name, _function in _LOGIC.items():
    _NONZERO[f"s_{_name}_b32"] = (2, _function)
    _NONZERO64[f"s_{_name}_b64"] = (2, _function)

# name → function of (a, b, carry in) as int64; SCC is the carry or borrow
_CARRY: dict[str, Callable[[Array, Array, Array], Array]] = {
    "s_add_u32": lambda a, b, c: a + b,
    "s_addc_u32": lambda a, b, c: a + b + c,
    "s_sub_u32": lambda a, b, c: a - b,
    "s_subb_u32": lambda a, b, c: a - b - c,
}
# name → function of signed int64; SCC is signed overflow
_OVERFLOW: dict[str, Callable[[Array, Array], Array]] = {
    "s_add_i32": lambda a, b: a + b,
    "s_sub_i32": lambda a, b: a - b,
    "s_addk_i32": lambda a, b: a + b,
}
_MIN_MAX = {
    "s_min_i32": np.minimum,
    "s_max_i32": np.maximum,
    "s_min_u32": np.minimum,
    "s_max_u32": np.maximum,
}
_COMPARE_NAME = re.compile(r"s_cmpk?_(eq|lg|gt|ge|lt|le)_(i32|u32|u64)$")
_SAVE_EXEC_NAME = re.compile(r"s_(and|or|xor|andn2|orn2|andn1)_saveexec_b64$")
_SHIFT_ADD_NAME = re.compile(r"s_lshl([1-4])_add_u32$")


def bind(instruction: Instruction) -> Step | None:
    """The step of a scalar arithmetic instruction, or None if it is not one."""
    name = instruction.name
    for table, maker in ((_PLAIN, _bind_plain), (_NONZERO, _bind_nonzero), (_NONZERO64, _bind_nonzero64)):
        if name in table:
            return maker(instruction, *table[name])
    if name in _CARRY:
        return _bind_carry(instruction, _CARRY[name])
    if name in _OVERFLOW:
        return _bind_overflow(instruction, _OVERFLOW[name])
    if name in _MIN_MAX:
        return _bind_min_max(instruction, _MIN_MAX[name])
    if found := _COMPARE_NAME.match(name):
        return _bind_compare(instruction, _COMPARE[found[1]], found[2])
    if found := _SAVE_EXEC_NAME.match(name):
        return _bind_save_exec(instruction, _LOGIC[found[1]])
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
        a, b = (_signed(read(w)).astype(I64) for read in sources)
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


def _field(a: Array, b: Array, *, signed: bool) -> Array:
    """Bits of `a` from b[4:0], b[22:16] of them."""
    offset, width = (b & U32(31)).astype(U64), (b >> U32(16) & U32(0x7F)).astype(U64)
    mask = (U64(1) << np.minimum(width, U64(63))) - U64(1)
    found = a.astype(U64) >> offset & mask
    if signed:
        top = found >> np.maximum(width, U64(1)) - U64(1) & U64(1)
        found = np.where((width > 0) & (top == 1), found | ~mask, found)
    return (found & U64(0xFFFFFFFF)).astype(U32)


def _move64(instruction: Instruction) -> Step:
    target, source = _destination(instruction), scalar64(instruction, instruction.operands[1])
    return lambda w: w.write_scalar_pair(target, source(w))


def _count_bits64(instruction: Instruction) -> Step:
    target, source = _destination(instruction), scalar64(instruction, instruction.operands[1])

    def step(w: Waves) -> None:
        result = _bit_count(source(w))
        w.scc[w.selected] = result != 0
        w.write_scalar(target, result)

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
    "s_bcnt1_i32_b64": _count_bits64,
    "s_cselect_b32": _select32,
    "s_cselect_b64": _select64,
    "s_cmov_b32": _move_if,
    "s_mulk_i32": _multiply_constant,
    "s_bitcmp0_b32": _test_bit,
    "s_bitcmp1_b32": _test_bit,
}
