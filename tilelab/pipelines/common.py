"""What the pipelines of all targets share."""

from __future__ import annotations

from tilelab.passes.check_initialized import check_initialized
from tilelab.passes.check_limits import check_limits
from tilelab.passes.flatten_buffers import flatten_buffers
from tilelab.passes.guard_bounds import guard_bounds
from tilelab.passes.lower_atomic import lower_atomic
from tilelab.passes.lower_copy import lower_copy
from tilelab.passes.lower_cumsum import lower_cumsum
from tilelab.passes.lower_fill import lower_fill
from tilelab.passes.lower_gemm import lower_gemm
from tilelab.passes.lower_parallel import lower_parallel
from tilelab.passes.lower_reduce import lower_reduce
from tilelab.passes.order_blocks import order_blocks
from tilelab.passes.simplify import at, simplify
from tilelab.passes.vectorize import vectorize

__all__ = ["FINISH", "LOWER_TILES", "READ"]

# The user's kernel, checked: stage tile.
READ = (check_initialized, check_limits, simplify)
# Whole tiles become one thread's program, with guards at the edges: stage threaded.
LOWER_TILES = (
    lower_parallel, lower_fill, lower_reduce, lower_cumsum, lower_atomic, lower_copy, lower_gemm,
    guard_bounds, vectorize,
)  # fmt: skip
# Offsets instead of layouts, ready to print: stage device.
FINISH = (flatten_buffers, at("device", "simplify_device"), order_blocks)
