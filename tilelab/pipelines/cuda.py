"""The pipeline for NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Callable

from tilelab.hardware import chip
from tilelab.passes.expand_pipeline import expand_pipeline
from tilelab.passes.insert_barriers import insert_barriers
from tilelab.passes.insert_proxy_fences import insert_proxy_fences
from tilelab.passes.insert_register_limits import insert_register_limits
from tilelab.passes.insert_waits import insert_waits
from tilelab.passes.lower_channels import lower_channels
from tilelab.passes.lower_parts import lower_parts
from tilelab.passes.plan_copies import plan_copies
from tilelab.passes.plan_gemms import plan_gemms
from tilelab.passes.plan_layouts import plan_layouts
from tilelab.passes.plan_pipeline import plan_pipeline
from tilelab.passes.plan_shared_memory import plan_shared_memory
from tilelab.passes.stage_copies import stage_copies
from tilelab.pipelines.common import FINISH, LOWER_TILES, READ
from tilelab.targets import Target

__all__ = ["CUDA"]


def lacking(feature: str, what: str) -> Callable[[Target], str | None]:
    """Why a pass does not apply: the target's chip has no such feature."""
    return lambda target: None if chip(target.arch).has(feature) else f"{target.arch} has no {what}"


CUDA = (
    *READ,                                                 # → tile
    lower_parts, plan_gemms, plan_pipeline, stage_copies,  # the last pass that creates a tile buffer
    plan_layouts, plan_copies,                             # every buffer a layout, every op a row → laid_out
    expand_pipeline,
    *LOWER_TILES,                                          # → threaded
    lower_channels.when(lacking("mbarrier", "mbarriers that count bytes")),
    insert_register_limits.when(lacking("sm_90a", "registers that move between warpgroups")),
    plan_shared_memory,
    insert_waits, insert_barriers,
    insert_proxy_fences.when(lacking("async_proxy", "asynchronous proxy")),  # → synced
    *FINISH,                                               # → device
)  # fmt: skip
