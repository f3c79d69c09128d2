"""Names that generated C++ keeps for itself, and what a user's name becomes that is one of them.

Sources: the keywords and alternative tokens of C++20 (ISO/IEC 14882:2020, 5.5 and 5.11); the built-in
variables, vector types and functions of CUDA C++ Programming Guide, "C++ Language Extensions".
"""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["LOOP", "RESERVED", "c_name", "free_name", "kernel_name", "temporary"]

LOOP = "l"  # the index of the printer's own loops over lanes


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words("""
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break
    case catch char char8_t char16_t char32_t class co_await co_return co_yield compl concept const
    const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else
    enum explicit export extern false final float for friend goto if import inline int long module mutable
    namespace new noexcept not not_eq nullptr operator or or_eq override private protected public reflexpr
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch synchronized template this thread_local throw true try typedef typeid typename typeof
    union unsigned using virtual void volatile wchar_t while xor xor_eq
""")
# Macros that compilers predefine without underscores, and those of the helpers.
_MACROS = _words("DEV MEMBER NULL assert linux unix")
_PRINTED = _words("""
    half bfloat16 float8_e4m3 float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz vec CUtensorMap
    i8 u8 i16 u16 u32 i64 u64 w16 w32 u32x2 u32x4 f16x4 i16x4 f32x4 f32x16 half_pair bfloat16_pair
    warp warpgroup threadIdx blockIdx blockDim gridDim warpSize dim3 uint2 uint4 size_t
    pool abs ceil floor round exp log sin cos tan pow sqrt fabs fmin fmax fma fmod min max printf main
    atomicAdd atomicCAS
""") | {LOOP}  # fmt: skip
RESERVED = _KEYWORDS | _MACROS | _PRINTED

# Functions of C and CUDA that compilers know without a header: a kernel of that name would be another
# declaration of them. Variables of these names only hide them, and the printer calls none of them.
_FUNCTIONS = re.compile(
    r"(abs|a?(cos|sin|tan)h?(pi)?|atan2|cbrt|ceil|copysign|cyl_bessel_i[01]|erf(c|cx|inv|cinv)?|exp(2|10|m1)?"
    r"|fabs|fdim|fdivide|floor|fma|fmax|fmin|fmod|frexp|hypot|ilogb|j[01n]|ldexp|lgamma|ll?rint|ll?round"
    r"|log(10|1p|2|b)?|max|min|modf|nan|nearbyint|nextafter|norm[34]?d?|normcdf(inv)?|pow|powi|rcbrt|remainder"
    r"|remquo|rhypot|rint|rnorm[34]?d?|round|rsqrt|scalbl?n|sincos(pi)?|sqrt|tgamma|trunc|y[01n])[fl]?"
    r"|isnan|isinf|isfinite|isnormal|signbit|finite|ll?abs|l?l?div|u?l?l?(max|min)|saturate"
    r"|malloc|calloc|realloc|free|alloca|abort|exit|atexit|mem(cpy|set|move|cmp|chr)|str\w+|to(upper|lower)|is[a-z]+"
    r"|v?[fs]?n?(printf|scanf)|puts|putchar|fputs|fputc|fwrite|fread|fopen|fclose|log[a-z]*|clock(64)?|nanosleep"
    r"|atomic\w+|make_\w+|tex\w+|surf\w+|cuda\w+|hip\w+|setjmp|longjmp|index|rindex|bcmp|bcopy|bzero|ffsl?l?"
    r"|qsort|bsearch|rand|srand|getenv|system|time|signal|fork|vfork|execl?v?[pe]*|c?(real|imag|arg|conj|proj)[fl]?"
    r"|c(a?(cos|sin|tan)h?|exp|log|pow|sqrt|abs)[fl]?|mul24|umul24|mulhi|umulhi|mul64hi|umul64hi"
    r"|(float|int|uint|double|longlong)_as_\w+|(float|int|uint|double)2\w+"
)

# Temporaries, and the functions of hardware rows.
_MADE = re.compile(r"v\d+|(tma_(load|store)|cp_async|ldmatrix|stmatrix|mma|wgmma|mfma)_\w+")


def c_name(name: str) -> str:
    """A name as a C++ identifier outside of what the language keeps for compilers (`__x`, `_X`, `9x`)."""
    out = re.sub(r"\W", "_", name, flags=re.ASCII) or "v"
    return f"v{out}" if re.match(r"\d|__|_[A-Z]", out) else out


def temporary(count: int) -> str:
    """The printer's own name number `count`."""
    return f"v{count}"


def free_name(name: str, reserved: Collection[str], taken: Collection[str]) -> str:
    """What a name becomes: itself, with `_` where it is reserved, with a number where it is taken."""
    wanted = c_name(name)
    while wanted in reserved or _MADE.fullmatch(wanted):
        wanted += "_"
    out, count = wanted, 0
    while out in taken or out in reserved:
        count += 1
        out = f"{wanted}_{count}"
    return out


def kernel_name(name: str, reserved: Collection[str]) -> str:
    """What a kernel is called, as `free_name`, and like no function that a compiler knows by itself."""
    out = free_name(name, reserved, ())
    return f"{out}_" if _FUNCTIONS.fullmatch(out) else out
