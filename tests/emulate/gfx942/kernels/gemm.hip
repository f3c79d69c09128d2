// C[m][n] = A[m][k] * B[n][k]^T, float16 in, float out. Tiles of 64 x 64 x 32, four waves of 32 x 32, two LDS stages:
// the next tile is on its way from global memory while the present one is multiplied. Ragged edges through buffers.
typedef _Float16 half;
typedef half half4 __attribute__((ext_vector_type(4)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef float float16 __attribute__((ext_vector_type(16)));
typedef unsigned uint4 __attribute__((ext_vector_type(4)));
typedef __amdgpu_buffer_rsrc_t buffer;
#define INLINE static __attribute__((device, always_inline))
#ifndef SWIZZLE
#define SWIZZLE 1
#endif

INLINE buffer describe(const void* start, int bytes) {
  return __builtin_amdgcn_make_buffer_rsrc((void*)start, 0, bytes, 0x00027000);
}
INLINE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// rows of 32 halves are four chunks of 16 bytes; the swizzle spreads a column of chunks over the banks
INLINE int chunk_at(int row, int chunk) {
  return row * 32 + (SWIZZLE ? chunk ^ ((row >> 1) & 3) : chunk) * 8;
}

extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void gemm(const half* A, const half* B, float* C, int M, int N, int K) {
  static __attribute__((shared, aligned(16))) half a_tile[2][64 * 32], b_tile[2][64 * 32];
  int t = __builtin_amdgcn_workitem_id_x(), lane = t % 64, wave = t / 64;
  int m0 = __builtin_amdgcn_workgroup_id_y() * 64, n0 = __builtin_amdgcn_workgroup_id_x() * 64;
  int row = t / 4, chunk = t % 4, wave_m = wave / 2 * 32, wave_n = wave % 2 * 32;
  buffer a = describe(A, M * K * 2), b = describe(B, N * K * 2);
  float16 acc = {0};
  int at_a = ((m0 + row) * K + chunk * 8) * 2, at_b = ((n0 + row) * K + chunk * 8) * 2;
  uint4 next_a = __builtin_amdgcn_raw_buffer_load_b128(a, at_a, 0, 0);
  uint4 next_b = __builtin_amdgcn_raw_buffer_load_b128(b, at_b, 0, 0);
  int stage = 0;
  #pragma unroll 1
  for (int k = 0; k < K; k += 32, stage ^= 1) {
    *(uint4*)&a_tile[stage][chunk_at(row, chunk)] = next_a;
    *(uint4*)&b_tile[stage][chunk_at(row, chunk)] = next_b;
    if (k + 32 < K) {
      next_a = __builtin_amdgcn_raw_buffer_load_b128(a, at_a + (k + 32) * 2, 0, 0);
      next_b = __builtin_amdgcn_raw_buffer_load_b128(b, at_b + (k + 32) * 2, 0, 0);
    }
    barrier();
    // one 16-byte read feeds two matrix instructions: K is permuted alike in A and B
    for (int piece = 0; piece < 2; ++piece) {
      half8 x = *(half8*)&a_tile[stage][chunk_at(wave_m + lane % 32, 2 * piece + lane / 32)];
      half8 y = *(half8*)&b_tile[stage][chunk_at(wave_n + lane % 32, 2 * piece + lane / 32)];
      acc = __builtin_amdgcn_mfma_f32_32x32x8f16(x.lo, y.lo, acc, 0, 0, 0);
      acc = __builtin_amdgcn_mfma_f32_32x32x8f16(x.hi, y.hi, acc, 0, 0, 0);
    }
  }
  for (int r = 0; r < 16; ++r) {
    int i = m0 + wave_m + 8 * (r / 4) + 4 * (lane / 32) + r % 4, j = n0 + wave_n + lane % 32;
    if (i < M && j < N) C[i * N + j] = acc[r];
  }
}
