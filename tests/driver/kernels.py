"""Kernels that the driver's tests call: small, in every style."""

from __future__ import annotations

import tilelab
import tilelab.language as T
from tilelab.language.parser import parse_prim_func


def add(A, B, block=32):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C


def matmul(A, B, block_M=32, block_N=32, block_K=16):
    M, K = A.shape
    K, N = B.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=64) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


def annotated_add(A, B):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), T.float32)
    B: T.Tensor((M, N), T.float32)
    C = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(N):
            C[bx, j] = A[bx, j] + B[bx, j]
    return C


def open_rows(A, B):
    M = T.dynamic("M")
    A: T.Tensor((M, 16), T.float32)
    B: T.Tensor((M, 16), T.float32)
    C = T.empty((M, 16), T.float32)
    with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
        for i, j in T.Parallel(4, 16):
            C[bx * 4 + i, j] = A[bx * 4 + i, j] + B[bx * 4 + i, j]
    return C


def scaled(A, factor: T.float32):
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            C[i] = A[i] * factor
    return C


def pair(A):
    (N,) = A.shape
    twice = T.empty((N,), A.dtype)
    square = T.empty((N,), A.dtype)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            twice[i] = A[i] * 2
            square[i] = A[i] * A[i]
    return square, twice


def lazy_add(N, dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                C[i] = A[i] + B[i]

    return kernel


def lazy_open(K=16):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def kernel(
        A: T.Tensor((M, N), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, K), "float32")
    ):
        with T.Kernel(M, threads=32) as bx:
            for j in T.Parallel(K):
                C[bx, j] = A[bx, 0] + B[0, j]

    return kernel


def in_place(A: T.Tensor((8, 8), "float32")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(8, 8):
            A[i, j] = A[i, j] + 1.0


def jit(function, **options):
    """A fresh jit function, for the CPU unless told otherwise."""
    return tilelab.jit(function, **{"target": "llvm", **options})


def prim_func(function):
    """The function as T.prim_func reads it."""
    return parse_prim_func(function)
