"""Vector arithmetic: picks the table or the special case for an instruction and binds it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilelab.emulate.gfx942 import valu_compare, valu_packed, valu_special
from tilelab.emulate.gfx942.decode import Instruction, unknown
from tilelab.emulate.gfx942.formats import I64, U32, Array
from tilelab.emulate.gfx942.operands import Step
from tilelab.emulate.gfx942.valu_table import TABLE
from tilelab.emulate.gfx942.vector_form import VectorForm
from tilelab.emulate.gfx942.waves import Waves

__all__ = ["bind"]

_MODIFIERS = frozenset(
    (
        *("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "mul", "div"),
        *(
            "quad_perm",
            "row_shl",
            "row_shr",
            "row_ror",
            "row_bcast",
            "row_newbcast",
            "row_mirror",
            "row_half_mirror",
        ),
        *("wave_shl", "wave_shr", "wave_rol", "wave_ror", "row_mask", "bank_mask", "bound_ctrl"),
        *("dst_sel", "dst_unused", "src0_sel", "src1_sel"),
    )
)
_SATURATING: dict[str, Callable[[Array, Array], Array]] = {
    "v_add_u32": lambda a, b: np.clip(a.astype(I64) + b, 0, 0xFFFFFFFF).astype(U32),
    "v_sub_u32": lambda a, b: np.clip(a.astype(I64) - b, 0, 0xFFFFFFFF).astype(U32),
}


def bind(instruction: Instruction) -> Step | None:
    """The step of a vector arithmetic instruction, or None if it is not one."""
    if instruction.modifiers.keys() - _MODIFIERS:
        raise unknown(instruction, "modifier")
    for special in (valu_compare.bind, valu_packed.bind, valu_special.bind):
        step = special(instruction)
        if step is not None:
            return step
    # the suffix names an encoding of old compilers, not another meaning
    name = instruction.name.removesuffix("_legacy").removesuffix("_gfx9")
    if name not in TABLE:
        return None
    dtypes, function = TABLE[name]
    saturates = "clamp" in instruction.modifiers and name in _SATURATING
    return _bind_table(instruction, dtypes, _SATURATING[name] if saturates else function, saturates)


def _bind_table(
    instruction: Instruction, dtypes: tuple[type, ...], function: Callable[..., Array], saturates: bool
) -> Step:
    form = VectorForm(instruction)
    sources = [form.source(index + 1, dtype) for index, dtype in enumerate(dtypes)]
    write = form.writer(is_integer_clamp_done=saturates)
    if len(sources) == 2:
        first, second = sources
        return lambda w: write(w, function(first(w), second(w)))

    def step(w: Waves) -> None:
        write(w, function(*[read(w) for read in sources]))

    return step
