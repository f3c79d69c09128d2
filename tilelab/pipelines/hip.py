"""The pipeline for AMD GPUs: CUDA's, less what its asynchronous copies need."""

from __future__ import annotations

from tilelab.passes.expand_pipeline import expand_pipeline
from tilelab.passes.insert_barriers import insert_barriers
from tilelab.passes.insert_waits import insert_waits
from tilelab.passes.lower_parts import lower_parts
from tilelab.passes.plan_copies import plan_copies
from tilelab.passes.plan_gemms import plan_gemms
from tilelab.passes.plan_layouts import plan_layouts
from tilelab.passes.plan_pipeline import plan_pipeline
from tilelab.passes.plan_shared_memory import plan_shared_memory
from tilelab.passes.stage_copies import stage_copies
from tilelab.pipelines.common import FINISH, LOWER_TILES, READ

__all__ = ["HIP"]


def no_async_copies(target: object) -> str | None:
    """Loads wait in registers on gfx942: its direct-to-LDS loads are 4 bytes wide and are not used."""
    return f"{target} has no asynchronous copy of 16 bytes; loads wait in registers"


HIP = (
    *READ,                                                 # → tile
    lower_parts, plan_gemms, plan_pipeline, stage_copies,  # loads that run ahead get registers to wait in
    plan_layouts, plan_copies,                             # → laid_out
    expand_pipeline,
    *LOWER_TILES,                                          # → threaded
    plan_shared_memory,
    insert_waits.when(no_async_copies), insert_barriers,   # → synced
    *FINISH,                                               # → device
)  # fmt: skip
