"""Buffers indexed by their logical shape: those of the lockstep stages, and global memory at every stage.

`load` and `store` take one index an axis, each an integer or an array over lanes (n,), or over lanes and
vector elements (n, v); `read_tile` and `write_tile` take a box. `lenient` buffers read zero outside and
write nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.emulate.report import fault, lanes_text

__all__ = ["LogicalBuffer", "bounds", "lane_mask", "plain_scalar"]


def plain_scalar(value):
    """A NumPy scalar as generated code wants it: Python integers and bools, NumPy floats."""
    return value.item() if value.dtype.kind in "iub" else value


def lane_mask(mask, shape: tuple[int, ...]):
    """A mask over lanes broadcast to (n,) or (n, v)."""
    if mask is None:
        return np.ones(shape, bool)
    return np.broadcast_to(mask[:, None] if len(shape) == 2 else mask, shape)


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def bounds(shape, indices):
    """Where the indices are inside: None for everywhere, else a bool or an array of bools."""
    inside = None
    for index, extent in zip(indices, shape, strict=True):
        if isinstance(index, np.ndarray):
            # Seen as unsigned, a negative index is a huge one: one maximum checks both ends.
            if index.size and int(index.view(_UNSIGNED[index.dtype.itemsize]).max()) >= extent:
                here = (index >= 0) & (index < extent)
                inside = here if inside is None else inside & here
        elif not 0 <= index < extent:
            inside = False
    return inside


class LogicalBuffer:
    """A buffer indexed by its logical shape; `valid` is None for memory whose contents the caller gave."""

    def __init__(
        self, name: str, dtype: str, data: np.ndarray, tracked: bool, lenient: bool, span: Any = None
    ) -> None:
        self.name, self.dtype, self.data, self.lenient, self.span = name, dtype, data, lenient, span
        self.shape = data.shape
        self.valid = np.zeros(data.shape, bool) if tracked else None

    # ---- lanes

    def load(self, context, indices, mask):
        """The elements at the indices; zero outside (lenient), else TL601; TL602 for what was never
        written.
        """
        inside = bounds(self.shape, indices)
        if inside is None and not any(isinstance(i, np.ndarray) for i in indices):
            if self.valid is not None and not self.valid[indices] and (mask is None or mask.any()):
                self.never_written(context, indices)
            context.note_read(self, indices, None, mask)
            return plain_scalar(self.data[indices])
        if inside is not None:
            self._outside(context, indices, inside, mask)
            indices = tuple(np.where(inside, i, 0) for i in indices)
        if self.data.size == 0:
            return np.zeros(np.broadcast_shapes(*(np.shape(i) for i in indices)), self.data.dtype)
        values = self.data[indices]
        shape = np.shape(values)
        active = None
        if self.valid is not None and not self.valid[indices].all():
            active = lane_mask(mask, shape) if shape else np.bool_(mask is None or mask.any())
            bad = ~self.valid[indices] & active & (True if inside is None else inside)
            if bad.any():
                self.never_written(context, indices, bad)
        context.note_read(self, indices, inside, mask)
        if inside is not None:
            values = np.where(inside, values, np.zeros((), self.data.dtype))
        return values if np.ndim(values) else plain_scalar(values[()])

    def store(self, context, indices, value, mask) -> None:
        """Write active lanes; lanes that write different values to one element race (TL603)."""
        inside = bounds(self.shape, indices)
        if inside is not None:
            self._outside(context, indices, inside, mask)
        arrays = np.broadcast_arrays(*indices, value)
        if arrays[0].ndim == 0:
            if inside is None and (mask is None or mask.any()):
                context.note_write(self, indices, value, None)
                self.data[indices] = value
                if self.valid is not None:
                    self.valid[indices] = True
            return
        shape = arrays[0].shape
        if mask is not None and shape[0] == 1 and mask.shape[0] > 1:
            arrays = [np.broadcast_to(a, (mask.shape[0], *shape[1:])) for a in arrays]
            shape = arrays[0].shape
        active = None if mask is None else lane_mask(mask, shape)
        if inside is not None:
            active = np.broadcast_to(inside, shape) if active is None else active & inside
        *where, values = arrays if active is None else [a[active] for a in arrays]
        where = tuple(where)
        context.note_write(self, where, values, active)
        self.data[where] = values
        if self.valid is not None:
            self.valid[where] = True
        back = self.data[where]
        wanted = np.asarray(values).astype(self.data.dtype, copy=False)
        differs = (back != wanted) & ~((back != back) & (wanted != wanted))
        if differs.any():
            self._clash(context, where, differs)

    def _clash(self, context, where, differs) -> None:
        index = tuple(int(np.broadcast_to(w, differs.shape)[differs][0]) for w in where)
        raise fault(
            "TL603",
            f"two {context.lane_word} write different values to {self.name}{list(index)} in one statement"
            f"{context.iteration_text()}",
            context.span(),
            help="make the index differ between them, or use an atomic operation",
        )

    def _outside(self, context, indices, inside, mask) -> None:
        if self.lenient:
            return
        shape = np.broadcast_shapes(*(np.shape(i) for i in indices))
        if shape == ():
            if mask is not None and not mask.any():
                return
            bad = None
        else:
            bad = (
                lane_mask(mask, shape if shape[0] > 1 or mask is None else (mask.shape[0], *shape[1:]))
                & ~inside
            )
            if not bad.any():
                return
        index, threads = context.first_bad(indices, bad)
        raise fault(
            "TL601",
            f"{self.name}{list(index)} is outside {self.name}'s shape {tuple(self.shape)}"
            f" ({lanes_text(threads)}{context.iteration_text()})",
            context.span(),
        )

    def never_written(self, context, indices, bad=None) -> None:
        """Raise TL602 for a read of an element that has no value."""
        index, threads = context.first_bad(indices, bad)
        raise context.unwritten(self, index, threads)

    # ---- boxes

    def _box(self, low, extent):
        inner, outer = [], []
        for first, size, limit in zip(low, extent, self.shape, strict=True):
            start, stop = max(first, 0), min(first + size, limit)
            stop = max(stop, start)
            inner.append(slice(start, stop))
            outer.append(slice(start - first, stop - first))
        return tuple(inner), tuple(outer)

    def read_tile(self, context, low, extent, needed=None, who=None, lenient: bool = False):
        """The box's values; zero outside the buffer. `needed` marks the elements that must have a value."""
        inner, outer = self._box(low, extent)
        whole = all(o == slice(0, size) for o, size in zip(outer, extent, strict=True))
        if not whole and not (self.lenient or lenient):
            self._box_outside(context, low, extent)
        if self.valid is not None:
            ready = self.valid[inner]
            if not ready.all():
                bad = ~ready if needed is None else ~ready & needed[outer]
                if bad.any():
                    at = [int(w[0]) for w in np.nonzero(bad)]
                    index = tuple(s.start + i for s, i in zip(inner, at, strict=True))
                    raise context.unwritten(self, index, context.threads)
        if whole:
            return self.data[inner].copy()
        tile = np.zeros(extent, self.data.dtype)
        tile[outer] = self.data[inner]
        return tile

    def write_tile(self, context, low, extent, values, who=None, lenient: bool = False) -> None:
        """Write the box; what lies outside the buffer is dropped."""
        inner, outer = self._box(low, extent)
        if any(o != slice(0, size) for o, size in zip(outer, extent, strict=True)) and not (
            self.lenient or lenient
        ):
            self._box_outside(context, low, extent)
        self.data[inner] = values[outer]
        if self.valid is not None:
            self.valid[inner] = True

    def inside_tile(self, low, extent):
        """Which elements of a box lie inside the buffer."""
        _, outer = self._box(low, extent)
        mask = np.zeros(extent, bool)
        mask[outer] = True
        return mask

    def poison_tile(self, low, extent) -> None:
        """Mark a box as holding nothing yet."""
        if self.valid is not None:
            self.valid[self._box(low, extent)[0]] = False

    def _box_outside(self, context, low, extent) -> None:
        box = ", ".join(f"{a}:{a + e}" for a, e in zip(low, extent, strict=True))
        raise fault(
            "TL601", f"{self.name}[{box}] leaves {self.name}'s shape {tuple(self.shape)}", context.span()
        )
