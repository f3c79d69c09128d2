"""TVM's own passes that we use, as functions from PrimFunc to PrimFunc."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx

from tilelab.ir.nodes import PrimFunc

__all__ = ["simplify_statements", "vectorize_loops"]


def _apply(transform: Any, f: PrimFunc) -> PrimFunc:
    name = str(f.attrs["global_symbol"])
    return transform(tvm.IRModule({name: f}))[name]


def simplify_statements(f: PrimFunc) -> PrimFunc:
    """TVM's statement simplifier: constants, index arithmetic, branches whose condition is known."""
    return _apply(tirx.transform.StmtSimplify(), f)


def vectorize_loops(f: PrimFunc) -> PrimFunc:
    """Loops of kind vectorized become accesses with ramps."""
    return _apply(tirx.transform.VectorizeLoop(True), f)
