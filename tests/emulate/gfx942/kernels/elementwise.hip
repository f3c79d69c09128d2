// y[i] = f(x[i], z[i]): what the compiler makes of everyday arithmetic, one kernel a function
#define KERNEL(NAME, T, R, EXPRESSION) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) \
  void NAME(const T* xs, const T* zs, R* ys, int n) { \
    int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x(); \
    if (i >= n) return; \
    T x = xs[i], z = zs[i]; \
    ys[i] = (R)(EXPRESSION); \
  }
typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned u32; typedef long i64; typedef unsigned long u64; typedef _Float16 half;
typedef __bf16 bf16;
KERNEL(divide_f32, float, float, x / z)
KERNEL(square_root_f32, float, float, __builtin_sqrtf(__builtin_fabsf(x)))
KERNEL(exponential_f32, float, float, __builtin_expf(x))
KERNEL(logarithm_f32, float, float, __builtin_logf(__builtin_fabsf(x)))
KERNEL(sine_f32, float, float, __builtin_sinf(x))
KERNEL(remainder_f32, float, float, x - z * __builtin_truncf(x / z))
KERNEL(round_f32, float, float, __builtin_roundf(x))
KERNEL(sigmoid_f32, float, float, 1.0f / (1.0f + __builtin_expf(-x)))
KERNEL(clamp_f32, float, float, __builtin_fminf(__builtin_fmaxf(x, -1.0f), 1.0f))
KERNEL(copysign_f32, float, float, __builtin_copysignf(x, z))
KERNEL(multiply_add_f64, double, double, x * z + x)
KERNEL(divide_f64, double, double, x / z)
KERNEL(square_root_f64, double, double, __builtin_sqrt(__builtin_fabs(x)))
KERNEL(divide_i32, int, int, x / (z | 1))
KERNEL(modulo_u32, u32, u32, x % (z | 1))
KERNEL(divide_i64, i64, i64, x / (z | 1))
KERNEL(multiply_i64, i64, i64, x * z)
KERNEL(shift_i64, i64, i64, x >> (z & 63))
KERNEL(average_u8, u8, u8, (x + z + 1) / 2)
KERNEL(absolute_i8, i8, i16, x < 0 ? -x : x)
KERNEL(product_i16, i16, int, x * z)
KERNEL(sum_u16, u16, u16, x + z)
KERNEL(rotate_u32, u32, u32, x << (z & 31) | x >> (-z & 31))
KERNEL(bits_u32, u32, u32, __builtin_popcount(x) + 100 * __builtin_clz(z | 1) + 10000 * __builtin_ctz(x | 0x80000000))
KERNEL(bits_u64, u64, u32, __builtin_popcountl(x) + 100 * __builtin_clzl(z | 1))
KERNEL(multiply_add_f16, half, half, x * z + x)
KERNEL(divide_f16, half, half, x / z)
KERNEL(to_float_i32, int, float, x)
KERNEL(to_integer_f32, float, int, x * 1000.0f)
KERNEL(to_half_f32, float, half, x)
KERNEL(to_bfloat_f32, float, bf16, x)
KERNEL(add_bfloat, bf16, bf16, (float)x + (float)z)
static __attribute__((constant)) const u32 table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
KERNEL(table_u32, u32, u32, table[x & 15] + z)
