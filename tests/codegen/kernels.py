"""Device-stage kernels written by hand: what the passes should come to, before they do."""

from __future__ import annotations

from tilelab.ir.text import parse_function

HEAD = """
@T.prim_func
def {name}({params}):
    T.func_attr({{"tl.stage": "device", "tl.threads": {threads}, "global_symbol": "{name}"}})
"""


def function(name: str, params: str, threads: int, body: str, blocks: tuple[int, ...] = (1,)):
    """A kernel from its body's text, in a grid of `blocks` (x, y)."""
    lines, depth = [], 1
    for axis, extent in zip("xy", blocks, strict=False):
        lines.append("    " * depth + f'with T.launch_thread("blockIdx.{axis}", {extent}) as b{axis}:')
        depth += 1
    lines.append("    " * depth + f'with T.launch_thread("threadIdx.x", {threads}) as tx:')
    depth += 1
    lines += ["    " * depth + line for line in body.strip("\n").split("\n")]
    return parse_function(HEAD.format(name=name, params=params, threads=threads) + "\n".join(lines))


def vector_add(dtype: str = "float32", lanes: int = 4, threads: int = 128, blocks: int = 2):
    """C = A + B, a vector of `lanes` a thread."""
    size = lanes * threads * blocks
    tensors = ", ".join(f'{name}: T.Buffer(({size},), "{dtype}")' for name in "ABC")
    at = f"T.Ramp((bx * {threads} + tx) * {lanes}, 1, {lanes})"
    return function("vector_add", tensors, threads, f"C[{at}] = A[{at}] + B[{at}]", (blocks,))


def matmul_params(m: int, n: int, k: int, dtype: str, out: str) -> str:
    """The parameters of a matmul whose tensors are flat."""
    operands = f'A: T.Buffer(({m * k},), "{dtype}"), B: T.Buffer(({k * n},), "{dtype}")'
    return f'{operands}, C: T.Buffer(({m * n},), "{out}")'


def mma_matmul(m: int, n: int, k: int, dtype: str = "float16", out: str = "float16"):
    """C = A · B by mma.sync: 128 × 128 × 32 tiles, four warps of 64 × 64, a ring of three slots filled by
    cp.async.
    """
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    load = f"""
for i in T.unroll(4):
    T.issue(A_shared[SLOT * 4096 + (i * 32 + tx // 4) * 32 + ((tx % 4) ^ (i * 32 + tx // 4) // 2 % 4) * 8:SLOT * 4096 + (i * 32 + tx // 4) * 32 + ((tx % 4) ^ (i * 32 + tx // 4) // 2 % 4) * 8 + 8], A[(by * 128 + i * 32 + tx // 4) * {k} + (STEP) * 32 + tx % 4 * 8:(by * 128 + i * 32 + tx // 4) * {k} + (STEP) * 32 + tx % 4 * 8 + 8], row="cp.async.16")
for i in T.unroll(4):
    T.issue(B_shared[SLOT * 4096 + tx % 16 // 8 * 2048 + (i * 8 + tx // 16) * 64 + (tx % 8 ^ (i * 8 + tx // 16) % 8) * 8:SLOT * 4096 + tx % 16 // 8 * 2048 + (i * 8 + tx // 16) * 64 + (tx % 8 ^ (i * 8 + tx // 16) % 8) * 8 + 8], B[((STEP) * 32 + i * 8 + tx // 16) * {n} + bx * 128 + tx % 16 * 8:((STEP) * 32 + i * 8 + tx // 16) * {n} + bx * 128 + tx % 16 * 8 + 8], row="cp.async.16")
"""  # noqa: E501

    def loads(slot: str, step: str, depth: int) -> str:
        text = load.replace("SLOT", slot).replace("STEP", step).strip("\n")
        return "\n".join("    " * depth + line for line in text.split("\n")).strip()

    body = f"""
A_shared = T.alloc_buffer((12288,), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 0}})
B_shared = T.alloc_buffer((12288,), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 24576}})
C_local = T.alloc_buffer((128,), "float32", scope="local")
A_local = T.alloc_buffer((32,), "{dtype}", scope="local")
B_local = T.alloc_buffer((32,), "{dtype}", scope="local")
for i in T.unroll(128):
    C_local[i] = T.float32(0)
{loads("0", "0", 0)}
T.commit_group(kind="cp.async")
{loads("1", "1", 0)}
T.commit_group(kind="cp.async")
for ko in T.serial({k // 32}):
    T.wait_group(kind="cp.async", pending=1)
    T.barrier()
    if ko + 2 < {k // 32}:
        {loads("((ko + 2) % 3)", "ko + 2", 2)}
    T.commit_group(kind="cp.async")
    for kk in T.unroll(2):
        for i in T.unroll(4):
            T.issue(A_local[i * 8:i * 8 + 8], A_shared[ko % 3 * 4096 + (tx // 64 * 64 + i * 16 + tx % 16) * 32 + (kk * 2 + tx % 32 // 16 ^ tx % 16 // 2 % 4) * 8:ko % 3 * 4096 + (tx // 64 * 64 + i * 16 + tx % 16) * 32 + (kk * 2 + tx % 32 // 16 ^ tx % 16 // 2 % 4) * 8 + 8], row="ldmatrix.x4")
        for j in T.unroll(4):
            T.issue(B_local[j * 8:j * 8 + 8], B_shared[ko % 3 * 4096 + tx % 64 // 32 * 2048 + (kk * 16 + tx % 16) * 64 + (j * 2 + tx % 32 // 16 ^ tx % 8) * 8:ko % 3 * 4096 + tx % 64 // 32 * 2048 + (kk * 16 + tx % 16) * 64 + (j * 2 + tx % 32 // 16 ^ tx % 8) * 8 + 8], row="ldmatrix.x4.trans")
        for i in T.unroll(4):
            for j in T.unroll(8):
                T.issue(C_local[i * 32 + j * 4:i * 32 + j * 4 + 4], A_local[i * 8:i * 8 + 8], B_local[j * 4:j * 4 + 4], row="mma.m16n8k16.f32.{short}")
for i in T.unroll(4):
    for j in T.unroll(8):
        for h in T.unroll(2):
            C[T.Ramp((by * 128 + tx // 64 * 64 + i * 16 + h * 8 + tx % 32 // 4) * {n} + bx * 128 + tx % 64 // 32 * 64 + j * 8 + tx % 4 * 2, 1, 2)] = T.Cast("{out}x2", C_local[T.Ramp(i * 32 + j * 4 + h * 2, 1, 2)])
"""  # noqa: E501
    return function("matmul", matmul_params(m, n, k, dtype, out), 128, body, (n // 128, m // 128))


def row_sums(rows: int = 8, columns: int = 256, dtype: str = "float16", warp: int = 32):
    """S[r] = the sum of row r of A, a warp a row, by exchanges between lanes."""
    each = columns // warp
    steps = [s for s in (32, 16, 8, 4, 2, 1) if s < warp]
    exchange = "\n".join(
        f'total[0] = total[0] + T.Call("tl.shuffle_xor", [total[0], {s}], ret_ty="float32")' for s in steps
    )
    body = f"""
total = T.alloc_buffer((1,), "float32", scope="local.var")
total[0] = T.float32(0)
for i in T.serial({each}):
    total[0] = total[0] + T.Cast("float32", A[(bx * 2 + tx // {warp}) * {columns} + tx % {warp} + i * {warp}])
{exchange}
if tx % {warp} == 0:
    S[bx * 2 + tx // {warp}] = total[0]
"""
    tensors = f'A: T.Buffer(({rows * columns},), "{dtype}"), S: T.Buffer(({rows},), "float32")'
    return function("row_sums", tensors, 2 * warp, body, (rows // 2,))


def histogram(size: int = 1024, bins: int = 16):
    """Counts (int32), sums (float32) and sums of pairs (float16) of values by bin, by atomic additions."""
    body = """
pair = T.alloc_buffer((2,), "float16", scope="local")
pair[0] = T.Cast("float16", A[bx * 128 + tx])
pair[1] = T.float16(1)
T.atomic_add(counts[B[bx * 128 + tx]:B[bx * 128 + tx] + 1], 1)
T.atomic_add(sums[B[bx * 128 + tx]:B[bx * 128 + tx] + 1], A[bx * 128 + tx])
T.atomic_add(pairs[B[bx * 128 + tx] * 2:B[bx * 128 + tx] * 2 + 2], pair[0:2])
"""
    tensors = (
        f'A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "int32"), '
        f'counts: T.Buffer(({bins},), "int32"), sums: T.Buffer(({bins},), "float32"), '
        f'pairs: T.Buffer(({2 * bins},), "float16")'
    )
    return function("histogram", tensors, 128, body, (size // 128,))


def wgmma_matmul(m: int, n: int, k: int, dtype: str = "float16", split: bool = False):
    """C = A · B on Hopper: 128 × 256 × 64 tiles, a producer that feeds a ring of four by TMA, two consumers
    of 64 rows.

    B is (k, n), so its tiles are MN-major: four boxes of 64 columns. C leaves through swizzled shared memory
    and TMA.
    """
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    steps = k // 64
    slabs = "".join(
        f"""
    if tx % 128 == 0:
        T.wait_group(kind="bulk", pending=1)
    T.barrier()
    for j in T.unroll(4):
        for e in T.unroll(4):
            packed[T.Ramp(e * 2, 1, 2)] = T.Cast("{dtype}x2", C_local[T.Ramp({32 * s} + j * 8 + e * 2, 1, 2)])
        T.issue(C_shared[(tx // 128 - 1) * 2 + {s % 2}, tx % 128 // 32 * 16 + tx % 16, j * 16 + tx % 32 // 16 * 8:j * 16 + tx % 32 // 16 * 8 + 8], packed[0:8], row="stmatrix.x4")
    T.fence(kind="proxy.async")
    T.barrier()
    if tx % 128 == 0:
        T.issue(C[by * 128 + (tx // 128 - 1) * 64:by * 128 + (tx // 128 - 1) * 64 + 64, bx * 256 + {64 * s}:bx * 256 + {64 * s} + 64], C_shared[(tx // 128 - 1) * 2 + {s % 2}, 0:64, 0:64], row="tma.store.2d.64x64.{dtype}.s128")
        T.commit_group(kind="bulk")"""  # noqa: E501
        for s in range(4)
    )
    consumer = f"""
    T.set_max_registers(count=232, increase=True)
    C_local = T.alloc_buffer((128,), "float32", scope="local")
    packed = T.alloc_buffer((8,), "{dtype}", scope="local")
    for ko in T.serial({steps}):
        T.mbarrier_wait(full[ko % 4:ko % 4 + 1], ko // 4 % 2)
        T.fence(kind="wgmma")
        for kk in T.unroll(4):
            T.issue(C_local[0:128], A_shared[ko % 4, (tx // 128 - 1) * 64:(tx // 128 - 1) * 64 + 64, kk * 16:kk * 16 + 16], B_shared[ko % 4, kk * 16:kk * 16 + 16, 0:256], ko + kk > 0, row="wgmma.m64n256k16.f32.{short}.ss.k.mn")
        T.commit_group(kind="wgmma")
        T.wait_group(kind="wgmma", pending=0)
        if tx % 128 == 0:
            T.mbarrier_arrive(empty[ko % 4:ko % 4 + 1])
{slabs}
    if tx % 128 == 0:
        T.wait_group(kind="bulk", pending=0)
"""  # noqa: E501
    if split:
        # A role a warpgroup, each with its own number in the text instead of one computed from the thread.
        roles = [
            (f"consumer{w}:{128 * (w + 1)}:128", consumer.replace("(tx // 128 - 1)", str(w))) for w in (0, 1)
        ]
    else:
        roles = [("consumers:128:256", consumer)]
    consumers = "\n".join(f'with T.attr({{"tl.group": "{name}"}}):{text.rstrip()}' for name, text in roles)
    body = f"""
A_shared = T.alloc_buffer((4, 128, 64), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 0, "tl.layout": "S<3,3,3>o(4,128,64):(8192,64,1)"}})
B_shared = T.alloc_buffer((4, 64, 256), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 65536, "tl.layout": "S<3,3,3>o(4,64,(64,4)):(16384,64,(1,4096))"}})
C_shared = T.alloc_buffer((4, 64, 64), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 196608, "tl.layout": "S<3,3,3>o(4,64,64):(4096,64,1)"}})
full = T.alloc_buffer((4,), "uint64", scope="shared.barrier", annotations={{"tl.offset": 229376}})
empty = T.alloc_buffer((4,), "uint64", scope="shared.barrier", annotations={{"tl.offset": 229408}})
if tx == 0:
    for s in T.unroll(4):
        T.mbarrier_init(full[s:s + 1], 1)
        T.mbarrier_init(empty[s:s + 1], 2)
    T.fence(kind="mbarrier_init")
T.barrier()
with T.attr({{"tl.group": "producer:0:128"}}):
    T.set_max_registers(count=40, increase=False)
    if tx == 0:
        for ko in T.serial({steps}):
            T.mbarrier_wait(empty[ko % 4:ko % 4 + 1], ko // 4 % 2 ^ 1)
            T.mbarrier_expect(full[ko % 4:ko % 4 + 1], 49152)
            T.issue(A_shared[ko % 4, 0:128, 0:64], A[by * 128:by * 128 + 128, ko * 64:ko * 64 + 64], full[ko % 4:ko % 4 + 1], row="tma.load.2d.128x64.{dtype}.s128")
            for j in T.unroll(4):
                T.issue(B_shared[ko % 4, 0:64, j * 64:j * 64 + 64], B[ko * 64:ko * 64 + 64, bx * 256 + j * 64:bx * 256 + j * 64 + 64], full[ko % 4:ko % 4 + 1], row="tma.load.2d.64x64.{dtype}.s128")
{consumers}
"""  # noqa: E501
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    params = ", ".join(f'{name}: T.Buffer({shape}, "{dtype}")' for name, shape in shapes.items())
    return function("matmul", params, 384, body, (n // 256, m // 128))


def mfma_matmul(m: int, n: int, k: int, dtype: str = "float16"):
    """C = A · B on MI300X: 128 × 128 × 32 tiles, four waves of 64 × 64 by mfma 32 × 32 × 8, global →
    registers → LDS.

    A lies in LDS as (m, k) and B as (n, k), rows padded to 40 elements, so that a lane reads four neighbours.
    """
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    body = f"""
A_shared = T.alloc_buffer((5120,), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 0}})
B_shared = T.alloc_buffer((5120,), "{dtype}", scope="shared.dyn", annotations={{"tl.offset": 10240}})
C_local = T.alloc_buffer((64,), "float32", scope="local")
A_next = T.alloc_buffer((16,), "{dtype}", scope="local")
B_next = T.alloc_buffer((16,), "{dtype}", scope="local")
A_local = T.alloc_buffer((8,), "{dtype}", scope="local")
B_local = T.alloc_buffer((8,), "{dtype}", scope="local")
for i in T.unroll(64):
    C_local[i] = T.float32(0)
for ko in T.serial({k // 32}):
    for i in T.unroll(2):
        T.issue(A_next[i * 8:i * 8 + 8], A[(by * 128 + i * 64 + tx // 4) * {k} + ko * 32 + tx % 4 * 8:(by * 128 + i * 64 + tx // 4) * {k} + ko * 32 + tx % 4 * 8 + 8], row="global_load_dwordx4")
        T.issue(B_next[i * 8:i * 8 + 8], B[(ko * 32 + i * 16 + tx // 16) * {n} + bx * 128 + tx % 16 * 8:(ko * 32 + i * 16 + tx // 16) * {n} + bx * 128 + tx % 16 * 8 + 8], row="buffer_load_dwordx4")
    T.barrier()
    for i in T.unroll(2):
        T.issue(A_shared[(i * 64 + tx // 4) * 40 + tx % 4 * 8:(i * 64 + tx // 4) * 40 + tx % 4 * 8 + 8], A_next[i * 8:i * 8 + 8], row="ds_write_b128")
        for e in T.unroll(8):
            B_shared[(tx % 16 * 8 + e) * 40 + i * 16 + tx // 16] = B_next[i * 8 + e]
    T.barrier()
    for kk in T.unroll(4):
        for i in T.unroll(2):
            T.issue(A_local[i * 4:i * 4 + 4], A_shared[(tx // 128 * 64 + i * 32 + tx % 32) * 40 + kk * 8 + tx % 64 // 32 * 4:(tx // 128 * 64 + i * 32 + tx % 32) * 40 + kk * 8 + tx % 64 // 32 * 4 + 4], row="ds_read_b64")
            T.issue(B_local[i * 4:i * 4 + 4], B_shared[(tx % 128 // 64 * 64 + i * 32 + tx % 32) * 40 + kk * 8 + tx % 64 // 32 * 4:(tx % 128 // 64 * 64 + i * 32 + tx % 32) * 40 + kk * 8 + tx % 64 // 32 * 4 + 4], row="ds_read_b64")
        for i in T.unroll(2):
            for j in T.unroll(2):
                T.issue(C_local[i * 32 + j * 16:i * 32 + j * 16 + 16], A_local[i * 4:i * 4 + 4], B_local[j * 4:j * 4 + 4], row="mfma.f32.32x32x8.{short}")
for i in T.unroll(2):
    for j in T.unroll(2):
        for r in T.unroll(16):
            C[(by * 128 + tx // 128 * 64 + i * 32 + r // 4 * 8 + tx % 64 // 32 * 4 + r % 4) * {n} + bx * 128 + tx % 128 // 64 * 64 + j * 32 + tx % 32] = T.Cast("{dtype}", C_local[i * 32 + j * 16 + r])
"""  # noqa: E501
    return function("matmul", matmul_params(m, n, k, dtype, dtype), 256, body, (n // 128, m // 128))
