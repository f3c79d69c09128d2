"""Kernels that combine the language's parts in legal but unusual ways: parts of fragments, single elements,
macros, sizes that divide by nothing."""

import numpy as np

import tilelab.language as T
from tests.kernels.case import KernelCase, floats, integers


def parts_of_fragments(A):
    M, N = A.shape
    C = T.empty((M, N), T.float32)
    S = T.empty((M,), T.float32)
    with T.Kernel(1, threads=128):
        tile = T.alloc_fragment((M, N), T.float32)
        moved = T.alloc_fragment((M, N), T.float32)
        sums = T.alloc_fragment((M,), T.float32)
        T.copy(A, tile)
        T.fill(tile[0:8, 0:N], 3.0)
        T.reduce_sum(tile[0:M, 0 : N // 2], sums, dim=1)
        T.clear(moved)
        T.copy(tile[8:16, 0:N], moved[4:12, 0:N])
        T.copy(A[0:4, 0:N], moved[0:4, 0:N])
        T.copy(moved, C)
        T.copy(sums, S)
    return C, S


def ring_read_by_reduction(A, block=32):
    M, N = A.shape
    S = T.empty((M,), T.float32)
    P = T.empty((M, N), T.float32)
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((M, block), T.float32)
        running = T.alloc_shared((M, block), T.float32)
        sums = T.alloc_fragment((M,), T.float32)
        T.clear(sums)
        for k in T.Pipelined(T.ceildiv(N, block), num_stages=3):
            T.copy(A[0, k * block], tile)
            T.reduce_sum(tile, sums, dim=1, clear=False)
            T.cumsum(tile, running, dim=0, reverse=True)
            T.copy(running, P[0, k * block])
        T.copy(sums, S)
    return S, P


def single_elements(A):
    C = T.empty((4,), T.float32)
    with T.Kernel(1, threads=64):
        S = T.alloc_shared((4,), T.float32)
        T.clear(S)
        S[0] = A[0] + 1
        S[1] = S[0] * 2
        S[1] = S[1] + 1
        for k in T.serial(4):
            S[2] = S[2] + A[k]
        T.atomic_add(S[3], 2.0)
        T.copy(S, C)
    return C


def update_in_place(A, block=16):
    M, N = A.shape
    with T.Kernel(T.ceildiv(M, block), threads=96) as bx:
        for i, j in T.Parallel(block, N):
            A[bx * block + i, j] = A[bx * block + i, j] * 2 + 1
        for i in T.Parallel(block):
            if bx * block + i < M:
                A[bx * block + i, 0] += A[bx * block + i, 1]
    return A


def private_arrays(A):
    M, N = A.shape
    C = T.empty((M, N), T.float32)
    with T.Kernel(1, threads=M):
        tx = T.get_thread_binding()
        row = T.alloc_local((N,), T.float16)
        T.copy(A[tx, 0:N], row)
        T.fill(row[1:3], 7.0)
        for i in T.serial(N):
            row[i] = row[i] * 2
        T.copy(row, C[tx, 0:N])
    return C


@T.macro
def load_and_multiply(A, B, A_shared, B_shared, C_local, k):
    T.copy(A[0, k], A_shared)
    T.copy(B[k, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)


def matmul_by_macro(A, B, block_K=16):
    M, K = A.shape
    _, N = B.shape
    C = T.empty((M, N), T.float32)
    with T.Kernel(1, threads=64):
        A_shared = T.alloc_shared((32, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, 32), T.float16)
        C_local = T.alloc_fragment((32, 32), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            load_and_multiply(A, B, A_shared, B_shared, C_local, k * block_K)
        T.copy(C_local, C[0, 0])
    return C


def greatest_with_nan(A):
    M, N = A.shape
    C = T.empty((M,), T.float32)
    with T.Kernel(1, threads=64):
        tile = T.alloc_fragment((M, N), T.float32)
        top = T.alloc_fragment((M,), T.float32)
        T.copy(A, tile)
        T.reduce_max(tile, top, dim=1, nan_propagate=True)
        T.copy(top, C)
    return C


def histogram_in_shared(X, counts):
    (N,) = X.shape
    with T.Kernel(1, threads=64):
        mine = T.alloc_shared((16,), T.int32)
        T.clear(mine)
        for i in T.Parallel(N):
            T.atomic_add(mine[X[i]], 1)
        for i in T.Parallel(16):
            T.atomic_add(counts[i], mine[i])
    return counts


def parts(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a = A.astype(np.float64)
    filled = a.copy()
    filled[:8] = 3
    moved = np.zeros_like(a)
    moved[4:12] = filled[8:16]
    moved[:4] = a[:4]
    return moved, filled[:, : a.shape[1] // 2].sum(1)


def sums_and_columns(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a = A.astype(np.float64)
    return a.sum(1), a[::-1].cumsum(0)[::-1]


def singles(A: np.ndarray) -> tuple[np.ndarray]:
    a = A.astype(np.float64)
    return (np.array([a[0] + 1, 2 * (a[0] + 1) + 1, a[:4].sum(), 2]),)


def updated(A: np.ndarray) -> tuple[np.ndarray]:
    a = A.astype(np.float64) * 2 + 1
    a[:, 0] += a[:, 1]
    return (a,)


def doubled(A: np.ndarray) -> tuple[np.ndarray]:
    a = A.astype(np.float64)
    a[:, 1:3] = 7
    return (a * 2,)


def with_nan(*shape: int) -> np.ndarray:
    values = floats(*shape, dtype="float32")
    values[3, 5] = values[7, 0] = values[9, -1] = np.nan
    return values


CASES = (
    KernelCase(
        "parts_of_fragments", parts_of_fragments, lambda: (floats(20, 24, dtype="float32"),), parts, 1e-6
    ),
    KernelCase(
        "ring_read_by_reduction",
        ring_read_by_reduction,
        lambda: (floats(16, 96, dtype="float32"),),
        sums_and_columns,
        1e-5,
    ),
    KernelCase("single_elements", single_elements, lambda: (floats(8, dtype="float32"),), singles, 1e-6),
    KernelCase("update_in_place", update_in_place, lambda: (floats(17, 20, dtype="float32"),), updated, 1e-6),
    KernelCase("private_arrays", private_arrays, lambda: (floats(32, 5),), doubled, 1e-3),
    KernelCase(
        "matmul_by_macro",
        matmul_by_macro,
        lambda: (floats(31, 40), floats(40, 27, seed=1)),
        lambda A, B: (A.astype(np.float64) @ B.astype(np.float64),),
        1e-4,
    ),
    KernelCase(
        "greatest_with_nan",
        greatest_with_nan,
        lambda: (with_nan(16, 24),),
        lambda A: (A.astype(np.float64).max(1),),
        0.0,
    ),
    KernelCase(
        "histogram_in_shared",
        histogram_in_shared,
        lambda: (integers(75, low=0, high=16), np.zeros(16, "int32")),
        lambda X, counts: (counts + np.bincount(X, minlength=16).astype("int32"),),
        0.0,
    ),
)
