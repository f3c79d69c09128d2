// reverse each block of 256 words, copied from global memory straight into LDS
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256)))
void reverse(const unsigned* in, unsigned* out) {
  static __attribute__((shared)) unsigned tile[256];
  int t = __builtin_amdgcn_workitem_id_x(), start = __builtin_amdgcn_workgroup_id_x() * 256;
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + start + t),
                                   (__attribute__((address_space(3))) void*)&tile[__builtin_amdgcn_readfirstlane(t & ~63)],
                                   4, 0, 0);
#ifndef NO_WAIT
  __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0)
#endif
  __builtin_amdgcn_s_barrier();
  out[start + t] = tile[255 - t];
}
