"""Names that TileLang has and this version does not, with what to write instead; and near names for
misspelt ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from tilelab.errors import TileError

__all__ = ["RANKING", "TILELANG_NAMES", "MissingName", "missing"]

# The names that the most public kernels use, most used first.
RANKING: tuple[str, ...] = (
    "Tensor", "Kernel", "copy", "alloc_fragment", "alloc_shared", "ceildiv", "float32", "Pipelined",
    "Parallel", "gemm", "clear", "float16", "prim_func", "reduce_sum", "if_then_else", "exp2", "empty",
    "const", "fill", "int32", "max", "reduce_max", "infinity", "bfloat16", "GemmWarpPolicy", "serial", "min",
    "use_swizzle", "log2", "alloc_var", "get_thread_binding", "annotate_layout", "atomic_add", "dtype",
    "dynamic", "floordiv", "uint32", "float", "cast", "float8_e4m3fn",
)  # fmt: skip

# Every public name of TileLang 0.1.15 but its aliases for vectors, which VECTOR describes.
_TILELANG = """
Add And Any AnyDType Assert BaseTileScheduler Broadcast Buffer BufferLoad CUDASourceCodeKernel Call
CallEffectKind Cast ClusterKernel CommReducer Div EQ Else FloatImm FloorDiv FloorMod Fragment
FragmentBuffer GE GT GemmWarpPolicy If IntImm IterVar JITFunc Kernel KernelLaunchFrame LE LT Layout Let
LocalBuffer MatrixCoreIntrinEmitter MatrixCorePreshuffleIntrinEmitter Max Min Mod Mul NE Not Or Parallel
PartialFragment Persistent PersistentTileScheduler Pipelined PrimExpr PrimFunc ProducerLoad Ptr Ramp Range
Reduce Ref Select Serial SharedBuffer Shuffle SizeVar SparseTensorCoreIntrinEmitter StridedTensor
StringImm Sub TCGEN05DescriptorParams TCGEN05TensorCoreIntrinEmitter TVMBackendAllocWorkspace
TVMBackendFreeWorkspace Tensor TensorCoreIntrinEmitter TensorCoreIntrinEmitterSM120
TensorCoreIntrinEmitterWithLadderTransform Then Unroll Var Vectorized WGMMADescriptorParams
WGMMATensorCoreIntrinEmitter WGSparseTensorCoreIntrinEmitter WMMAIntrinEmitter WSID WSInstr WSOpRef
WSPipeline WSRole WSSchedule WSScope WSSync WSSyncKind WarpSpecialize WarpSpecializeFrame While abs abs2
access_ptr acos acosh activemask add2 address_of align_up all_of all_sync alloc_barrier alloc_buffer
alloc_cluster_barrier alloc_descriptor alloc_fragment alloc_global alloc_local alloc_reducer alloc_shared
alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc alloc_tcgen05_smem_desc alloc_tmem alloc_var
alloc_wgmma_desc allocate annotate_compile_flags annotate_consumer_reg_alloc annotate_l2_hit_ratio
annotate_layout annotate_min_blocks_per_sm annotate_pass_configs annotate_producer_reg_dealloc
annotate_restrict_buffers annotate_safe_value annotate_ws_pipeline_depth annotate_ws_schedule any_of
any_sync anylist_getitem anylist_resetitem anylist_setitem_call_cpacked anylist_setitem_call_packed arg
asin asinh assume async_copy atan atan2 atanh atomic_add atomic_addx2 atomic_addx4 atomic_load atomic_max
atomic_min atomic_or atomic_store attr axis ballot ballot_sync barrier_arrive barrier_wait bfloat16 bind
bitwise_and bitwise_not bitwise_or bitwise_xor block_name_suffix_context block_rank_in_cluster bool
boolean break_loop broadcast buffer buffer_decl buffer_store buffer_var c2d_im2col call_cpacked
call_cpacked_lowered call_extern call_intrin call_kernel call_llvm_intrin call_llvm_pure_intrin
call_packed call_packed_lowered call_pure_extern cast cdiv ceil ceildiv clamp clc_get_first_ctaid_x
clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled clc_try_cancel clc_try_cancel_multicast clear
cluster_arrive cluster_arrive_relaxed cluster_sync cluster_wait clz comm_reducer compute_gmma_descriptor
compute_umma_descriptor const continue_loop cooperative_tensor_fill cooperative_tensor_load
cooperative_tensor_multiply_accumulate cooperative_tensor_store copy copy_cluster copysign cos cosh
cp_async_barrier_noinc create_barriers create_tma_descriptor cummax cumsum deallocate_tmem dec_max_nreg
decl_buffer device_assert disable_warp_group_reg_alloc double dp4a ds_read_tr16_b64 ds_read_tr8_b64 dtype
dynamic empty end_profile_intrinsic env_thread erf evaluate exp exp10 exp2 extract_lane fabs fast_rcp
fence_proxy_async fill finalize_reducer float float16 float32 float4_e2m1_unpacked float4_e2m1fn float64
float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz
float8_e5m2 float8_e5m2fnuz float8_e8m0fnu floor floordiv floormod fma fma2 fmod fmul func_attr func_name
func_ret gemm gemm_blockscaled gemm_sp get_active_lane_mask get_block_binding get_block_bindings
get_block_extent get_block_extents get_cluster_dims get_cluster_extent get_cluster_extents get_cluster_id
get_cluster_ids get_cluster_size get_lane_idx get_ldmatrix_offset get_let_value get_mma_micro_size
get_swizzle_layout get_thread_binding get_thread_bindings get_thread_extent get_thread_extents
get_tvm_dtype get_warp_group_idx get_warp_idx get_warp_idx_sync grid half handle handle_add_byte_offset
has_let_value hypot ieee_add ieee_fdiv ieee_fmaf ieee_frcp ieee_frsqrt ieee_fsqrt ieee_mul ieee_sub
if_then_else ignore_loop_partition im2col import_source inc_max_nreg increase_descriptor_offset index_map
index_to_coordinates infinity init initialize_tcgen05_descriptor initialize_wgmma_descriptor inline int
int16 int32 int4 int64 int8 is_f8f6f4_family is_float4 is_float4_e2m1_unpacked is_float4_e2m1fn isfinite
isinf isnan isnullptr iter_var launch_thread ldexp ldg128 ldg256 ldg32 ldg64 lds128 lds32 lds64 let likely
llvm_lookup_intrinsic_id log log10 log1p log2 long lookup_param loop_break macro
make_blockscaled_gemm_layout make_filled_simdgroup_matrix make_mfma_swizzle_layout make_mma_swizzle_layout
make_tensor make_tensor_from_addr match_all_sync match_any_sync match_buffer max max2 max_value
mbarrier_arrive mbarrier_arrive_expect_tx mbarrier_expect_tx mbarrier_wait_parity meta_class meta_var mfma
mfma_store mfma_store_index_map mfma_store_index_map_32x32 min min2 min_value mma_fill
mma_gemm_blockscaled mma_store mma_store_index_map mul2 named_barrier_arrive nearbyint nextafter
no_set_max_nreg parallel pdl_sync pdl_trigger popcount pow prim_func print ptr ptx_arrive_barrier
ptx_arrive_barrier_expect_tx ptx_arrive_cluster_barrier ptx_commit_group ptx_cp_async ptx_cp_async_barrier
ptx_cp_async_bulk ptx_fence_barrier_init ptx_init_barrier_thread_count ptx_ldmatrix ptx_mma
ptx_mma_block_scale ptx_mma_sm70 ptx_mma_sp ptx_tcgen05_mma_blockscaled_ss ptx_tcgen05_mma_ss
ptx_tcgen05_mma_ts ptx_wait_barrier ptx_wait_group ptx_wgmma_rs ptx_wgmma_sp_rs ptx_wgmma_sp_ss
ptx_wgmma_ss q_multiply_shift q_multiply_shift_per_axis ramp rdna_wmma rdna_wmma_store reads reduce
reduce_absmax reduce_abssum reduce_bitand reduce_bitor reduce_bitxor reduce_max reduce_min reduce_sum
reducer_init reducer_update reinterpret reshape ret rng_init rng_rand rng_rand_float round rsqrt sblock
sblock_alloc_buffer sblock_attr serial set_max_nreg shfl_down shfl_sync shfl_up shfl_xor shift_left
shift_right short shuffle_elect sigmoid simdgroup_load simdgroup_multiply_accumulate simdgroup_store sin
sinh sqrt start_profile_intrinsic stg128 stg256 stg32 stg64 sts128 sts32 sts64 sub2 symbolic sync_grid
sync_threads sync_warp syncthreads_and syncthreads_count syncthreads_or tan tanh target
tcgen05_after_thread_sync tcgen05_before_thread_sync tcgen05_gemm tcgen05_gemm_blockscaled tcgen05_gemm_sp
tcgen05_mma tcgen05_mma_arrive tcgen05_mma_blockscaled tcgen05_sf_warp_transpose tfloat32 thread_binding
thread_return tma_copy tma_gather4 tma_gather4_bytes tma_load tma_load_2sm tma_scatter4 tma_store_arrive
tma_store_wait transpose trunc truncdiv truncmod tvm_access_ptr tvm_bmma_sync tvm_call_cpacked
tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered tvm_fill_fragment tvm_load_matrix_sync
tvm_mfma tvm_mfma_store tvm_mma_sync tvm_rdna_wmma tvm_rdna_wmma_store tvm_stack_alloca
tvm_stack_make_array tvm_stack_make_shape tvm_storage_sync tvm_store_matrix_sync tvm_struct_get
tvm_struct_set tvm_thread_allreduce tvm_thread_invariant tvm_throw_last_error tvm_tuple
tvm_warp_activemask tvm_warp_shuffle tvm_warp_shuffle_down tvm_warp_shuffle_up type_annotation uint uint16
uint32 uint64 uint8 undef unroll use_swizzle validate_gemm_ab_dtypes var vectorcombine vectorhigh
vectorized vectorlow view void vscale wait_wgmma warp_reduce_bitand warp_reduce_bitor warp_reduce_max
warp_reduce_min warp_reduce_sum warpgroup_arrive warpgroup_commit_batch warpgroup_fence_operand
warpgroup_wait wgmma_gemm wgmma_gemm_sp wgmma_mma where writes ws ws_op
"""
TILELANG_NAMES = frozenset(_TILELANG.split())
VECTOR = re.compile(r"[a-z]+\d+(_\w+?)?x\d+")

# (pattern, what to write instead): the first pattern that matches the whole name counts.
INSTEAD: tuple[tuple[str, str], ...] = (
    (r"tma_copy|async_copy|copy_cluster", "T.copy; the compiler chooses TMA or cp.async by itself"),
    (
        r"(wgmma|tcgen05)_(gemm|mma)|wait_wgmma|dp4a",
        "T.gemm; the compiler issues and awaits the instructions",
    ),
    (
        r".*barrier.*|ptx_.*|fence_proxy_async|cp_async.*",
        "T.Pipelined and T.copy; barriers are inserted for you",
    ),
    (r"ws|WarpSpecialize.*|WS.*|ws_op|annotate_ws.*", "T.Pipelined; roles of warps are planned for you"),
    (r"transpose", "a T.Parallel loop: dst[j, i] = src[i, j]"),
    (
        r"cummax|warp_reduce_.*|any_of|all_of|alloc_reducer|reducer_.*|finalize_reducer|comm_reducer|tvm_thread_allreduce",
        "T.reduce_sum, T.reduce_max and their like on a fragment",
    ),
    (r"atomic_.*", "T.atomic_add"),
    (r"While|If|Then|Else|loop_break|break_loop|continue_loop|For", "Python's while, if, break and continue"),
    (r"Assert", "an assert statement, or T.device_assert"),
    (r"evaluate", "the expression as a statement of its own"),
    (r"alloc_global", "T.empty before T.Kernel"),
    (r"alloc_(tmem|descriptor|wgmma_desc|tcgen05.*|cluster_barrier)|deallocate_tmem", ""),
    (r"allocate|alloc_buffer", "T.alloc_shared, T.alloc_fragment or T.alloc_local"),
    (r"SharedBuffer|FragmentBuffer|LocalBuffer", "a parameter without annotation"),
    (
        r"ptr|handle|make_tensor.*|match_buffer|address_of|access_ptr|tvm_access_ptr",
        "T.Tensor parameters and indices",
    ),
    (r"view|reshape", "an index computed by // and %"),
    (r"Persistent|PersistentTileScheduler|BaseTileScheduler", "a T.serial loop over the tiles"),
    (r"__(exp|exp10|log|log2|log10|sin|cos|tan)", "the name without underscores"),
    (r"fast_rcp", "1.0 / x"),
    (r"(add|sub|mul|fma|max|min|abs)2|ieee_.*|fmul", "the operator on single elements"),
    (r"inline|meta_class|Ref", "T.macro"),
    (
        r"float4.*|float6.*|float8_.*|int4|tfloat32|.*x\d+",
        "one of T.float16, T.bfloat16, T.float32, T.float8_e4m3fn",
    ),
)


class MissingName(TileError, AttributeError):
    """A name that tilelab.language does not have."""


def missing(name: str, known: Iterable[str]) -> MissingName:
    """The error for a name that the language does not have: of TileLang but not here, or misspelt."""
    if name in TILELANG_NAMES or VECTOR.fullmatch(name):
        help = next((text for pattern, text in INSTEAD if re.fullmatch(pattern, name)), "")
        return MissingName(
            "TL102",
            f"T.{name} is a TileLang name that this version does not have",
            help=f"write {help}" if help else "",
        )
    names = list(known)
    near = (
        difflib.get_close_matches(name, names, 3)
        or [n for n in names if n.lower() == name.lower() or n.lower().startswith(name.lower())][:3]
    )
    help = "did you mean " + " or ".join(f"T.{n}" for n in near) + "?" if near else "dir(T) lists the names"
    return MissingName("TL102", f"the language has no name T.{name}", help=help)
