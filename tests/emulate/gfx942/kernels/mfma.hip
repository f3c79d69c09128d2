// D = A * B^T with one wave per kernel: A is M x K, B is N x K, both row major; D is float (or int).
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef short short4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float16 __attribute__((ext_vector_type(16)));
typedef int int4 __attribute__((ext_vector_type(4)));
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void

// lane l holds row l % 16 and the (l / 16)-th piece of K; results are 4 consecutive rows of column l % 16
#define SMALL(NAME, PIECE, ACC, OUT, K_STEP, BUILTIN) \
  KERNEL NAME(const PIECE* A, const PIECE* B, OUT* D, int K) { \
    int lane = __builtin_amdgcn_workitem_id_x(), per = K_STEP / 4; \
    ACC acc = {0}; \
    for (int k = 0; k < K; k += K_STEP) { \
      int at = ((lane % 16) * K + k) / per + lane / 16; \
      acc = BUILTIN(A[at], B[at], acc, 0, 0, 0); \
    } \
    for (int r = 0; r < 4; ++r) D[(4 * (lane / 16) + r) * 16 + lane % 16] = acc[r]; \
  }
SMALL(mfma_16x16x16_f16, half4, float4, float, 16, __builtin_amdgcn_mfma_f32_16x16x16f16)
SMALL(mfma_16x16x16_bf16, short4, float4, float, 16, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
SMALL(mfma_16x16x32_fp8, long, float4, float, 32, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8)
SMALL(mfma_16x16x32_bf8_fp8, long, float4, float, 32, __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8)
SMALL(mfma_16x16x32_i8, long, int4, int, 32, __builtin_amdgcn_mfma_i32_16x16x32_i8)
SMALL(mfma_16x16x8_xf32, float2, float4, float, 8, __builtin_amdgcn_mfma_f32_16x16x8_xf32)
SMALL(mfma_16x16x4_f32, float, float4, float, 4, __builtin_amdgcn_mfma_f32_16x16x4f32)

#define LARGE(NAME, PIECE, K_STEP, BUILTIN) \
  KERNEL NAME(const PIECE* A, const PIECE* B, float* D, int K) { \
    int lane = __builtin_amdgcn_workitem_id_x(), per = K_STEP / 2; \
    float16 acc = {0}; \
    for (int k = 0; k < K; k += K_STEP) { \
      int at = ((lane % 32) * K + k) / per + lane / 32; \
      acc = BUILTIN(A[at], B[at], acc, 0, 0, 0); \
    } \
    for (int r = 0; r < 16; ++r) D[(8 * (r / 4) + 4 * (lane / 32) + r % 4) * 32 + lane % 32] = acc[r]; \
  }
LARGE(mfma_32x32x8_f16, half4, 8, __builtin_amdgcn_mfma_f32_32x32x8f16)
LARGE(mfma_32x32x8_bf16, short4, 8, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
LARGE(mfma_32x32x16_fp8, long, 16, __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)

KERNEL mfma_16x16x4_f64(const double* A, const double* B, double* D, int K) {
  typedef double double4 __attribute__((ext_vector_type(4)));
  int lane = __builtin_amdgcn_workitem_id_x();
  double4 acc = {0};
  for (int k = 0; k < K; k += 4) {
    int at = (lane % 16) * K + k + lane / 16;
    acc = __builtin_amdgcn_mfma_f64_16x16x4f64(A[at], B[at], acc, 0, 0, 0);
  }
  for (int r = 0; r < 4; ++r) D[(4 * r + lane / 16) * 16 + lane % 16] = acc[r];
}
