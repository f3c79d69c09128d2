"""Fold constants and simplify index expressions and conditions, using the bounds of the loops around them.

Before:

    for i in T.serial(4):
        B[i * 2 + 0 * i] = A[i + 8 - 8]

After:

    for i in T.serial(4):
        B[i * 2] = A[i]
"""

from __future__ import annotations

from tilelab.ir.nodes import PrimFunc
from tilelab.ir.stock import simplify_statements
from tilelab.passes.base import Pass


def run(f: PrimFunc) -> PrimFunc:
    return simplify_statements(f)


def at(stage: str, name: str = "simplify") -> Pass:
    """The pass for a stage: it neither needs nor changes what the stage is."""
    return Pass(name, run, needs=stage, gives=stage)


simplify = at("tile")
