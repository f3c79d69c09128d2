"""Kernels that treat each element by itself, or move it elsewhere."""

import numpy as np

import tilelab.language as T
from tests.kernels.case import KernelCase, floats, integers


def add(A, B, block_M=32, block_N=64):
    M, N = A.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        for i, j in T.Parallel(block_M, block_N):
            C[by * block_M + i, bx * block_N + j] = (
                A[by * block_M + i, bx * block_N + j] + (B[by * block_M + i, bx * block_N + j])
            )
    return C


def add_through_tiles(A, B, block_M=32, block_N=64):
    M, N = A.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_N), A.dtype)
        B_local = T.alloc_fragment((block_M, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), A.dtype)
        T.copy(A[by * block_M, bx * block_N], A_shared)
        T.copy(B[by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N], B_local)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = A_shared[i, j] + B_local[i, j]
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def dequantize(Q, scale, block_M=32, block_N=64):
    M, N = Q.shape
    X = T.empty((M, N), T.float16)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        Q_local = T.alloc_fragment((block_M, block_N), T.int8)
        X_local = T.alloc_fragment((block_M, block_N), T.float16)
        T.copy(Q[by * block_M, bx * block_N], Q_local)
        for i, j in T.Parallel(block_M, block_N):
            X_local[i, j] = T.cast(Q_local[i, j], T.float32) * scale[by * block_M + i]
        T.copy(X_local, X[by * block_M, bx * block_N])
    return X


def unpack_nibbles(Q, block=64):
    M, N = Q.shape
    X = T.empty((M, 2 * N), T.float16)
    with T.Kernel(M, threads=64) as bx:
        for j in T.Parallel(block):
            byte = Q[bx, j // 2]
            X[bx, j] = T.if_then_else(j % 2 == 0, byte & 15, byte >> 4)
    return X


def transpose(A, block=32):
    M, N = A.shape
    B = T.empty((N, M), A.dtype)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
        A_shared = T.alloc_shared((block, block), A.dtype)
        B_local = T.alloc_fragment((block, block), A.dtype)
        T.copy(A[by * block, bx * block], A_shared)
        for i, j in T.Parallel(block, block):
            B_local[i, j] = A_shared[j, i]
        T.copy(B_local, B[bx * block, by * block])
    return B


@T.macro
def gelu(x):
    return 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))


def gelu_and_gate(X, G, block=128):
    (N,) = X.shape
    Y = T.empty((N,), X.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            x = T.cast(X[bx * block + i], T.float32)
            Y[bx * block + i] = gelu(x) * T.sigmoid(G[bx * block + i])
    return Y


def gated(X: np.ndarray, G: np.ndarray) -> tuple[np.ndarray]:
    from math import erf

    x, g = X.astype(np.float64), G.astype(np.float64)
    return (0.5 * x * (1 + np.vectorize(erf)(x * np.sqrt(0.5))) / (1 + np.exp(-g)),)


def nibbles(Q: np.ndarray) -> tuple[np.ndarray]:
    return (np.stack([Q & 15, Q >> 4], -1).reshape(Q.shape[0], -1),)


def total(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray]:
    return (A.astype(np.float64) + B,)


CASES = (
    KernelCase("add", add, lambda: (floats(32, 128), floats(32, 128, seed=1)), total, 1e-3),
    KernelCase("add_ragged", add, lambda: (floats(33, 61), floats(33, 61, seed=1)), total, 1e-3),
    KernelCase("add_one_element", add, lambda: (floats(1, 1), floats(1, 1, seed=1)), total, 1e-3),
    KernelCase(
        "add_through_tiles",
        add_through_tiles,
        lambda: (floats(50, 64, dtype="float32"), floats(50, 64, dtype="float32", seed=1)),
        total,
        1e-6,
    ),
    KernelCase(
        "dequantize",
        dequantize,
        lambda: (
            integers(32, 100, low=-128, high=128, dtype="int8"),
            np.abs(floats(32, dtype="float32", seed=1)),
        ),
        lambda Q, s: (Q.astype(np.float64) * s[:, None].astype(np.float64),),
        1e-3,
    ),
    KernelCase(
        "unpack_nibbles",
        unpack_nibbles,
        lambda: (integers(2, 32, low=0, high=256, dtype="uint8"),),
        nibbles,
        0.0,
    ),
    KernelCase("transpose", transpose, lambda: (floats(32, 64),), lambda A: (A.T,), 0.0),
    KernelCase("gelu_and_gate", gelu_and_gate, lambda: (floats(200), floats(200, seed=1)), gated, 1e-3),
)
