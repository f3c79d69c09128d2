"""Shared-memory descriptors of wgmma operands, read off the layout string of the tile's buffer."""

from __future__ import annotations

from typing import Any

from tilelab.errors import InternalError
from tilelab.hardware.model import Shared, bits
from tilelab.hardware.nvidia.wgmma import Descriptor
from tilelab.ir import nodes as n
from tilelab.layout import Composed, Layout, parse

__all__ = ["descriptor_of", "swizzle_bytes"]

_MODES = {0: 0, 128: 1, 64: 2, 32: 3}


def swizzle_bytes(layout: Any) -> int:
    """The swizzle span of a tile's layout: 0 for a plain one."""
    return 16 << layout.swizzle.bits if isinstance(layout, Composed) else 0


def descriptor_of(printer: Any, region: Any, operand: Shared) -> int:
    """The constant part of the descriptor of a wgmma operand that lies in `region`'s buffer."""
    buffer = region.source
    text = printer.frame.swizzles.get(buffer)
    if text is None:
        raise InternalError(f"{buffer.name} is a wgmma operand without tl.layout")
    layout = parse(text)
    size = bits(n.dtype_of(buffer))
    span = swizzle_bytes(layout)
    if span == 0:
        raise InternalError(f"{buffer.name} is a wgmma operand without a swizzle: {text}")
    contiguous, boxes = _contiguous_axis(layout.layout)
    if operand.major == "k":
        return Descriptor(16, 8 * span, _MODES[span], 0).constant
    leading = boxes * size // 8 if boxes else 16
    del contiguous
    return Descriptor(leading, 8 * span, _MODES[span], 0).constant


def _contiguous_axis(layout: Layout) -> tuple[int, int]:
    """(the axis that runs fastest, the distance of its boxes in elements; 0 where there is one box)."""
    shapes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    for axis, (_, stride) in enumerate(zip(shapes, strides, strict=True)):
        steps = stride if isinstance(stride, tuple) else (stride,)
        if steps[0] == 1:
            return axis, (steps[1] if len(steps) > 1 else 0)
    raise InternalError(f"no axis of {layout} is contiguous")
