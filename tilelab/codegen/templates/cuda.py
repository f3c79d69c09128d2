"""CUDA helpers: own 16- and 8-bit floats, barriers, asynchronous copies, all as inline PTX and without
includes.
"""

# ruff: noqa: E501  (lines of C++ stand as they are printed)

from __future__ import annotations

from tilelab.codegen.helpers import Helper, table
from tilelab.codegen.templates.common import COMMON, arithmetic

__all__ = ["CUDA_HELPERS"]


def _small_float(name: str, from_float: str, to_float: str) -> Helper:
    """A storage type of 16 bits whose arithmetic goes through float, as the IR defines it."""
    return Helper(
        name,
        f"""\
struct alignas(2) {name} {{
  u16 bits;
  {name}() = default;
  MEMBER explicit {name}(float x) {{ asm("{from_float}" : "=h"(bits) : "f"(x)); }}
  MEMBER operator float() const {{ float x; asm("{to_float}" : "=f"(x) : "h"(bits)); return x; }}
{arithmetic(name)}
}};""",
        ("integers", "DEV"),
    )


def _fp8(name: str, kind: str) -> Helper:
    return Helper(
        name,
        f"""\
struct {name} {{
  u8 bits;
  {name}() = default;
  MEMBER explicit {name}(float x) {{
    u16 pair; asm("cvt.rn.satfinite.{kind}x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x)); bits = (u8)pair;
  }}
  MEMBER operator float() const {{
    u32 pair; asm("cvt.rn.f16x2.{kind}x2 %0, %1;" : "=r"(pair) : "h"((u16)bits));
    float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((u16)pair)); return x;
  }}
{arithmetic(name)}
}};""",
        ("integers", "DEV"),
    )


def _pack(name: str, short: str) -> Helper:
    return Helper(
        f"pack_{name}",
        f"""\
DEV void pack_{name}({name}* d, float low, float high) {{
  asm("cvt.rn.{short}x2.f32 %0, %1, %2;" : "=r"(*(u32*)d) : "f"(high), "f"(low));
}}""",
        (name,),
    )


def _shuffle(word: str, mode: str) -> Helper:
    return Helper(
        word,
        f"""\
template <class T> DEV T {word}(T value, int by) {{ return __shfl_{mode}_sync(0xffffffffu, value, by); }}""",
        ("DEV",),
    )


MEMORY = (
    Helper("shared_address", "DEV u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }",
           ("integers", "DEV")),
    Helper("CUtensorMap", "struct alignas(64) CUtensorMap { u64 opaque[16]; };", ("integers",)),
    Helper("cp_async_commit", 'DEV void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }',
           ("DEV",)),
    Helper("cp_async_wait", """\
template <int Pending> DEV void cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory"); }""",
           ("DEV",)),
    Helper("tma_store_commit", """\
DEV void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }""", ("DEV",)),
    Helper("tma_store_wait", """\
template <int Pending> DEV void tma_store_wait() { asm volatile("cp.async.bulk.wait_group %0;" :: "n"(Pending) : "memory"); }""",
           ("DEV",)),
    Helper("tma_store_wait_read", """\
template <int Pending> DEV void tma_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(Pending) : "memory"); }""",
           ("DEV",)),
)  # fmt: skip

BARRIERS = (
    Helper("named_barrier", """\
DEV void named_barrier(int id, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory"); }""",
           ("DEV",)),
    Helper("fence_proxy_async", """\
DEV void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }""", ("DEV",)),
    Helper("fence_mbarrier_init", """\
DEV void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }""", ("DEV",)),
    Helper("mbarrier_init", """\
DEV void mbarrier_init(u64* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(count) : "memory");
}""", ("shared_address",)),
    Helper("mbarrier_expect", """\
DEV void mbarrier_expect(u64* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}""", ("shared_address",)),
    Helper("mbarrier_arrive", """\
DEV void mbarrier_arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier)) : "memory");
}""", ("shared_address",)),
    # No trap and no bound here: __trap() makes ptxas drop to the register count at entry, which spills.
    Helper("mbarrier_wait", """\
DEV void mbarrier_wait(u64* barrier, int phase) {
  u32 done;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared_address(barrier)), "r"(phase) : "memory");
  } while (!done);
}""", ("shared_address",)),
    Helper("set_max_registers_up", """\
template <int Count> DEV void set_max_registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(Count)); }""",
           ("DEV",)),
    Helper("set_max_registers_down", """\
template <int Count> DEV void set_max_registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(Count)); }""",
           ("DEV",)),
)  # fmt: skip

WGMMA = (
    Helper("wgmma_fence", 'DEV void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }', ("DEV",)),
    Helper("wgmma_commit", """\
DEV void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }""", ("DEV",)),
    Helper("wgmma_wait", """\
template <int Pending> DEV void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(Pending) : "memory"); }""",
           ("DEV",)),
    Helper("wgmma_descriptor", """\
DEV u64 wgmma_descriptor(const void* tile, u64 form) { return form | (shared_address(tile) & 0x3FFFF) >> 4; }""",
           ("shared_address",)),
    # The compiler must not read an accumulator before its wait: an empty statement that "changes" it holds it
    # back.
    Helper("wgmma_landed", """\
template <int N> DEV void wgmma_landed(float (&d)[N]) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i]) :: "memory");
}""", ("DEV",)),
)  # fmt: skip

# Atomic additions of bfloat16 need sm_90; before that the word is swapped until nobody else did so in
# between.


def _atomic(name: str, short: str) -> Helper:
    add = f'asm volatile("red.global.add.noftz.{short} [%0], %1;" :: "l"(__cvta_generic_to_global(target)), "h"(value.bits) : "memory");'
    swap = """\
  u16 seen = *(volatile u16*)target, before;
  do {
    before = seen; NAME held; held.bits = before;
    seen = atomicCAS((u16*)target, before, (held + value).bits);
  } while (seen != before);""".replace("NAME", name)
    body = f"  {add}" if name == "half" else f"#if __CUDA_ARCH__ >= 900\n  {add}\n#else\n{swap}\n#endif"
    return Helper(
        f"atomic_add_{name}",
        f"DEV void atomic_add_{name}({name}* target, {name} value) {{\n{body}\n}}",
        (name,),
    )


def _atomic_pair(name: str, short: str) -> Helper:
    add = f'asm volatile("red.global.add.noftz.{short}x2 [%0], %1;" :: "l"(__cvta_generic_to_global(target)), "r"(both) : "memory");'
    swap = """\
  u32 seen = *(volatile u32*)target, before;
  do {
    before = seen; NAME pair[2]; *(u32*)pair = before;
    pair[0] = pair[0] + low; pair[1] = pair[1] + high;
    seen = atomicCAS((u32*)target, before, *(u32*)pair);
  } while (seen != before);""".replace("NAME", name)
    whole = "  const u32 both = low.bits | (u32)high.bits << 16;\n  " + add
    body = whole if name == "half" else f"#if __CUDA_ARCH__ >= 900\n{whole}\n#else\n{swap}\n#endif"
    return Helper(
        f"atomic_add_pair_{name}",
        f"DEV void atomic_add_pair_{name}({name}* target, {name} low, {name} high) {{\n{body}\n}}",
        (name,),
    )


VALUES = (
    Helper("infinity", "DEV float infinity() { return __int_as_float(0x7f800000); }", ("DEV",)),
    Helper("not_a_number", "DEV float not_a_number() { return __int_as_float(0x7fc00000); }", ("DEV",)),
    Helper("exponential", "DEV float exponential(float x) { return expf(x); }", ("DEV",)),
    Helper("exp2_approx", """\
DEV float exp2_approx(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }""", ("DEV",)),
    Helper("atomic_add", """\
template <class T> DEV void atomic_add(T* target, T value) { atomicAdd(target, value); }""", ("DEV",)),
    Helper("atomic_add_i64", """\
DEV void atomic_add_i64(i64* target, i64 value) { atomicAdd((u64*)target, (u64)value); }""", ("integers", "DEV")),
    *(_atomic(name, short) for name, short in (("half", "f16"), ("bfloat16", "bf16"))),
    *(_atomic_pair(name, short) for name, short in (("half", "f16"), ("bfloat16", "bf16"))),
    Helper("load_words", """\
template <class Word> DEV void load_words(void* d, const void* a, bool inside) {
  Word word = {};
  if (inside) word = *(const Word*)a;
  *(Word*)d = word;
}""", ("DEV",)),
)  # fmt: skip

CUDA_HELPERS = table(
    Helper("DEV", "#define MEMBER __device__ __forceinline__\n#define DEV static MEMBER"),
    *COMMON,
    _small_float("half", "cvt.rn.f16.f32 %0, %1;", "cvt.f32.f16 %0, %1;"),
    _small_float(
        "bfloat16", "cvt.rn.bf16.f32 %0, %1;", "{ .reg .b32 w; mov.b32 w, {0, %1}; mov.b32 %0, w; }"
    ),
    _fp8("float8_e4m3", "e4m3"),
    _fp8("float8_e5m2", "e5m2"),
    _pack("half", "f16"),
    _pack("bfloat16", "bf16"),
    _shuffle("shuffle_xor", "xor"),
    _shuffle("shuffle_down", "down"),
    *MEMORY,
    *BARRIERS,
    *WGMMA,
    *VALUES,
)
