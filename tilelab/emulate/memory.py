"""Buffers of the lockstep stages: logical arrays, and arrays private to each thread; with what was never written.

`load` and `store` take one index an axis, each an integer or an array over lanes (n,), or over lanes and vector
elements (n, v); `read_tile` and `write_tile` take a box. `lenient` buffers read zero outside and write nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.report import fault, lanes_text
from tilelab.layout import Fragment, parse

__all__ = ["LocalBuffer", "LogicalBuffer", "lane_mask", "plain_scalar"]


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
        """The elements at the indices; zero outside (lenient), else TL601; TL602 for what was never written."""
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


class LocalBuffer:
    """An array private to each thread: (threads, elements); a fragment of a tile where it carries a layout."""

    lenient = True

    def __init__(
        self, name: str, dtype: str, shape: tuple[int, ...], threads: int, layout: str, span: Any
    ) -> None:
        self.name, self.dtype, self.shape, self.span = name, dtype, shape, span
        self.data = np.zeros((threads, math.prod(shape)), numpy_type(dtype))
        self.valid = np.zeros(self.data.shape, bool)
        parsed = parse(layout) if layout else None
        self.fragment = parsed if isinstance(parsed, Fragment) else None
        self.root = self

    def slice(self, first: int, count: int) -> LocalBuffer:
        """The same registers, seen by a role's threads only."""
        part = object.__new__(LocalBuffer)
        part.__dict__.update(self.__dict__)
        part.data, part.valid = self.data[first : first + count], self.valid[first : first + count]
        return part

    def flat(self, context, indices, mask):
        """The element number within a thread's array; TL601 outside it."""
        if (inside := bounds(self.shape, indices)) is not None:
            shape = np.broadcast_shapes(*(np.shape(i) for i in indices))
            bad = ~np.broadcast_to(inside, shape or (1,)) & (
                lane_mask(mask, shape) if shape and mask is not None else True
            )
            if bad.any() and context.may_fault(mask):
                index, threads = context.first_bad(indices, bad if shape else None)
                raise fault(
                    "TL601",
                    f"{self.name}{list(index)} is outside {self.name}'s shape {self.shape} ({lanes_text(threads)}"
                    f"{context.iteration_text()})",
                    context.span(),
                )
            indices = tuple(np.where(inside, i, 0) for i in indices) if shape else tuple(0 for _ in indices)
        total = indices[0]
        for index, extent in zip(indices[1:], self.shape[1:], strict=True):
            total = total * extent + index
        return total

    def load(self, context, indices, mask):
        """Each thread's element; under iterations the one value on which the threads agree."""
        where = self.flat(context, indices, mask)
        if context.is_iterations or self.data.shape[0] == 1:
            return self._one_for_all(context, where, indices, mask)
        if isinstance(where, np.ndarray):
            rows = np.arange(self.data.shape[0])
            rows = rows[:, None] if where.ndim == 2 else rows
            values, ready = self.data[rows, where], self.valid[rows, where]
        else:
            values, ready = self.data[:, where].copy(), self.valid[:, where]
        if not ready.all():
            bad = ~ready & lane_mask(mask, ready.shape)
            if bad.any():
                index, threads = context.first_bad(indices, bad)
                raise context.unwritten(self, index, threads)
        return values

    def _one_for_all(self, context, where, indices, mask):
        data, ready = self.data[:, where], self.valid[0, where]
        active = True
        if mask is not None:
            active = lane_mask(mask, np.shape(ready)) if np.ndim(ready) else mask.any()
        if (~np.asarray(ready) & active).any():
            index, threads = context.first_bad(indices, None)
            raise context.unwritten(self, index, threads)
        if data.shape[0] > 1 and (data != data[:1]).any():
            raise fault(
                "TL201", f"{self.name} differs between the threads of a T.parallel nest", context.span()
            )
        return data[0].copy() if data.ndim > 1 else plain_scalar(data[0])

    def store(self, context, indices, value, mask) -> None:
        """Write each active thread's element; under iterations of a single thread, that thread's."""
        where = self.flat(context, indices, mask)
        if context.is_iterations:
            self._store_iterations(where, value, mask)
            return
        if not isinstance(where, np.ndarray) and np.ndim(value) < 2:
            if mask is None:
                self.data[:, where] = value
                self.valid[:, where] = True
            else:
                self.data[mask, where] = (
                    value[mask] if isinstance(value, np.ndarray) and value.size > 1 else value
                )
                self.valid[mask, where] = True
            return
        rows = np.arange(self.data.shape[0])
        if np.ndim(where) == 2 or np.ndim(value) == 2:
            rows = rows[:, None]
        rows, where, values = np.broadcast_arrays(rows, where, value)
        active = lane_mask(mask, rows.shape)
        self.data[rows[active], where[active]] = values[active]
        self.valid[rows[active], where[active]] = True

    def _store_iterations(self, where, value, mask) -> None:
        if mask is not None:
            where, value = np.broadcast_arrays(where, value)
            where, value = where[mask], value[mask]
        self.data[:, where] = value
        self.valid[:, where] = True

    # ---- registers and tiles

    def registers(self, context, low, extent, mask=None, check: bool = True):
        """A view (threads, elements) of a box of registers, the same for all threads."""
        span = self.span_of(low, extent)
        if check:
            ready = self.valid[:, span]
            bad = ~ready if mask is None else ~ready & mask[:, None]
            if bad.any():
                threads = context.threads[np.nonzero(bad)[0]]
                raise context.unwritten(self, (int(span[np.nonzero(bad)[1][0]]),), threads[:1])
        return self.data[:, span]

    def set_registers(self, low, extent, values, mask=None) -> None:
        """Write a box of registers of the active threads."""
        span = self.span_of(low, extent)
        if mask is None:
            self.data[:, span] = values
            self.valid[:, span] = True
        else:
            rows = np.nonzero(mask)[0]
            self.data[np.ix_(rows, span)] = values[rows]
            self.valid[np.ix_(rows, span)] = True

    def poison_registers(self, low, extent, mask=None) -> None:
        """Mark a box of registers as holding nothing yet."""
        span = self.span_of(low, extent)
        rows = np.arange(self.data.shape[0]) if mask is None else np.nonzero(mask)[0]
        self.valid[np.ix_(rows, span)] = False

    def span_of(self, low, extent) -> np.ndarray:
        """The element numbers of a box, the same for all threads."""
        total = np.zeros((), np.int64)
        for first, size, whole in zip(low, extent, self.shape, strict=True):
            steps = first + np.arange(size)
            total = total[..., None] * whole + steps
        return total.reshape(-1)
