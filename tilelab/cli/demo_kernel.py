"""The kernel of `tilelab demo`, as a user writes it."""

import tilelab as tilelang
import tilelab.language as T


@tilelang.jit
def matmul(A, B, block_M=128, block_N=128, block_K=32):
    """C = A · B for any sizes.

    Example: A=float16[512,1024] B=float16[1024,768]
    """
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
