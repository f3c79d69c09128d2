"""Attention with a running softmax: two matrix products around a reduction along rows."""

import numpy as np

import tilelab.language as T
from tests.kernels.case import KernelCase, floats


def attention(Q, K, V, block_M=64, block_N=32, causal=False):
    seq, dim = Q.shape
    length, _ = K.shape
    output = T.empty((seq, dim), Q.dtype)
    scale = dim**-0.5 * 1.4426950408889634
    with T.Kernel(T.ceildiv(seq, block_M), threads=128) as bx:
        Q_shared = T.alloc_shared((block_M, dim), Q.dtype)
        K_shared = T.alloc_shared((block_N, dim), K.dtype)
        V_shared = T.alloc_shared((block_N, dim), V.dtype)
        scores = T.alloc_fragment((block_M, block_N), T.float32)
        weights = T.alloc_fragment((block_M, block_N), Q.dtype)
        sums = T.alloc_fragment((block_M, dim), T.float32)
        top = T.alloc_fragment((block_M,), T.float32)
        top_before = T.alloc_fragment((block_M,), T.float32)
        shrink = T.alloc_fragment((block_M,), T.float32)
        step_total = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        T.copy(Q[bx * block_M, 0], Q_shared)
        T.clear(sums)
        T.clear(total)
        T.fill(top, -T.infinity(T.float32))
        for k in T.Pipelined(T.ceildiv(length, block_N), num_stages=2):
            T.copy(K[k * block_N, 0], K_shared)
            if causal:
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.if_then_else(
                        bx * block_M + i >= k * block_N + j, 0, -T.infinity(T.float32)
                    )
            else:
                T.clear(scores)
            T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(top, top_before)
            T.reduce_max(scores, top, dim=1, clear=False)
            for i in T.Parallel(block_M):
                shrink[i] = T.exp2(top_before[i] * scale - top[i] * scale)
            for i, j in T.Parallel(block_M, block_N):
                scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
            T.reduce_sum(scores, step_total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = total[i] * shrink[i] + step_total[i]
            for i, j in T.Parallel(block_M, dim):
                sums[i, j] *= shrink[i]
            T.copy(scores, weights)
            T.copy(V[k * block_N, 0], V_shared)
            T.gemm(weights, V_shared, sums, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel(block_M, dim):
            sums[i, j] /= total[i]
        T.copy(sums, output[bx * block_M, 0])
    return output


def reference(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool = False) -> tuple[np.ndarray]:
    q, k, v = (x.astype(np.float64) for x in (Q, K, V))
    s = q @ k.T / np.sqrt(q.shape[1])
    if causal:
        s = np.where(np.tri(*s.shape, dtype=bool), s, -np.inf)
    e = np.exp(s - s.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True) @ v,)


CASES = (
    KernelCase(
        "attention",
        attention,
        lambda: (floats(64, 32), floats(128, 32, seed=1), floats(128, 32, seed=2)),
        reference,
        2e-3,
    ),
    KernelCase(
        "attention_causal",
        attention,
        lambda: (floats(64, 32), floats(64, 32, seed=1), floats(64, 32, seed=2)),
        lambda Q, K, V: reference(Q, K, V, causal=True),
        2e-3,
        {"causal": True},
    ),
)
