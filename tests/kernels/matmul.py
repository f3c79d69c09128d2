"""Matrix products: all transposes, ragged sizes, an epilogue, both styles."""

import numpy as np

import tilelab.language as T
from tests.kernels.case import KernelCase, floats

SMALL = {"block_M": 64, "block_N": 64, "block_K": 32}


def matmul(A, B, block_M=128, block_N=128, block_K=32):
    M, K = A.shape
    K, N = B.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def matmul_annotated(A, B, block_M=128, block_N=128, block_K=32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C = T.empty((M, N), T.float16)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def matmul_nt(A, B, block_M=64, block_N=64, block_K=32):
    M, K = A.shape
    N, _ = B.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        T.use_swizzle(panel_size=4)
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_N, block_K), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[bx * block_N, ko * block_K], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def matmul_tn(A, B, block_M=64, block_N=64, block_K=32):
    K, M = A.shape
    _, N = B.shape
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_K, block_M), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[ko * block_K, by * block_M], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_A=True)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def gemm_bias_relu(A, B, bias, block_M=64, block_N=64, block_K=32):
    M, K = A.shape
    _, N = B.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        bias_local = T.alloc_fragment((block_N,), A.dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.copy(bias[bx * block_N], bias_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            if ko == 0:
                T.clear(C_local)
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j] + bias_local[j], 0.0)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def matmul_factory(M, N, K, block_M=64, block_N=64, block_K=32, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                for k, j in T.Parallel(block_K, block_N):
                    B_shared[k, j] = B[ko * block_K + k, bx * block_N + j]
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def product(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray]:
    return (A.astype(np.float64) @ B.astype(np.float64),)


def bias_relu(A: np.ndarray, B: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray]:
    return (np.maximum(product(A, B)[0] + bias.astype(np.float64), 0),)


CASES = (
    KernelCase("matmul", matmul, lambda: (floats(128, 128), floats(128, 64, seed=1)), product, 1e-3, SMALL),
    KernelCase(
        "matmul_ragged", matmul, lambda: (floats(100, 70), floats(70, 60, seed=1)), product, 1e-3, SMALL
    ),
    KernelCase(
        "matmul_bfloat16",
        matmul,
        lambda: (floats(64, 64, dtype="bfloat16"), floats(64, 128, dtype="bfloat16", seed=1)),
        product,
        8e-3,
        SMALL,
    ),
    KernelCase(
        "matmul_float32",
        matmul,
        lambda: (floats(64, 64, dtype="float32"), floats(64, 64, dtype="float32", seed=1)),
        product,
        1e-5,
        SMALL,
        targets=("llvm",),
    ),
    KernelCase(
        "matmul_annotated",
        matmul_annotated,
        lambda: (floats(64, 64), floats(64, 128, seed=1)),
        product,
        1e-3,
        SMALL,
    ),
    KernelCase(
        "matmul_nt",
        matmul_nt,
        lambda: (floats(64, 96), floats(128, 96, seed=1)),
        lambda A, B: product(A, B.T),
        1e-3,
    ),
    KernelCase(
        "matmul_tn",
        matmul_tn,
        lambda: (floats(64, 64), floats(64, 128, seed=1)),
        lambda A, B: product(A.T, B),
        1e-3,
    ),
    KernelCase(
        "gemm_bias_relu",
        gemm_bias_relu,
        lambda: (floats(96, 64), floats(64, 64, seed=1), floats(64, seed=2)),
        bias_relu,
        1e-3,
    ),
    KernelCase(
        "matmul_lazy",
        matmul_factory,
        lambda: (floats(64, 64), floats(64, 64, seed=1)),
        product,
        1e-3,
        {"M": 64, "N": 64, "K": 64},
        lazy=True,
    ),
)
