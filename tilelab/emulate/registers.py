"""Arrays private to each thread, and fragments: tiles spread over the threads' registers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilelab.emulate.dtypes import numpy_type
from tilelab.emulate.memory import bounds, lane_mask, plain_scalar
from tilelab.emulate.report import fault, lanes_text
from tilelab.layout import Fragment, parse

__all__ = ["LocalBuffer"]


class LocalBuffer:
    """An array private to each thread: (threads, elements); a fragment of a tile where it carries a
    layout.
    """

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
                    f"{self.name}{list(index)} is outside {self.name}'s shape {self.shape}"
                    f" ({lanes_text(threads)}{context.iteration_text()})",
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
        context.unfenced[id(self.root)] = context.at
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
