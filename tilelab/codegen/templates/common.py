"""Helpers that read the same in both dialects; DEV is how each marks a device function."""

# ruff: noqa: E501  (lines of C++ stand as they are printed)

from __future__ import annotations

from tilelab.codegen.helpers import Helper

__all__ = ["COMMON", "arithmetic"]


def arithmetic(name: str) -> str:
    """The four operations of a small float, each computed in float and rounded once."""
    return "\n".join(
        f"  friend MEMBER {name} operator{op}({name} a, {name} b) {{ return {name}(float(a) {op} float(b)); }}"
        for op in "+-*/"
    )


COMMON = (
    Helper("integers", """\
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef unsigned int u32; typedef long long i64; typedef unsigned long long u64;"""),
    Helper("vec", """\
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) vec {
  T lane[N];
  MEMBER T& operator[](int i) { return lane[i]; }
  MEMBER const T& operator[](int i) const { return lane[i]; }
};""", ("DEV",)),
    Helper("floor_div", """\
DEV int floor_div(int a, int b) { const int q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }""", ("DEV",)),
    Helper("floor_mod", """\
DEV int floor_mod(int a, int b) { const int r = a % b; return r + (r != 0 && (r < 0) != (b < 0) ? b : 0); }""",
           ("DEV",)),
    Helper("swizzle", """\
template <int Shift, int Mask> DEV int swizzle(int offset) { return offset ^ ((offset >> Shift) & Mask); }""", ("DEV",)),
    Helper("reinterpret", """\
template <class T, class U> DEV T reinterpret(U u) { return __builtin_bit_cast(T, u); }""",
           ("DEV",)),
    Helper("is_nan", "DEV bool is_nan(float x) { return x != x; }", ("DEV",)),
    Helper("is_inf", "DEV bool is_inf(float x) { return x == infinity() || x == -infinity(); }",
           ("DEV", "infinity")),
    Helper("is_finite", "DEV bool is_finite(float x) { return x - x == 0.0f; }", ("DEV",)),
    Helper("sigmoid", "DEV float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }", ("DEV", "exponential")),
    Helper("min_int", "DEV int min_int(int a, int b) { return a < b ? a : b; }", ("DEV",)),
    Helper("max_int", "DEV int max_int(int a, int b) { return a > b ? a : b; }", ("DEV",)),
    Helper("min_of", "template <class T> DEV T min_of(T a, T b) { return a < b ? a : b; }", ("DEV",)),
    Helper("max_of", "template <class T> DEV T max_of(T a, T b) { return a > b ? a : b; }", ("DEV",)),
    Helper("abs_of", "template <class T> DEV T abs_of(T a) { return a < 0 ? -a : a; }", ("DEV",)),
)  # fmt: skip
