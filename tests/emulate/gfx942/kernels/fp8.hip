// float -> fp8 (both FNUZ formats) and back, four values a thread
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void convert_fp8(const float* x, unsigned* e4m3, unsigned* e5m2, float* back4, float* back5) {
  int t = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  typedef float float2 __attribute__((ext_vector_type(2)));
  int p = __builtin_amdgcn_cvt_pk_fp8_f32(x[4 * t], x[4 * t + 1], 0, false);
  p = __builtin_amdgcn_cvt_pk_fp8_f32(x[4 * t + 2], x[4 * t + 3], p, true);
  int q = __builtin_amdgcn_cvt_pk_bf8_f32(x[4 * t], x[4 * t + 1], 0, false);
  q = __builtin_amdgcn_cvt_pk_bf8_f32(x[4 * t + 2], x[4 * t + 3], q, true);
  e4m3[t] = p;
  e5m2[t] = q;
  back4[4 * t] = __builtin_amdgcn_cvt_f32_fp8(p, 0);
  back4[4 * t + 1] = __builtin_amdgcn_cvt_f32_fp8(p, 1);
  back4[4 * t + 2] = __builtin_amdgcn_cvt_f32_fp8(p, 2);
  back4[4 * t + 3] = __builtin_amdgcn_cvt_f32_fp8(p, 3);
  float2 low = __builtin_amdgcn_cvt_pk_f32_bf8(q, false), high = __builtin_amdgcn_cvt_pk_f32_bf8(q, true);
  back5[4 * t] = low.x;
  back5[4 * t + 1] = low.y;
  back5[4 * t + 2] = high.x;
  back5[4 * t + 3] = high.y;
}
