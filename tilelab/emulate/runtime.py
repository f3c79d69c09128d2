"""The functions that generated code calls: masks, vectors, and values on which lanes must agree."""

from __future__ import annotations

import numpy as np

from tilelab.emulate.dtypes import convert, truncated_divide, truncated_rest
from tilelab.emulate.intrinsics import call_intrinsic, maximum, minimum, reinterpret, shuffle
from tilelab.emulate.report import fault

__all__ = ["NAMES"]

NAMES = (
    "np", "convert", "truncated_divide", "truncated_rest", "call_intrinsic", "maximum", "minimum",
    "reinterpret", "shuffle", "where", "ramp", "spread", "as_lanes", "and_mask", "some", "without", "longest",
    "agreed", "sliced", "take_elements",
)  # fmt: skip
# Re-exported for generated code; `NAMES` is the whole list.
_ = convert, truncated_divide, truncated_rest, call_intrinsic, maximum, minimum, reinterpret, shuffle


def where(test, a, b, dtype):
    """The elementwise choice, in the given NumPy type."""
    return np.where(test, a, b).astype(dtype, copy=False)


def ramp(base, stride, lanes: int):
    """The vector base, base + stride, …: (1, lanes), or (n, lanes) for a base that differs between lanes."""
    steps = np.arange(lanes)[None, :] * stride
    return base[:, None] + steps if isinstance(base, np.ndarray) else base + steps


def spread(value, lanes: int, dtype):
    """A scalar, or a scalar a lane, as a vector of equal elements."""
    if isinstance(value, np.ndarray):
        return np.repeat(value[:, None], lanes, axis=1)
    return np.full((1, lanes), value, dtype)


def as_lanes(value, context, width: int):
    """A value that one branch left as a scalar, as the array that the other branch gives."""
    if isinstance(value, np.ndarray):
        return value[:, None] if width > 1 and value.ndim == 1 else value
    return np.full((1, width) if width > 1 else context.count, value)


def and_mask(a, b):
    """Lanes active in both masks; None stands for all lanes."""
    if a is None:
        return b
    return a if b is None else a & b


def some(mask) -> bool:
    """Whether any lane is active."""
    return mask is None or bool(mask.any())


def without(mask, gone):
    """The mask less the lanes that have gone."""
    return ~gone if mask is None else mask & ~gone


def longest(count, mask) -> int:
    """The largest trip count among active lanes."""
    if not isinstance(count, np.ndarray):
        return count
    active = count if mask is None else count[mask]
    return int(active.max()) if active.size else 0


def agreed(value, context, mask=None):
    """The one value that all active lanes have; raises TL201 where they differ."""
    if not isinstance(value, np.ndarray):
        return value
    active = value if mask is None else value[mask]
    if active.size == 0:
        return value.flat[0].item()
    if (active != active.flat[0]).any():
        shown = ", ".join(str(v) for v in np.unique(active)[:4])
        raise fault(
            "TL201", f"the threads disagree on a value that must be one for all: {shown}", context.span()
        )
    return active.flat[0].item()


def sliced(value, first: int, count: int):
    """The lanes of a role out of the lanes of the block."""
    return value[first : first + count] if isinstance(value, np.ndarray) and value.shape[0] > 1 else value


def take_elements(parts, picks, varying: bool):
    """Chosen elements of several vectors as one vector."""
    lanes = max((p.shape[0] for p in parts if isinstance(p, np.ndarray)), default=1)
    columns = [p[:, None] if p.ndim == 1 else p for p in map(np.asarray, parts) if p.ndim]
    columns += [np.full((1, 1), p) for p in map(np.asarray, parts) if not p.ndim]
    if not varying:
        return np.concatenate([c.reshape(1, -1) for c in columns], axis=1)[:, picks]
    wide = [np.broadcast_to(c, (lanes, c.shape[1])) for c in columns]
    return np.concatenate(wide, axis=1)[:, picks]
