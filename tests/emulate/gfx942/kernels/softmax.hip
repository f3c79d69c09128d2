// softmax over the rows of x[rows][n], one wave a row: reductions by DPP and by LDS permutes, exp2 for exp
typedef float float_;
static __attribute__((device, always_inline)) float other_lane(float x, int lane) {
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, __builtin_bit_cast(int, x)));
}
#define DPP(x, control) __builtin_bit_cast(float, __builtin_amdgcn_update_dpp( \
    __builtin_bit_cast(int, x), __builtin_bit_cast(int, x), control, 0xf, 0xf, false))
static __attribute__((device, always_inline)) float larger(float a, float b) { return __builtin_fmaxf(a, b); }
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void softmax(const float* x, float* y, int n) {
  int lane = __builtin_amdgcn_workitem_id_x();
  const float* row = x + __builtin_amdgcn_workgroup_id_x() * n;
  float most = -__builtin_inff();
  for (int i = lane; i < n; i += 64) most = larger(most, row[i]);
  most = larger(most, DPP(most, 0xB1));   // quad_perm [1,0,3,2]
  most = larger(most, DPP(most, 0x4E));   // quad_perm [2,3,0,1]
  most = larger(most, DPP(most, 0x141));  // row_half_mirror
  most = larger(most, DPP(most, 0x140));  // row_mirror
  most = larger(most, other_lane(most, lane ^ 16));
  most = larger(most, other_lane(most, lane ^ 32));
  float total = 0;
  for (int i = lane; i < n; i += 64) total += __builtin_exp2f((row[i] - most) * 1.4426950408889634f);
  for (int step = 32; step > 0; step /= 2) total += other_lane(total, lane ^ step);
  for (int i = lane; i < n; i += 64)
    y[__builtin_amdgcn_workgroup_id_x() * n + i] = __builtin_exp2f((row[i] - most) * 1.4426950408889634f) / total;
}
