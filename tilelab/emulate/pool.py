"""Shared memory of the free-running stages: one pool of bytes, addressed through each buffer's layout and
offset.

Two buffers whose byte ranges overlap share their bytes, so a plan that overlaps buffers in use gives wrong
values, unwritten reads or races here as it would on the chip.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.memory import bounds, lane_mask, plain_scalar
from tilelab.emulate.races import Agent, Tracker
from tilelab.emulate.report import fault, lanes_text
from tilelab.layout import Composed, Layout, parse

__all__ = ["Pool", "PoolBuffer", "offsets_of"]


def offsets_of(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """The physical element of every logical index, as an array of the buffer's shape; row-major without a
    layout.
    """
    if not text:
        return np.arange(math.prod(shape)).reshape(shape)
    layout = parse(text)
    plain = layout.layout if isinstance(layout, Composed) else layout
    if not isinstance(plain, Layout) or plain.size != math.prod(shape):
        return np.arange(math.prod(shape)).reshape(shape)
    table = np.array(plain.offsets()).reshape(shape[::-1]).transpose()
    if isinstance(layout, Composed):
        swizzle = layout.swizzle
        table = table + layout.offset
        table = table ^ ((table >> swizzle.shift) & (((1 << swizzle.bits) - 1) << swizzle.base))
    return np.ascontiguousarray(table)


class Pool:
    """The bytes of a block's shared memory, which of them have a value, and who touched them last."""

    def __init__(self, size: int, grain: int, tracker: Tracker | None) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.valid = np.zeros(size, bool)
        self.grain, self.tracker = grain, tracker


class PoolBuffer:
    """A shared buffer in the pool."""

    lenient = False

    def __init__(self, pool: Pool, name: str, dtype: str, shape, layout: str, offset: int, span: Any) -> None:
        self.pool, self.name, self.dtype, self.shape, self.span = pool, name, dtype, tuple(shape), span
        self.table = offsets_of(layout, self.shape)
        self.offset = offset
        kind = np.dtype(numpy_type(dtype))
        self.item = kind.itemsize
        size = (int(self.table.max()) + 1) * self.item if self.table.size else 0
        self.view = pool.bytes[offset : offset + size].view(kind)
        self.ready = pool.valid[offset : offset + size].reshape(-1, self.item)

    # ---- access records

    def _cells(self, elements: np.ndarray) -> np.ndarray:
        grain = self.pool.grain
        first = (self.offset + elements * self.item) // grain
        each = max(self.item // grain, 1)
        return first if each == 1 else (first[:, None] + np.arange(each)).reshape(-1)

    def record(self, context, elements, who, is_write: bool, indices=None) -> None:
        """Tell the tracker of an access of elements (flat) by threads (one an element) or an agent."""
        tracker = self.pool.tracker
        if tracker is None or elements.size == 0:
            return
        cells = self._cells(elements)
        each = cells.size // elements.size
        threads = who if isinstance(who, Agent) or each == 1 else np.repeat(who, each)
        conflict = (tracker.write if is_write else tracker.read)(cells, threads, context.at)
        if conflict is not None:
            element = int(elements[conflict.position // each])
            me = who.column if isinstance(who, Agent) else int(who[conflict.position // each])
            index = tuple(int(w[0]) for w in np.nonzero(self.table == element))
            context.race(self, index, conflict, me, is_write)

    def _physical(self, context, indices, mask):
        inside = bounds(self.shape, indices)
        if inside is not None:
            shape = np.broadcast_shapes(*(np.shape(i) for i in indices))
            bad = None
            if shape:
                wide = shape if mask is None or shape[0] > 1 else (mask.shape[0], *shape[1:])
                bad = lane_mask(mask, wide) & ~np.broadcast_to(inside, wide)
            if bad.any() if bad is not None else (mask is None or mask.any()):
                index, threads = context.first_bad(indices, bad)
                raise fault(
                    "TL601",
                    f"{self.name}{list(index)} is outside {self.name}'s shape {self.shape}"
                    f" ({lanes_text(threads)}{context.iteration_text()})",
                    context.span(),
                )
            indices = tuple(np.where(inside, i, 0) for i in indices) if shape else tuple(0 for _ in indices)
        return self.table[indices]

    def load(self, context, indices, mask):
        """The elements, read by each active thread."""
        elements = self._physical(context, indices, mask)
        if not np.ndim(elements):
            # One address for all: every active thread reads it.
            threads = context.threads if mask is None else context.threads[mask]
            self.record(context, np.full(threads.size, elements), threads, False)
            if threads.size and not self.ready[elements].all():
                raise context.unwritten(self, context.first_bad(indices, None)[0], threads)
            return plain_scalar(self.view[elements])
        if mask is None and self.pool.tracker is None and self.ready[elements].all():
            return self.view[elements]
        chosen, who, active = self._lanes(context, elements, mask)
        self.record(context, chosen, who, False)
        ready = self.ready[chosen]
        if not ready.all():
            bad = np.zeros(active.shape, bool)
            bad[active] = ~ready.all(axis=1)
            index, threads = context.first_bad(indices, bad)
            raise context.unwritten(self, index, threads)
        return self.view[elements]

    def _lanes(self, context, elements, mask):
        """Elements of active lanes, flat, with the thread of each, and the mask over (n,) or (n, v)."""
        shape = elements.shape if elements.shape[0] == context.count else (context.count, *elements.shape[1:])
        active = lane_mask(mask, shape)
        threads = context.threads[:, None] if len(shape) == 2 else context.threads
        return np.broadcast_to(elements, shape)[active], np.broadcast_to(threads, shape)[active], active

    def store(self, context, indices, value, mask) -> None:
        """Write each active thread's elements; threads that write different values to one element race."""
        elements = np.asarray(self._physical(context, indices, mask))
        elements = np.broadcast_to(elements, np.broadcast_shapes(elements.shape, np.shape(value)) or (1,))
        chosen, who, active = self._lanes(context, elements, mask)
        values = np.broadcast_to(value, active.shape)[active]
        self.record(context, chosen, who, True)
        self.view[chosen] = values
        self.ready[chosen] = True
        differs = self.view[chosen].view(np.uint8).reshape(-1, self.item) != np.ascontiguousarray(
            values.astype(self.view.dtype, copy=False)
        ).view(np.uint8).reshape(-1, self.item)
        if differs.any():
            element = int(chosen[np.argmax(differs.any(axis=1))])
            index = [int(w[0]) for w in np.nonzero(self.table == element)]
            threads = lanes_text(who[chosen == element])
            raise fault(
                "TL603",
                f"{threads} write different values to {self.name}{index} in one statement"
                + context.iteration_text(),
                context.span(),
            )

    # ---- boxes

    def _box(self, context, low, extent) -> np.ndarray:
        if any(a < 0 or a + e > s for a, e, s in zip(low, extent, self.shape, strict=True)):
            box = ", ".join(f"{a}:{a + e}" for a, e in zip(low, extent, strict=True))
            raise fault(
                "TL601", f"{self.name}[{box}] leaves {self.name}'s shape {self.shape}", context.span()
            )
        return self.table[tuple(slice(a, a + e) for a, e in zip(low, extent, strict=True))]

    def read_tile(self, context, low, extent, needed=None, who=None, lenient: bool = False):
        """The box's values, read by `who` (an agent)."""
        elements = self._box(context, low, extent)
        flat = elements.reshape(-1)
        if who is not None:
            self.record(context, flat, who, False)
        ready = self.ready[flat].all(axis=1)
        if not ready.all():
            at = np.unravel_index(int(np.argmin(ready)), elements.shape)
            raise context.unwritten(
                self, tuple(a + int(i) for a, i in zip(low, at, strict=True)), context.threads[:0]
            )
        return self.view[elements]

    def write_tile(self, context, low, extent, values, who=None, lenient: bool = False) -> None:
        """Write the box as `who` (an agent)."""
        elements = self._box(context, low, extent)
        if who is not None:
            self.record(context, elements.reshape(-1), who, True)
        self.view[elements] = values
        self.ready[elements] = True

    def touch_tile(self, context, low, extent, who) -> None:
        """Record that `who` may write the box from now on."""
        self.record(context, self._box(context, low, extent).reshape(-1), who, True)
        if self.pool.tracker is not None:
            # The write itself comes later and must not clash with this record of it.
            who.known[who.column] = self.pool.tracker.now

    def inside_tile(self, low, extent):
        """Which elements of a box lie inside: all, since leaving a shared buffer is a fault."""
        return np.ones(extent, bool)

    def poison_tile(self, low, extent) -> None:
        """Mark a box as holding nothing yet."""
        box = tuple(slice(max(a, 0), a + e) for a, e in zip(low, extent, strict=True))
        self.ready[self.table[box].reshape(-1)] = False

    def poison_lanes(self, context, indices, mask) -> None:
        """Mark what lanes address as holding nothing yet."""
        elements = np.asarray(self._physical(context, indices, mask))
        self.ready[self._lanes(context, elements, mask)[0]] = False

    def touch_lanes(self, context, indices, mask) -> None:
        """Record that the lanes' threads may write what they address from now on."""
        elements = np.asarray(self._physical(context, indices, mask))
        chosen, who, _ = self._lanes(context, elements, mask)
        self.record(context, chosen, who, True)
