"""Keep the narrow operands of a CPU's gemms in the dtype of the sums: the inner loop then converts nothing.

Applies to tiles marked `tl.held` by plan_gemms_cpu. Values are still rounded to the tile's own dtype when
they are written, so every load gives what it gave before; a conversion of such a load to the wider dtype is
left out.

Before (llvm, cpu=cpu-avx512):

    S = T.alloc_buffer((64,), "float16", scope="shared.dyn", annotations={"tl.held": "float32"})
    for i in range(64):
        S[i] = T.Cast("float16", A[i])
    for i in range(64):
        B[i] = T.Cast("float32", S[i])

After:

    S = T.alloc_buffer((64,), scope="shared.dyn")
    for i in range(64):
        S[i] = T.Cast("float32", T.Cast("float16", A[i]))
    for i in range(64):
        B[i] = S[i]
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, Cast, Expr, Load, PrimFunc, Store, Var, dtype_of
from tilelab.ir.rewrite import rewrite
from tilelab.ir.scoped import allocations
from tilelab.passes.base import Pass, because


def run(f: PrimFunc) -> PrimFunc:
    wide: dict[Var, Var] = {}
    for node in allocations(f):
        held, old = b.plain(node.annotations).get("tl.held"), node.buffer
        if held:
            wide[old] = b.buffer(str(old.name), list(old.shape), held, str(old.scope()))
    if not wide:
        because("no operand of a gemm is narrower than its sums")
        return f

    def hold_wider(node: AllocBuffer) -> AllocBuffer | None:
        if node.buffer not in wide:
            return None
        return AllocBuffer(wide[node.buffer], b.annotated(node, held=None).annotations, node.span)

    def read_and_narrow(load: Load) -> Expr | None:
        if load.source not in wide:
            return None
        return b.cast(dtype_of(load.source), b.load(wide[load.source], load.indices))

    def drop_round_trip(node: Cast) -> Expr | None:
        inner = node.value
        is_narrowed = isinstance(inner, Cast) and isinstance(inner.value, Load)
        if is_narrowed and any(inner.value.source.same_as(v) for v in wide.values()):
            return inner.value if dtype_of(node) == dtype_of(inner.value) else None
        return None

    def round_and_widen(node: Store) -> Store | None:
        if node.buffer not in wide:
            return None
        target = wide[node.buffer]
        return b.store(target, b.cast(dtype_of(target), node.value), node.indices)

    return rewrite(
        f,
        (AllocBuffer, hold_wider),
        (Load, read_and_narrow),
        (Cast, drop_round_trip),
        (Store, round_and_widen),
    )


widen_operands_cpu = Pass("widen_operands_cpu", run, needs="threaded", gives="threaded")
