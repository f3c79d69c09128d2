"""Turn every access into an offset: layouts and strides become index arithmetic, swizzles exclusive ors.

Shared tiles keep their place in the pool (`tl.offset`); global tensors become one-dimensional, with their strides kept
as constants or variables in the index. Registers of more than one dimension become flat arrays.

Before (cuda:sm_80, threads=32):

    S = T.alloc_buffer((8, 64), "float16", scope="shared.dyn", annotations={"tl.layout": "S<3,3,3>o(8,64):(64,1)", "tl.offset": 0})
    S[tx // 4, tx % 4 * 8] = T.float16(0)

After:

    S = T.alloc_buffer((512,), "float16", scope="shared.dyn", annotations={"tl.layout": "S<3,3,3>o(8,64):(64,1)", "tl.offset": 0})
    S[T.bitwise_xor(tx * 16 - tx % 4 * 8 ...)] = T.float16(0)
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilelab.ir import build as b
from tilelab.ir.indices import linear_index, offset_of
from tilelab.ir.nodes import AllocBuffer, Load, PrimFunc, Ramp, Region, Stmt, Store, TileCall, Var, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.scoped import Scope, allocations, map_scoped
from tilelab.ir.statements import children, each_statement
from tilelab.ir.tile_ops import op_of
from tilelab.layout import Composed, parse
from tilelab.passes.base import Pass
from tilelab.passes.plan_copies import strides_of
from tilelab.passes.plan_layouts import layout_text

__all__ = ["flatten_buffers"]
