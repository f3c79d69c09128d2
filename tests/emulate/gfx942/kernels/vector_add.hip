// c = a + b over n floats with buffer loads: the hardware drops what lies past the end, so no lane needs a branch.
typedef __amdgpu_buffer_rsrc_t buffer;
static __attribute__((device, always_inline)) buffer describe(const void* start, int bytes) {
  return __builtin_amdgcn_make_buffer_rsrc((void*)start, 0, bytes, 0x00027000);
}
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void vector_add(const float* a, const float* b, float* c, int n) {
  int at = (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x()) * 4;
  float x = __builtin_bit_cast(float, __builtin_amdgcn_raw_buffer_load_b32(describe(a, n * 4), at, 0, 0));
  float y = __builtin_bit_cast(float, __builtin_amdgcn_raw_buffer_load_b32(describe(b, n * 4), at, 0, 0));
  __builtin_amdgcn_raw_buffer_store_b32(__builtin_bit_cast(unsigned, x + y), describe(c, n * 4), at, 0, 0);
}

// the same, four at a time: the last access is cut in the middle
typedef unsigned uint4 __attribute__((ext_vector_type(4)));
typedef float float4 __attribute__((ext_vector_type(4)));
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void vector_add4(const float* a, const float* b, float* c, int n) {
  int at = (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()) * 16;
  float4 x = __builtin_bit_cast(float4, __builtin_amdgcn_raw_buffer_load_b128(describe(a, n * 4), at, 0, 0));
  float4 y = __builtin_bit_cast(float4, __builtin_amdgcn_raw_buffer_load_b128(describe(b, n * 4), at, 0, 0));
  __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(uint4, x + y), describe(c, n * 4), at, 0, 0);
}

// plain addresses and a branch for the ragged end
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void vector_add_branch(const float* a, const float* b, float* c, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n) c[i] = a[i] + b[i];
}

// no guard at all: right only where n is a multiple of 256
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void vector_add_unguarded(const float* a, const float* b, float* c) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  c[i] = a[i] + b[i];
}
