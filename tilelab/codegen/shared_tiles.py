"""Shared-memory descriptors of wgmma operands, read off the layout string of the tile's buffer."""

from __future__ import annotations

from typing import Any

from tilelab.errors import InternalError
from tilelab.hardware.model import Shared, bits
from tilelab.hardware.nvidia.wgmma import Descriptor
from tilelab.ir import nodes as n
from tilelab.layout import Composed, Layout, concat, parse

__all__ = ["descriptor_of", "swizzle_bytes", "tile_layout"]

_MODES = {128: 1, 64: 2, 32: 3}


def swizzle_bytes(layout: Any) -> int:
    """The swizzle span of a tile's layout: 0 for a plain one."""
    return 16 << layout.swizzle.bits if isinstance(layout, Composed) else 0


def tile_layout(buffer: Any, text: str) -> Layout | Composed:
    """The layout of a shared tile with one mode an axis of its buffer, also where the string nests some."""
    layout: Any = parse(text)
    extents = [int(e) for e in buffer.shape]
    if isinstance(layout, Composed):
        return Composed(layout.swizzle, layout.offset, _by_axis(layout.layout, extents))
    return _by_axis(layout, extents)


def _by_axis(layout: Layout, extents: list[int]) -> Layout:
    if len(extents) == 1:
        return layout
    modes = [layout[i] for i in range(layout.rank)]
    found: list[Layout] = []
    while modes:
        mode = modes.pop(0)
        if len(found) < len(extents) and mode.size == extents[len(found)]:
            found.append(mode)
        elif mode.rank > 1:
            modes = [mode[i] for i in range(mode.rank)] + modes
        else:
            raise InternalError(f"{layout} is no layout of a tile of {tuple(extents)}")
    return concat(*found)


def descriptor_of(printer: Any, region: Any, operand: Shared) -> int:
    """The constant part of the descriptor of a wgmma operand that lies in `region`'s buffer."""
    buffer = region.source
    text = printer.frame.swizzles.get(buffer)
    if text is None:
        raise InternalError(f"{buffer.name} is a wgmma operand without tl.layout")
    layout = printer.expressions.layouts.get(buffer) or parse(text)
    span = swizzle_bytes(layout)
    if not isinstance(layout, Composed) or span == 0:
        raise InternalError(f"{buffer.name} is a wgmma operand without a swizzle: {text}")
    # K-major operands stay inside a box, so that the leading offset is not read: 16 is what it is set to.
    apart = _box_distance(layout.layout) * bits(n.dtype_of(buffer)) // 8
    leading = apart if operand.major == "mn" and apart else 16
    return Descriptor(leading, 8 * span, _MODES[span], 0).constant


def _box_distance(layout: Layout) -> int:
    """How far apart the boxes of the axis that runs fastest are, in elements; 0 where there is one box."""
    for mode in range(layout.rank):
        steps = [stride for _, stride in layout.digits(mode)]
        if steps[0] == 1:
            return steps[1] if len(steps) > 1 else 0
    raise InternalError(f"no axis of {layout} is contiguous")
