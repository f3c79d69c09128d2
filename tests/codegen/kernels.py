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
    return f'A: T.Buffer(({m * k},), "{dtype}"), B: T.Buffer(({k * n},), "{dtype}"), C: T.Buffer(({m * n},), "{out}")'


def mma_matmul(m: int, n: int, k: int, dtype: str = "float16", out: str = "float16"):
    """C = A · B by mma.sync: 128 × 128 × 32 tiles, four warps of 64 × 64, a ring of three slots filled by cp.async."""
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
