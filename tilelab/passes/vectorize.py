"""Turn vectorised loops into vector accesses.

Before:

    for v in T.vectorized(4):
        B[v] = A[v]

After:

    B[0:4] = A[T.Ramp(0, 1, 4)]
"""

from __future__ import annotations

from tilelab.ir import build as b
from tilelab.ir.nodes import For, PrimFunc
from tilelab.ir.statements import each_statement
from tilelab.ir.stock import vectorize_loops
from tilelab.passes.base import Pass, because

__all__ = ["vectorize"]


def run(f: PrimFunc) -> PrimFunc:
    if not any(isinstance(s, For) and s.kind == b.VECTORIZED for s in each_statement(f.body)):
        because("no loop is marked for vectors")
        return f
    return vectorize_loops(f)


vectorize = Pass("vectorize", run, needs="threaded", gives="threaded")
