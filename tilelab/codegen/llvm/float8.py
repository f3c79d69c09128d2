"""Conversions of 8-bit floats for the CPU, by bit arithmetic; TVM's own are wrong for small values.

Source of the formats: OCP 8-bit floating point specification (e4m3fn, e5m2) and its variants without negative
zero (fnuz), whose exponent bias is one more and whose only NaN is 0x80.
"""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportArgumentType=false, reportReturnType=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx

from tilelab.ir import build as b
from tilelab.ir.nodes import Cast, Expr, FloatImm, PrimFunc, dtype_of

__all__ = ["FORMATS", "Float8", "spell_out_float8"]


@dataclass(frozen=True)
class Float8:
    """A format: bits of the mantissa, exponent bias, and the codes of the largest value, infinity and NaN."""

    name: str
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int

    @property
    def is_unsigned_zero(self) -> bool:
        return self.nan == 0x80


FORMATS = (
    Float8("float8_e4m3fn", 3, 7, 0x7E, None, 0x7F),
    Float8("float8_e5m2", 2, 15, 0x7B, 0x7C, 0x7E),
    Float8("float8_e4m3fnuz", 3, 8, 0x7F, None, 0x80),
    Float8("float8_e5m2fnuz", 2, 16, 0x7F, None, 0x80),
)
_BY_NAME = {form.name: form for form in FORMATS}


def _format(dtype: str) -> Float8 | None:
    return _BY_NAME.get(dtype.partition("x")[0])


def _u32(value: int) -> Expr:
    return tirx.const(value, "uint32")


def _f32(bits: Expr) -> Expr:
    return tirx.reinterpret("float32", bits)


def to_float32(form: Float8, value: Expr) -> Expr:
    """The 8-bit float as float32, exactly."""
    code = b.cast("uint32", tirx.reinterpret("uint8", value))
    magnitude = code & _u32(0x7F)
    # Mantissa and exponent stand in float32's fields; a power of two makes up for the other bias.
    scaled = _f32(magnitude << _u32(23 - form.mantissa)) * _f32(_u32((127 - form.bias + 127) << 23))
    bits = tirx.reinterpret("uint32", scaled) | ((code & _u32(0x80)) << _u32(24))
    nan = _u32(0x7FC00000)
    if form.is_unsigned_zero:
        return _f32(tirx.Select(tirx.EQ(code, _u32(0x80)), nan, bits))
    if form.infinity is not None:
        infinite = _u32(0x7F800000) | ((code & _u32(0x80)) << _u32(24))
        bits = tirx.Select(tirx.EQ(magnitude, _u32(form.infinity)), infinite, bits)
    beyond = form.infinity if form.infinity is not None else form.largest
    return _f32(tirx.Select(tirx.GT(magnitude, _u32(beyond)), nan, bits))


def from_float32(form: Float8, value: Expr) -> Expr:
    """The nearest 8-bit float, ties to even; beyond the range infinity, or the largest without one."""
    bits = tirx.reinterpret("uint32", value)
    magnitude = bits & _u32(0x7FFFFFFF)
    shift = 23 - form.mantissa
    # Adding a power of two whose last place is the smallest denormal rounds to a multiple of that.
    magic = _u32((127 + 24 - form.bias - form.mantissa) << 23)
    small = tirx.reinterpret("uint32", _f32(magnitude) + _f32(magic)) - magic
    odd = (magnitude >> _u32(shift)) & _u32(1)
    rounded = (magnitude + odd + _u32((1 << (shift - 1)) - 1)) >> _u32(shift)
    normal = rounded - _u32((127 - form.bias) << form.mantissa)
    code = tirx.Select(tirx.LT(magnitude, _u32((128 - form.bias) << 23)), small, normal)
    beyond = _u32(form.infinity if form.infinity is not None else form.largest)
    code = tirx.Select(tirx.GT(code, _u32(form.largest)), beyond, code)
    code = tirx.Select(tirx.GT(magnitude, _u32(0x7F800000)), _u32(form.nan), code)
    sign = (bits >> _u32(24)) & _u32(0x80)
    if form.is_unsigned_zero:
        sign = tirx.Select(tirx.EQ(code, _u32(0)), _u32(0), sign)
    return tirx.reinterpret(form.name, b.cast("uint8", code | sign))


def spell_out_float8(f: PrimFunc) -> PrimFunc:
    """The function with each constant and conversion of 8-bit floats as arithmetic on bits; scalars only."""

    def spell_out_constant(node: FloatImm) -> Any:
        form = _format(dtype_of(node))
        return node if form is None else from_float32(form, b.const(float(node.value), "float32"))

    def spell_out_conversion(node: Cast) -> Any:
        source, target = _format(dtype_of(node.value)), _format(dtype_of(node))
        if source is not None and target is not source:
            wide = to_float32(source, node.value)
            return from_float32(target, wide) if target is not None else b.cast(dtype_of(node), wide)
        if target is not None and source is None:
            return from_float32(target, b.cast("float32", node.value))
        return node

    return f.with_body(
        tvm_ffi.structural_map(f.body, [(FloatImm, spell_out_constant), (Cast, spell_out_conversion)])
    )
