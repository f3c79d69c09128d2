"""TileLang's `pass_configs`: every known key, and what it does here. Unknown keys are refused with the
nearest name.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Mapping
from typing import Any

from tilelab.errors import TileError
from tilelab.trace.schema import Note

__all__ = ["PassConfigKey", "read_pass_configs"]


class PassConfigKey(str, enum.Enum):
    """Keys of `pass_configs`, by TileLang's names."""

    TL_SIMPLIFY = "tl.Simplify"
    TL_DYNAMIC_ALIGNMENT = "tl.dynamic_alignment"
    TL_DISABLE_DYNAMIC_TAIL_SPLIT = "tl.disable_dynamic_tail_split"
    TL_DISABLE_WARP_SPECIALIZED = "tl.disable_warp_specialized"
    TL_ENABLE_FAST_MATH = "tl.enable_fast_math"
    TL_DISABLE_FAST_MATH = "tl.disable_fast_math"
    TL_CONFIG_INDEX_BITWIDTH = "tl.config_index_bitwidth"
    TL_DISABLE_TMA_LOWER = "tl.disable_tma_lower"
    TL_DISABLE_SAFE_MEMORY_ACCESS = "tl.disable_safe_memory_legalize"
    TL_DISABLE_VECTORIZE_256 = "tl.disable_vectorize_256"
    TL_DISABLE_WGMMA = "tl.disable_wgmma"
    TL_DISABLE_SHUFFLE_ELECT = "tl.disable_shuffle_elect"
    TL_DISABLE_LOOP_UNSWITCHING = "tl.disable_loop_unswitching"
    TL_DISABLE_THREAD_STORAGE_SYNC = "tl.disable_thread_storage_sync"
    TL_DISABLE_DATA_RACE_CHECK = "tl.disable_data_race_check"
    TL_DISABLE_OUT_OF_BOUND_WARNING = "tl.disable_out_of_bound_warning"
    TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE = "tl.enable_aggressive_shared_memory_merge"
    TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS = "tl.debug_merge_shared_memory_allocations"
    TL_ENABLE_PTXAS_VERBOSE_OUTPUT = "tl.enable_ptxas_verbose_output"
    TL_PTXAS_REGISTER_USAGE_LEVEL = "tl.ptxas_register_usage_level"
    TL_FORCE_LET_INLINE = "tl.force_let_inline"
    TL_LAYOUT_VISUALIZATION_ENABLE = "tl.layout_visualization_enable"
    TL_LAYOUT_VISUALIZATION_FORMATS = "tl.layout_visualization_formats"
    TIR_ENABLE_EQUIV_TERMS_IN_CSE = "tir.enable_equiv_terms_in_cse_tir"
    TIR_DISABLE_CSE = "tir.disable_cse_tir"
    TIR_SIMPLIFY = "tir.Simplify"
    TIR_DISABLE_STORAGE_REWRITE = "tir.disable_storage_rewrite"
    TIR_DISABLE_VECTORIZE = "tir.disable_vectorize"
    TIR_USE_ASYNC_COPY = "tir.use_async_copy"
    TIR_ENABLE_DEBUG = "tir.enable_debug"
    TIR_MERGE_STATIC_SMEM = "tir.merge_static_smem"
    TIR_ADD_LOWER_PASS = "tir.add_lower_pass"
    TIR_NOALIAS = "tir.noalias"


# Why a key that is on changes nothing; keys not listed steer passes that have no counterpart here.
_REASONS = {
    PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: "threads are not split into roles automatically",
    PassConfigKey.TL_DISABLE_TMA_LOWER: "copies do not use TMA automatically in this version",
    PassConfigKey.TL_DISABLE_WGMMA: "gemms do not use wgmma automatically in this version",
    PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: "barriers are always inserted where threads need them",
    PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS: "accesses are guarded unless proved to be in bounds",
    PassConfigKey.TL_ENABLE_FAST_MATH: "exp2 is printed as the device's fast instruction already",
    PassConfigKey.TL_ENABLE_PTXAS_VERBOSE_OUTPUT: "registers and spills are in kernel.resource_usage",
}


def read_pass_configs(configs: Mapping[Any, Any] | None) -> tuple[Note, ...]:
    """Remarks on the keys given; raises TL405 for a key that TileLang does not have."""
    notes = []
    by_value = {key.value.lower(): key for key in PassConfigKey}
    for given, value in (configs or {}).items():
        text = given.value if isinstance(given, enum.Enum) else str(given)
        key = by_value.get(text.lower().replace("tirx.", "tir."))
        if key is None:
            near = difflib.get_close_matches(text, [k.value for k in PassConfigKey], 1)
            raise TileError(
                "TL405",
                f"no pass config is called {text!r}",
                help=f"did you mean {near[0]!r}?" if near else "see tilelab.PassConfigKey",
            )
        why = _REASONS.get(key, "no pass here reads it")
        notes.append(Note("info", f"pass_configs {key.value}={value!r} has no effect: {why}"))
    return tuple(notes)
