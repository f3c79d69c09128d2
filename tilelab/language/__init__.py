"""The language of kernels, imported as `import tilelab.language as T`. Importing it loads no TVM."""

from __future__ import annotations

from tilelab.language import dtypes as _dtypes
from tilelab.language.allocate import alloc_fragment, alloc_local, alloc_shared, alloc_var
from tilelab.language.dtypes import dtype
from tilelab.language.functions import macro, prim_func
from tilelab.language.hints import annotate_layout, assume, device_assert, print, sync_threads, use_swizzle
from tilelab.language.kernel import (
    Kernel,
    get_block_binding,
    get_block_bindings,
    get_block_extent,
    get_block_extents,
    get_thread_binding,
    get_thread_bindings,
    get_thread_extent,
    get_thread_extents,
)
from tilelab.language.loops import (
    Parallel,
    Pipelined,
    Serial,
    Unroll,
    Vectorized,
    grid,
    parallel,
    serial,
    unroll,
    vectorized,
)
from tilelab.language.math import *  # noqa: F403  the module's __all__ is the list of names
from tilelab.language.math import __all__ as _math_names
from tilelab.language.names import missing as _missing
from tilelab.language.reductions import (
    reduce,
    reduce_absmax,
    reduce_abssum,
    reduce_bitand,
    reduce_bitor,
    reduce_bitxor,
    reduce_max,
    reduce_min,
    reduce_sum,
)
from tilelab.language.tensors import Buffer, StridedTensor, Tensor, const, dynamic, empty, symbolic
from tilelab.language.tile_ops import GemmWarpPolicy, atomic_add, clear, copy, cumsum, fill, gemm

_types = {name: dtype(name) for name in (*_dtypes.DTYPES, *_dtypes.ALIASES)}
globals().update(_types)

__all__ = [
    "Buffer", "GemmWarpPolicy", "Kernel", "Parallel", "Pipelined", "Serial", "StridedTensor", "Tensor",
    "Unroll", "Vectorized", "alloc_fragment", "alloc_local", "alloc_shared", "alloc_var", "annotate_layout",
    "assume", "atomic_add", "clear", "const", "copy", "cumsum", "device_assert", "dtype", "dynamic", "empty",
    "fill", "gemm", "get_block_binding", "get_block_bindings", "get_block_extent", "get_block_extents",
    "get_thread_binding", "get_thread_bindings", "get_thread_extent", "get_thread_extents", "grid", "macro",
    "parallel", "prim_func", "print", "reduce", "reduce_absmax", "reduce_abssum", "reduce_bitand",
    "reduce_bitor", "reduce_bitxor", "reduce_max", "reduce_min", "reduce_sum", "serial", "symbolic",
    "sync_threads", "unroll", "use_swizzle", "vectorized",
]  # fmt: skip
__all__ += [*_math_names, *_types]


def __getattr__(name: str) -> object:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    raise _missing(name, __all__)
