"""Kernels that reduce, normalise or scan the rows of a matrix."""

import numpy as np

import tilelab.language as T
from tests.kernels.case import KernelCase, floats


def row_sum(A, block_M=32, block_N=32):
    M, N = A.shape
    S = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        tile = T.alloc_fragment((block_M, block_N), T.float32)
        sums = T.alloc_fragment((block_M,), T.float32)
        T.clear(sums)
        for k in T.serial(T.ceildiv(N, block_N)):
            T.copy(A[bx * block_M, k * block_N], tile)
            T.reduce_sum(tile, sums, dim=1, clear=False)
        T.copy(sums, S[bx * block_M])
    return S


def extremes(A, block_M=32):
    M, N = A.shape
    high = T.empty((M,), A.dtype)
    low = T.empty((M,), A.dtype)
    span = T.empty((M, 1), T.float32)
    with T.Kernel(T.ceildiv(M, block_M), threads=64) as bx:
        tile = T.alloc_fragment((block_M, N), A.dtype)
        greatest = T.alloc_fragment((block_M,), A.dtype)
        least = T.alloc_fragment((block_M,), A.dtype)
        widest = T.alloc_fragment((block_M, 1), A.dtype)
        T.copy(A[bx * block_M, 0], tile)
        T.reduce_max(tile, greatest, dim=-1)
        T.reduce_min(tile, least, dim=1)
        T.reduce_absmax(tile, widest, dim=1)
        T.copy(greatest, high[bx * block_M])
        T.copy(least, low[bx * block_M])
        T.copy(widest, span[bx * block_M, 0])
    return high, low, span


def softmax(X, block_M=16):
    M, N = X.shape
    Y = T.empty((M, N), X.dtype)
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        rows = T.alloc_fragment((block_M, N), T.float32)
        top = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bx * block_M, 0], rows)
        T.fill(top, -T.infinity(T.float32))
        T.reduce_max(rows, top, dim=1, clear=False)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] = T.exp2((rows[i, j] - top[i]) * 1.4426950408889634)
        T.reduce_sum(rows, total, dim=1)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] /= total[i]
        T.copy(rows, Y[bx * block_M, 0])
    return Y


def rms_norm(X, weight, block_M=16, epsilon=1e-5):
    M, N = X.shape
    Y = T.empty((M, N), X.dtype)
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        X_shared = T.alloc_shared((block_M, N), X.dtype)
        squares = T.alloc_fragment((block_M, N), T.float32)
        scale = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bx * block_M, 0], X_shared)
        for i, j in T.Parallel(block_M, N):
            x = T.cast(X_shared[i, j], T.float32)
            squares[i, j] = x * x
        T.reduce_sum(squares, scale, dim=1)
        for i in T.Parallel(block_M):
            scale[i] = T.rsqrt(scale[i] / N + epsilon)
        for i, j in T.Parallel(block_M, N):
            squares[i, j] = X_shared[i, j] * scale[i] * weight[j]
        T.copy(squares, Y[bx * block_M, 0])
    return Y


def running_sums(X, block_M=16):
    M, N = X.shape
    Y = T.empty((M, N), T.float32)
    Z = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, block_M), threads=64) as bx:
        forward = T.alloc_shared((block_M, N), T.float32)
        backward = T.alloc_shared((block_M, N), T.float32)
        T.copy(X[bx * block_M, 0], forward)
        T.copy(forward, backward)
        T.cumsum(forward, dim=1)
        T.cumsum(backward, dim=1, reverse=True)
        T.copy(forward, Y[bx * block_M, 0])
        T.copy(backward, Z[bx * block_M, 0])
    return Y, Z


def gemv(A, x, block_M=32, block_K=32):
    M, K = A.shape
    y = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        A_local = T.alloc_fragment((block_M, block_K), A.dtype)
        x_local = T.alloc_fragment((block_K,), x.dtype)
        products = T.alloc_fragment((block_M, block_K), T.float32)
        sums = T.alloc_fragment((block_M,), T.float32)
        T.clear(sums)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[bx * block_M, k * block_K], A_local)
            T.copy(x[k * block_K], x_local)
            for i, j in T.Parallel(block_M, block_K):
                products[i, j] = T.cast(A_local[i, j], T.float32) * T.cast(x_local[j], T.float32)
            T.reduce_sum(products, sums, dim=1, clear=False)
        T.copy(sums, y[bx * block_M])
    return y


def soft(X: np.ndarray) -> tuple[np.ndarray]:
    x = X.astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True),)


def normed(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray]:
    x = X.astype(np.float64)
    return (x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * weight.astype(np.float64),)


def sums_both_ways(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = X.astype(np.float64)
    return x.cumsum(1), x[:, ::-1].cumsum(1)[:, ::-1]


def ends(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return A.max(1), A.min(1), np.abs(A).max(1, keepdims=True)


CASES = (
    KernelCase(
        "row_sum", row_sum, lambda: (floats(40, 100),), lambda A: (A.astype(np.float64).sum(1),), 1e-5
    ),
    KernelCase("extremes", extremes, lambda: (floats(64, 64, dtype="float32"),), ends, 0.0),
    KernelCase("softmax", softmax, lambda: (floats(32, 64),), soft, 1e-3),
    KernelCase("rms_norm", rms_norm, lambda: (floats(20, 64), floats(64, seed=1)), normed, 1e-3),
    KernelCase(
        "running_sums", running_sums, lambda: (floats(32, 64, dtype="float32"),), sums_both_ways, 1e-5
    ),
    KernelCase(
        "gemv",
        gemv,
        lambda: (floats(48, 128), floats(128, seed=1)),
        lambda A, x: (A.astype(np.float64) @ x.astype(np.float64),),
        1e-5,
    ),
)
