"""The pipeline for NVIDIA GPUs."""

from __future__ import annotations

from tilelab.passes.expand_pipeline import expand_pipeline
from tilelab.passes.insert_barriers import insert_barriers
from tilelab.passes.insert_waits import insert_waits
from tilelab.passes.plan_copies import plan_copies
from tilelab.passes.plan_gemms import plan_gemms
from tilelab.passes.plan_layouts import plan_layouts
from tilelab.passes.plan_pipeline import plan_pipeline
from tilelab.passes.plan_shared_memory import plan_shared_memory
from tilelab.passes.stage_copies import stage_copies
from tilelab.pipelines.common import FINISH, LOWER_TILES, READ

__all__ = ["CUDA"]

CUDA = (
    *READ,                                                 # → tile
    plan_gemms, plan_pipeline, stage_copies,               # the last pass that creates a tile buffer
    plan_layouts, plan_copies,                             # every buffer a layout, every op a row → laid_out
    expand_pipeline,
    *LOWER_TILES,                                          # → threaded
    plan_shared_memory,
    insert_waits, insert_barriers,                         # → synced
    *FINISH,                                               # → device
)  # fmt: skip
