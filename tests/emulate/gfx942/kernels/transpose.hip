// out[n][m] = in[m][n], tiles of 32 x 32 through LDS, 256 threads; PAD extra floats a row decide the bank conflicts.
#ifndef PAD
#define PAD 1
#endif
static __attribute__((device, always_inline)) void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void transpose(const float* in, float* out, int m, int n) {
  static __attribute__((shared)) float tile[32][32 + PAD];
  int t = __builtin_amdgcn_workitem_id_x(), x = t % 32, y = t / 32;
  int m0 = __builtin_amdgcn_workgroup_id_y() * 32, n0 = __builtin_amdgcn_workgroup_id_x() * 32;
  for (int r = y; r < 32; r += 8)
    if (m0 + r < m && n0 + x < n) tile[r][x] = in[(m0 + r) * n + n0 + x];
  barrier();
  for (int r = y; r < 32; r += 8)
    if (n0 + r < n && m0 + x < m) out[(n0 + r) * m + m0 + x] = tile[x][r];
}
