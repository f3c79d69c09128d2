"""Hand-built kernels for the emulator's tests: per-thread matmuls as later stages hold them."""

from __future__ import annotations

from tilelab.ir.text import parse_function
from tilelab.layout import Composed, Layout, concat, shared_tile


def ring(shape: tuple[int, ...], depth: int, swizzle: int) -> str:
    """The layout of `depth` swizzled float16 tiles one after another."""
    tile = shared_tile(shape, 16, swizzle)
    step = shape[0] * shape[1]
    if isinstance(tile, Composed):
        return str(Composed(tile.swizzle, 0, concat(Layout(depth, step), tile.layout)))
    return str(concat(Layout(depth, step), tile))


SIMT = """
@T.prim_func
def matmul(A: T.Buffer((64, 128), "float16"), B: T.Buffer((128, 64), "float16"), C: T.Buffer((64, 64), "float16")):
    T.func_attr({{"tl.stage": "{stage}", "tl.threads": 128}})
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", 128) as tx:
            A_shared = T.alloc_buffer((2, 64, 32), "float16", scope="shared.dyn", annotations={{"tl.layout": "{a}", "tl.offset": 0}})
            B_shared = T.alloc_buffer((2, 32, 64), "float16", scope="shared.dyn", annotations={{"tl.layout": "{b}", "tl.offset": {b_offset}}})
            C_local = T.alloc_buffer((32,), scope="local")
            A_local = T.alloc_buffer((16,), "float16", scope="local")
            B_local = T.alloc_buffer((16,), "float16", scope="local")
            for v in T.serial(32):
                C_local[v] = T.float32(0)
            for i in T.unroll(2):
                T.issue(A_shared[0, (tx + i * 128) // 4, (tx + i * 128) % 4 * 8:(tx + i * 128) % 4 * 8 + 8], A[(tx + i * 128) // 4, (tx + i * 128) % 4 * 8:(tx + i * 128) % 4 * 8 + 8], row="cp.async.16")
                T.issue(B_shared[0, (tx + i * 128) // 8, (tx + i * 128) % 8 * 8:(tx + i * 128) % 8 * 8 + 8], B[(tx + i * 128) // 8, (tx + i * 128) % 8 * 8:(tx + i * 128) % 8 * 8 + 8], row="cp.async.16")
            T.commit_group(kind="cp.async")
            for ko in T.serial(4):
{wait}
{barrier}
                if ko + 1 < 4:
                    for i in T.unroll(2):
                        T.issue(A_shared[(ko + 1) % 2, (tx + i * 128) // 4, (tx + i * 128) % 4 * 8:(tx + i * 128) % 4 * 8 + 8], A[(tx + i * 128) // 4, (ko + 1) * 32 + (tx + i * 128) % 4 * 8:(ko + 1) * 32 + (tx + i * 128) % 4 * 8 + 8], row="cp.async.16")
                        T.issue(B_shared[(ko + 1) % 2, (tx + i * 128) // 8, (tx + i * 128) % 8 * 8:(tx + i * 128) % 8 * 8 + 8], B[(ko + 1) * 32 + (tx + i * 128) // 8, (tx + i * 128) % 8 * 8:(tx + i * 128) % 8 * 8 + 8], row="cp.async.16")
                T.commit_group(kind="cp.async")
                for ki in T.unroll(2):
                    for mi in T.unroll(2):
                        T.issue(A_local[mi * 8:mi * 8 + 8], A_shared[ko % 2, tx // 64 * 32 + mi * 16 + tx % 16, ki * 16 + tx % 32 // 16 * 8:ki * 16 + tx % 32 // 16 * 8 + 8], row="ldmatrix.x4")
                    for ni in T.unroll(4):
                        T.issue(B_local[ni * 4:ni * 4 + 4], B_shared[ko % 2, ki * 16 + tx % 16, tx % 64 // 32 * 32 + ni * 8:tx % 64 // 32 * 32 + ni * 8 + 8], row="ldmatrix.x2.trans")
                    for mi in T.unroll(2):
                        for ni in T.unroll(4):
                            T.issue(C_local[mi * 16 + ni * 4:mi * 16 + ni * 4 + 4], A_local[mi * 8:mi * 8 + 8], B_local[ni * 4:ni * 4 + 4], row="mma.m16n8k16.f32.f16")
{end_barrier}
            for mi in T.unroll(2):
                for ni in T.unroll(4):
                    for h in T.unroll(2):
                        C[tx // 64 * 32 + mi * 16 + h * 8 + tx % 32 // 4, T.Ramp(tx % 64 // 32 * 32 + ni * 8 + tx % 4 * 2, 1, 2)] = T.Cast("float16x2", C_local[T.Ramp(mi * 16 + ni * 4 + h * 2, 1, 2)])
"""  # noqa: E501


def simt_matmul(
    stage: str, wait: int | None = 0, barrier: bool = True, swizzle: int = 64, b_offset: int = 8192
):
    """A 64 × 64 × 128 matmul of 128 threads with cp.async, ldmatrix and mma, double-buffered."""
    indent = " " * 16
    text = SIMT.format(
        stage=stage,
        a=ring((64, 32), 2, swizzle),
        b=ring((32, 64), 2, 2 * swizzle),
        b_offset=b_offset,
        wait="" if wait is None else f'{indent}T.wait_group(kind="cp.async", pending={wait})',
        barrier=f"{indent}T.barrier()" if barrier else "",
        end_barrier="",
    )
    return parse_function(text)


HOPPER = """
@T.prim_func
def matmul(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer(({rows}, 64), "float16")):
    T.func_attr({{"tl.stage": "{stage}", "tl.threads": 256}})
    with T.launch_thread("blockIdx.x", 1) as bx:
        with T.launch_thread("threadIdx.x", 256) as tx:
            A_shared = T.alloc_buffer((2, 64, 16), "float16", scope="shared.dyn", annotations={{"tl.layout": "{a}", "tl.offset": 0}})
            B_shared = T.alloc_buffer((2, 16, 64), "float16", scope="shared.dyn", annotations={{"tl.layout": "{b}", "tl.offset": 4096}})
            C_shared = T.alloc_buffer((64, 64), "float16", scope="shared.dyn", annotations={{"tl.layout": "{c}", "tl.offset": 8192}})
            full = T.alloc_buffer((2,), "uint64", scope="shared.barrier")
            empty = T.alloc_buffer((2,), "uint64", scope="shared.barrier")
            if tx == 0:
                for s in T.unroll(2):
                    T.mbarrier_init(full[s:s + 1], 1)
                    T.mbarrier_init(empty[s:s + 1], 128)
                T.fence(kind="mbarrier_init")
            T.barrier()
            with T.attr({{"tl.group": "producer:0:128"}}):
                if tx == 0:
                    for ko in T.serial(4):
                        T.mbarrier_wait(empty[ko % 2:ko % 2 + 1], {acquire_phase})
                        T.mbarrier_expect(full[ko % 2:ko % 2 + 1], {bytes})
                        T.issue(A_shared[ko % 2, 0:64, 0:16], A[0:64, ko * 16:ko * 16 + 16], full[ko % 2:ko % 2 + 1], row="tma.load.2d.64x16.float16.s32")
                        T.issue(B_shared[ko % 2, 0:16, 0:64], B[ko * 16:ko * 16 + 16, 0:64], full[ko % 2:ko % 2 + 1], row="tma.load.2d.16x64.float16.s128")
            with T.attr({{"tl.group": "consumer:128:128"}}):
                C_local = T.alloc_buffer((32,), scope="local")
                for v in T.serial(32):
                    C_local[v] = T.float32(0)
                for ko in T.serial(4):
                    T.mbarrier_wait(full[ko % 2:ko % 2 + 1], {wait_phase})
{early_release}
{wgmma_fence}
                    T.issue(C_local[0:32], A_shared[ko % 2, 0:64, 0:16], B_shared[ko % 2, 0:16, 0:64], row="wgmma.m64n64k16.f32.f16.ss.k.mn")
                    T.commit_group(kind="wgmma")
{wgmma_wait}
{release}
                for v in T.unroll(16):
                    C_shared[(tx - 128) // 32 * 16 + tx % 32 // 4 + v % 2 * 8, v // 2 * 8 + tx % 4 * 2] = T.Cast("float16", C_local[v * 2])
                    C_shared[(tx - 128) // 32 * 16 + tx % 32 // 4 + v % 2 * 8, v // 2 * 8 + tx % 4 * 2 + 1] = T.Cast("float16", C_local[v * 2 + 1])
{fence}
{epilogue_barrier}
                if tx == 128:
                    T.issue(C[0:64, 0:64], C_shared[0:64, 0:64], row="tma.store.2d.64x64.float16.s128")
                    T.commit_group(kind="bulk")
{bulk_wait}
"""  # noqa: E501


def hopper_matmul(stage: str = "synced", **planted):
    """A 64 × 64 × 64 matmul by TMA and wgmma: one producer thread, one consumer warpgroup, a ring of two
    slots.

    `planted` replaces a piece of the text by another: that is how each defect is made.
    """
    pieces = {
        "acquire_phase": "(ko // 2 + 1) % 2",
        "wait_phase": "ko // 2 % 2",
        "bytes": "4096",
        "rows": "64",
        "early_release": "",
        "wgmma_fence": 'T.fence(kind="wgmma")',
        "wgmma_wait": 'T.wait_group(kind="wgmma", pending=0)',
        "release": "T.mbarrier_arrive(empty[ko % 2:ko % 2 + 1])",
        "fence": 'T.fence(kind="proxy.async")',
        "epilogue_barrier": "T.barrier(id=1, threads=128)",
        "bulk_wait": 'T.wait_group(kind="bulk", pending=0)',
    } | planted
    depth = {
        "early_release": 20,
        "wgmma_fence": 20,
        "wgmma_wait": 20,
        "release": 20,
        "fence": 16,
        "epilogue_barrier": 16,
        "bulk_wait": 20,
    }
    for key, indent in depth.items():
        pieces[key] = " " * indent + pieces[key] if pieces[key] else ""
    text = HOPPER.format(
        stage=stage,
        a=ring((64, 16), 2, 32),
        b=ring((16, 64), 2, 128),
        c=str(shared_tile((64, 64), 16, 128)),
        **pieces,
    )
    return parse_function(text)
