"""Kernels with branches, loops and additions that depend on the data."""

import numpy as np

import tilelab.language as T
from tests.kernels.case import KernelCase, floats, integers


def histogram(X, counts, block=128):
    (N,) = X.shape
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                T.atomic_add(counts[X[bx * block + i]], 1)
    return counts


def split_k(A, B, C, block_K=32):
    M, K = A.shape
    _, N = B.shape
    with T.Kernel(T.ceildiv(K, block_K), threads=128) as bk:
        A_shared = T.alloc_shared((M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, N), B.dtype)
        C_local = T.alloc_fragment((M, N), T.float32)
        T.copy(A[0, bk * block_K], A_shared)
        T.copy(B[bk * block_K, 0], B_shared)
        T.clear(C_local)
        T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(M, N):
            T.atomic_add(C[i, j], C_local[i, j])
    return C


def collatz(X, threads=64):
    (N,) = X.shape
    S = T.empty((N,), T.int32)
    with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
        index = bx * threads + T.get_thread_binding()
        value = T.alloc_var(T.int32, init=1)
        steps = T.alloc_var(T.int32, init=0)
        if index < N:
            value = X[index]
        while value > 1:
            if value % 2 == 0:  # noqa: SIM108  a branch of the IR is wanted
                value = value // 2
            else:
                value = 3 * value + 1
            steps += 1
        if index < N:
            S[index] = steps
    return S


def polynomial(X, coefficients, block=64):
    (N,) = X.shape
    Y = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
        x = T.alloc_fragment((block,), T.float32)
        y = T.alloc_fragment((block,), T.float32)
        T.copy(X[bx * block], x)
        T.clear(y)
        for d in range(len(coefficients)):
            for i in T.Parallel(block):
                y[i] = y[i] * x[i] + coefficients[d]
        T.copy(y, Y[bx * block])
    return Y


def signs(X, block=64):
    (N,) = X.shape
    S = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
        for i in T.Parallel(block):
            if X[bx * block + i] > 0:  # the condition itself reads beyond the last element
                S[bx * block + i] = 1.0
            else:
                S[bx * block + i] = -1.0
    return S


def runs(X, extra, threads=64):
    (N,) = X.shape
    S = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
        first = bx * threads + T.get_thread_binding()
        total = T.alloc_var(T.float32, init=0.0)
        i = T.alloc_var(T.int32, init=0)
        while X[first + i] > 0:  # up to the first number that is not positive, or the end
            total += X[first + i]
            i += 1
        for _ in T.serial(extra[first]):
            total += 1.0
        if first < N:
            S[first] = total
    return S


def sums_of_runs(X: np.ndarray, extra: np.ndarray) -> tuple[np.ndarray]:
    out = extra.astype(np.float64)
    for first in range(len(X)):
        for x in X[first:]:
            if x <= 0:
                break
            out[first] += x
    return (out,)


def steps_of(X: np.ndarray) -> tuple[np.ndarray]:
    out = np.zeros_like(X)
    for i, x in enumerate(X):
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            out[i] += 1
    return (out,)


CASES = (
    KernelCase(
        "histogram",
        histogram,
        lambda: (integers(200, low=0, high=16), np.zeros(16, "int32")),
        lambda X, counts: (counts + np.bincount(X, minlength=16).astype("int32"),),
        0.0,
    ),
    KernelCase(
        "split_k",
        split_k,
        lambda: (floats(64, 64), floats(64, 64, seed=1), floats(64, 64, dtype="float32", seed=2)),
        lambda A, B, C: (C + A.astype(np.float64) @ B.astype(np.float64),),
        1e-5,
    ),
    KernelCase(
        "collatz",
        collatz,
        lambda: (integers(100, low=1, high=40),),
        steps_of,
        0.0,
    ),
    KernelCase(
        "polynomial",
        polynomial,
        lambda: (floats(100, dtype="float32"), floats(4, dtype="float32", seed=1)),
        lambda X, c: (np.polyval(c.astype(np.float64), X.astype(np.float64)),),
        1e-5,
    ),
    KernelCase(
        "signs",
        signs,
        lambda: (floats(100, dtype="float32"),),
        lambda X: (np.where(X > 0, 1.0, -1.0),),
        0.0,
    ),
    KernelCase(
        "runs",
        runs,
        lambda: (floats(100, dtype="float32"), integers(100, low=0, high=4)),
        sums_of_runs,
        1e-6,
    ),
)
