"""What a kernel presumes of the addresses that its tensors start at: an attribute of their buffers."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import tirx

from tilelab.ir.nodes import PrimFunc, Var, dtype_of, is_buffer
from tilelab.ir.rewrite import substitute

__all__ = ["base_alignment", "with_alignments"]


def base_alignment(buffer: Var) -> int:
    """Bytes that surely divide the address of the buffer's first element."""
    return int(buffer.ty.data_alignment)


def with_alignments(f: PrimFunc, known: Mapping[str, int]) -> PrimFunc:
    """The function whose named parameters start at multiples of so many bytes; prints as `T.Buffer(…,
    align=2)`.
    """
    mapping: dict[Var, Var] = {}
    for old in f.params:
        if is_buffer(old) and str(old.name) in known:
            mapping[old] = tirx.decl_buffer(
                list(old.shape), dtype_of(old), name=str(old.name), strides=list(old.strides) or None,
                data_alignment=known[str(old.name)],
            )  # fmt: skip
    if not mapping:
        return f
    params = [mapping.get(p, p) for p in f.params]
    return PrimFunc(params, substitute(f.body, mapping), attrs=f.attrs)
