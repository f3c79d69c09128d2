// histogram: counts in LDS by atomics, then added to global memory by atomics; also a float sum and a maximum
#define ADDRESS(space) __attribute__((address_space(space)))
static __attribute__((device, always_inline)) void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void histogram(const unsigned* keys, unsigned* bins, float* sum, unsigned* largest, int n) {
  static __attribute__((shared)) unsigned local[64];
  int t = __builtin_amdgcn_workitem_id_x(), i = __builtin_amdgcn_workgroup_id_x() * 256 + t;
  if (t < 64) local[t] = 0;
  barrier();
  if (i < n) {
    unsigned key = keys[i];
    __scoped_atomic_fetch_add(&local[key % 64], 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
    __builtin_amdgcn_global_atomic_fadd_f32((ADDRESS(1) float*)sum, (float)(key % 8));
    __scoped_atomic_fetch_max(largest, key, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  }
  barrier();
  if (t < 64) __scoped_atomic_fetch_add(&bins[t], local[t], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// each thread takes a ticket: the returned values are a permutation
extern "C" __attribute__((global, amdgpu_flat_work_group_size(128, 128)))
void tickets(unsigned* counter, unsigned* taken) {
  unsigned mine = __scoped_atomic_fetch_add(counter, 1u + 0 * __builtin_amdgcn_workitem_id_x(), __ATOMIC_RELAXED,
                                            __MEMORY_SCOPE_DEVICE);
  taken[__builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x()] = mine;
}

// float maximum by compare-and-swap: the loop ends when no lane has to try again
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void float_product(float* product, const float* x) {
  float mine = x[__builtin_amdgcn_workitem_id_x()];
  unsigned* cell = (unsigned*)product;
  unsigned seen = __scoped_atomic_load_n(cell, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE), wanted;
  do wanted = __builtin_bit_cast(unsigned, __builtin_bit_cast(float, seen) * mine);
  while (!__scoped_atomic_compare_exchange_n(cell, &seen, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             __MEMORY_SCOPE_DEVICE));
}
