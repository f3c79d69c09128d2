"""The CPU's pipeline: a block becomes one thread, tiles arrays, whole-tile operations loops with vectors."""

from __future__ import annotations

from tilelab.passes.base import Pass
from tilelab.passes.guard_bounds import guard_bounds
from tilelab.passes.lower_atomic_cpu import lower_atomic_cpu
from tilelab.passes.lower_blocks_cpu import lower_blocks_cpu
from tilelab.passes.lower_copy_cpu import lower_copy_cpu
from tilelab.passes.lower_cumsum_cpu import lower_cumsum_cpu
from tilelab.passes.lower_fill_cpu import lower_fill_cpu
from tilelab.passes.lower_fragments_cpu import lower_fragments_cpu
from tilelab.passes.lower_gemm_cpu import lower_gemm_cpu
from tilelab.passes.lower_layouts_cpu import lower_layouts_cpu
from tilelab.passes.lower_parallel_cpu import lower_parallel_cpu
from tilelab.passes.lower_print_cpu import lower_print_cpu
from tilelab.passes.lower_reduce_cpu import lower_reduce_cpu
from tilelab.passes.lower_threads_cpu import lower_threads_cpu
from tilelab.passes.plan_gemms_cpu import plan_gemms_cpu
from tilelab.passes.plan_layouts_cpu import plan_layouts_cpu
from tilelab.passes.plan_pipeline import plan_pipeline
from tilelab.passes.simplify import at
from tilelab.passes.widen_operands_cpu import widen_operands_cpu
from tilelab.pipelines.common import READ

__all__ = ["LLVM"]

LLVM: tuple[Pass, ...] = (
    *READ,
    lower_threads_cpu, plan_gemms_cpu, plan_pipeline, plan_layouts_cpu,  #                        → laid_out
    lower_gemm_cpu, lower_copy_cpu, lower_fill_cpu, lower_reduce_cpu, lower_cumsum_cpu, lower_atomic_cpu,
    lower_print_cpu, lower_parallel_cpu, lower_fragments_cpu, widen_operands_cpu,  #              → threaded
    guard_bounds, lower_layouts_cpu,  #                                                           → synced
    lower_blocks_cpu, at("device", "simplify_device"),  #                                         → device
)  # fmt: skip
