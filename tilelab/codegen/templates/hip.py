"""HIP helpers: clang's vector types and AMDGPU builtins, no includes and no device libraries."""

# ruff: noqa: E501  (lines of C++ stand as they are printed)

from __future__ import annotations

from tilelab.codegen.helpers import Helper, table
from tilelab.codegen.templates.common import COMMON, arithmetic

__all__ = ["HIP_HELPERS"]


def _fp8(name: str, short: str) -> Helper:
    """The 8-bit floats of gfx942 (FNUZ: one zero, NaN in its place, no infinity)."""
    return Helper(
        name,
        f"""\
struct {name} {{
  u8 bits;
  {name}() = default;
  MEMBER explicit {name}(float x) {{ bits = (u8)__builtin_amdgcn_cvt_pk_{short}_f32(x, 0.0f, 0, false); }}
  MEMBER operator float() const {{ return __builtin_amdgcn_cvt_f32_{short}(bits, 0); }}
{arithmetic(name)}
}};""",
        ("integers", "DEV"),
    )


TYPES = (
    _fp8("float8_e4m3fnuz", "fp8"),
    _fp8("float8_e5m2fnuz", "bf8"),
    Helper("half", "typedef _Float16 half;"),
    Helper("bfloat16", "typedef __bf16 bfloat16;"),
    Helper("vectors", """\
typedef unsigned short w16 __attribute__((may_alias));
typedef unsigned int w32 __attribute__((may_alias));
typedef unsigned int u32x2 __attribute__((ext_vector_type(2)));
typedef unsigned int u32x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));""", ("integers",)),
)  # fmt: skip

SYNCHRONISATION = (
    # s_barrier waits for no counter by itself: the fences make earlier accesses visible before it and later
    # ones after.
    Helper("block_barrier", """\
DEV void block_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}""", ("DEV",)),
    Helper("wave_barrier", """\
DEV void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}""", ("DEV",)),
)  # fmt: skip


def _shuffle(word: str, from_lane: str) -> Helper:
    return Helper(
        word,
        f"""\
template <class T> DEV T {word}(T value, int by) {{
  const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  int words[sizeof(T) / 4];
  __builtin_memcpy(words, &value, sizeof(T));
  for (int& word : words) word = __builtin_amdgcn_ds_bpermute(({from_lane}) << 2, word);
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}}""",
        ("DEV",),
    )


VALUES = (
    Helper("infinity", "DEV float infinity() { return __builtin_inff(); }", ("DEV",)),
    Helper("not_a_number", 'DEV float not_a_number() { return __builtin_nanf(""); }', ("DEV",)),
    Helper("exponential", "DEV float exponential(float x) { return __builtin_expf(x); }", ("DEV",)),
    # tanh and erf would be library calls; both come from exp here. |error| of erf below 1.5e-7.
    # Source of erf: Abramowitz and Stegun, 7.1.26.
    Helper("hyperbolic_tangent", """\
DEV float hyperbolic_tangent(float x) {
  const float e = __builtin_expf(-2.0f * __builtin_fabsf(x));
  return __builtin_copysignf((1.0f - e) / (1.0f + e), x);
}""", ("DEV",)),
    Helper("error_function", """\
DEV float error_function(float x) {
  const float t = 1.0f / (1.0f + 0.3275911f * __builtin_fabsf(x));
  const float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  return __builtin_copysignf(1.0f - p * __builtin_expf(-x * x), x);
}""", ("DEV",)),
    Helper("power", "DEV float power(float x, float y) { return __builtin_exp2f(y * __builtin_log2f(x)); }", ("DEV",)),
    Helper("atomic_add", """\
template <class T> DEV void atomic_add(T* target, T value) {
  __hip_atomic_fetch_add(target, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}""", ("DEV",)),
    Helper("atomic_add_pair_half", """\
typedef _Float16 half_pair __attribute__((ext_vector_type(2)));
DEV void atomic_add_pair_half(half* target, half low, half high) {
  half_pair both = {low, high};
  __builtin_amdgcn_global_atomic_fadd_v2f16((__attribute__((address_space(1))) half_pair*)target, both);
}""", ("half", "DEV")),
    Helper("atomic_add_pair_bfloat16", """\
typedef short bfloat16_pair __attribute__((ext_vector_type(2)));
DEV void atomic_add_pair_bfloat16(bfloat16* target, bfloat16 low, bfloat16 high) {
  bfloat16_pair both = {__builtin_bit_cast(short, low), __builtin_bit_cast(short, high)};
  __builtin_amdgcn_global_atomic_fadd_v2bf16((__attribute__((address_space(1))) bfloat16_pair*)target, both);
}""", ("bfloat16", "DEV")),
)  # fmt: skip

COPIES = (
    Helper("load_words", """\
template <class Word> DEV void load_words(void* d, const void* a, bool inside) {
  Word word = {};
  if (inside) word = *(const Word*)a;
  *(Word*)d = word;
}""", ("DEV",)),
    # Word 3 of the descriptor: 32-bit data format, no swizzle. Reads beyond `bytes` give 0, stores are
    # dropped.
    Helper("buffer_of", """\
DEV __amdgpu_buffer_rsrc_t buffer_of(const void* p, int bytes) {
  return __builtin_amdgcn_make_buffer_rsrc((void*)p, 0, bytes, 0x00027000);
}""", ("DEV",)),
)  # fmt: skip

HIP_HELPERS = table(
    Helper(
        "DEV",
        "#define MEMBER __attribute__((device, always_inline))\n#define DEV static inline MEMBER",
    ),
    *COMMON,
    *TYPES,
    _shuffle("shuffle_xor", "lane ^ by"),
    _shuffle("shuffle_down", "lane + by < 64 ? lane + by : lane"),
    *SYNCHRONISATION,
    *VALUES,
    *COPIES,
)
