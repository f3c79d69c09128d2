"""Operations on whole tiles, executed once by a block or role: copy, gemm, fill, reduce, cumsum,
atomic_add, print.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.emulate.dtypes import is_float, numpy_type
from tilelab.emulate.memory import LogicalBuffer, bounds, lane_mask
from tilelab.emulate.registers import LocalBuffer
from tilelab.emulate.report import fault
from tilelab.emulate.runtime import agreed
from tilelab.hardware.meanings import register_table
from tilelab.hardware.model import Register
from tilelab.layout import Fragment

__all__ = ["TILE_OPS", "is_region", "read_region", "region_of", "write_region"]

Region = tuple[Any, tuple[int, ...], tuple[int, ...]]


def is_region(operand: Any) -> bool:
    """Whether an operand is a region rather than a value."""
    return isinstance(operand, tuple)


def region_of(context, operand, mask) -> Region:
    """The operand with first indices and extents as integers, the same for all active threads."""
    buffer, low, extent = operand
    return buffer, tuple(int(agreed(i, context, mask)) for i in low), tuple(int(e) for e in extent)


# ---- fragments: tiles spread over registers


def _fragment(buffer: LocalBuffer) -> Fragment:
    assert buffer.fragment is not None
    return buffer.fragment


def _table(buffer: LocalBuffer) -> np.ndarray:
    fragment = _fragment(buffer)
    table = register_table(Register(buffer.dtype, fragment.tile, fragment.layout))
    return table[: buffer.data.shape[0]]


def _is_whole(buffer: LocalBuffer, low, extent) -> bool:
    return len(low) == len(buffer.shape) and not any(low) and tuple(extent) == tuple(buffer.shape)


def _read_fragment(context, buffer: LocalBuffer, low, extent) -> np.ndarray:
    tile, table = _fragment(buffer).tile, _table(buffer)
    flat = np.zeros(math.prod(tile), buffer.data.dtype)
    ready = np.zeros(flat.shape, bool)
    flat[table], ready[table] = buffer.data, buffer.valid
    held = flat[table]
    if ((held != buffer.data) & (held == held) & buffer.valid).any():
        thread, value = (int(p[0]) for p in np.nonzero((held != buffer.data) & buffer.valid))
        raise fault(
            "TL603",
            f"threads hold different copies of one element of {buffer.name}:"
            f" thread {context.threads[thread]}, value {value}{context.iteration_text()}",
            context.span(),
        )
    whole = _is_whole(buffer, low, extent)
    box = (
        tuple(slice(0, n) for n in tile)
        if whole
        else tuple(slice(a, a + e) for a, e in zip(low, extent, strict=True))
    )
    lacking = ~_unravel(ready, tile)[box]
    if lacking.any():
        index = tuple(int(p[0]) + b.start for p, b in zip(np.nonzero(lacking), box, strict=True))
        raise context.unwritten(buffer, index, context.threads[:0])
    return _unravel(flat, tile)[box]


def _unravel(flat: np.ndarray, tile) -> np.ndarray:
    return flat.reshape(tile[::-1]).transpose()


def _write_fragment(buffer: LocalBuffer, low, extent, values: np.ndarray) -> None:
    tile, table = _fragment(buffer).tile, _table(buffer)
    if _is_whole(buffer, low, extent):
        low, extent = (0,) * len(tile), tile
    full = np.zeros(tile, buffer.data.dtype)
    inside = np.zeros(tile, bool)
    box = tuple(slice(a, a + e) for a, e in zip(low, extent, strict=True))
    full[box], inside[box] = values.reshape(extent), True
    flat, chosen = full.transpose().reshape(-1)[table], inside.transpose().reshape(-1)[table]
    buffer.data[chosen] = flat[chosen]
    buffer.valid[chosen] = True


def tile_extent(region: Region) -> tuple[int, ...]:
    """The shape of the tile that a region stands for."""
    buffer, low, extent = region
    if isinstance(buffer, LocalBuffer) and buffer.fragment is not None and _is_whole(buffer, low, extent):
        return _fragment(buffer).tile
    return extent


def read_region(context, region: Region, needed=None, who=None, lenient: bool = False) -> np.ndarray:
    """The values of a region."""
    buffer, low, extent = region
    if not isinstance(buffer, LocalBuffer):
        return buffer.read_tile(context, low, extent, needed, who, lenient)
    if buffer.fragment is not None:
        return _read_fragment(context, buffer, low, extent)
    registers = buffer.registers(context, low, extent)
    if (registers != registers[:1]).any():
        raise fault("TL201", f"{buffer.name} differs between threads where a tile is wanted", context.span())
    return registers[0].reshape(extent).copy()


def write_region(context, region: Region, values: np.ndarray, who=None, lenient: bool = False) -> None:
    """Write a region, converting to its dtype."""
    buffer, low, extent = region
    values = _converted(values, buffer.dtype)
    if not isinstance(buffer, LocalBuffer):
        buffer.write_tile(context, low, extent, values, who, lenient)
    elif buffer.fragment is not None:
        _write_fragment(buffer, low, extent, values)
    else:
        buffer.set_registers(
            low, extent, np.broadcast_to(values.reshape(1, -1), (buffer.data.shape[0], values.size))
        )


def _converted(values: np.ndarray, dtype: str) -> np.ndarray:
    return values != 0 if dtype == "bool" else values.astype(numpy_type(dtype), copy=False)


def _squeezed(shape) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _whole_block(context, mask, op: str) -> None:
    if mask is not None and not mask.all():
        raise fault(
            "TL201", f"T.{op} is executed by all threads together, not by some of them", context.span()
        )


# ---- the operations


def _copy(context, operands, config, mask) -> None:
    _whole_block(context, mask, "copy")
    source, target = (region_of(context, o, mask) for o in operands)
    have, want = tile_extent(source), tile_extent(target)
    if _squeezed(have) != _squeezed(want):
        raise fault("TL201", f"a tile of {have} is copied to one of {want}", context.span())
    needed = None
    if not isinstance(target[0], LocalBuffer):
        inside = target[0].inside_tile(target[1], target[2])
        needed = None if inside.all() else inside.reshape(have)
    write_region(context, target, read_region(context, source, needed).reshape(want))


def _matrix(tile: np.ndarray, transposed: bool) -> np.ndarray:
    shape = tile.shape[-2:] if tile.ndim > 2 else tile.shape
    flat = tile.reshape(shape)
    return flat.T if transposed else flat


def _gemm(context, operands, config, mask) -> None:
    _whole_block(context, mask, "gemm")
    a_region, b_region, c_region = (region_of(context, o, mask) for o in operands)
    a = _matrix(read_region(context, a_region), bool(config.get("transpose_A")))
    b = _matrix(read_region(context, b_region), bool(config.get("transpose_B")))
    wide = numpy_type(c_region[0].dtype)
    wide = np.float64 if a.dtype.itemsize >= 4 or wide == np.float64 else np.float32
    wide = wide if is_float(c_region[0].dtype) else np.int64
    product = a.astype(wide) @ b.astype(wide)
    if not config.get("clear_accum"):
        old = read_region(context, c_region)
        product = product.reshape(old.shape) + old.astype(wide)
    write_region(context, c_region, product.reshape(tile_extent(c_region)))


def _fill(context, operands, config, mask) -> None:
    _whole_block(context, mask, "fill")
    target = region_of(context, operands[0], mask)
    value = operands[1]
    if is_region(value):
        values = read_region(context, region_of(context, value, mask))
    else:
        values = np.full(tile_extent(target), agreed(value, context, mask))
    write_region(context, target, np.broadcast_to(values, tile_extent(target)))


_REDUCTIONS: dict[str, tuple[np.ufunc, Callable]] = {
    "sum": (np.add, lambda x: x), "max": (np.fmax, lambda x: x), "min": (np.fmin, lambda x: x),
    "abssum": (np.add, np.abs), "absmax": (np.fmax, np.abs), "bitand": (np.bitwise_and, lambda x: x),
    "bitor": (np.bitwise_or, lambda x: x), "bitxor": (np.bitwise_xor, lambda x: x),
}  # fmt: skip


def _reduce(context, operands, config, mask) -> None:
    _whole_block(context, mask, "reduce")
    source, target = (region_of(context, o, mask) for o in operands)
    values = read_region(context, source)
    axis = int(config.get("dim", -1)) % values.ndim
    combine, prepare = _REDUCTIONS[str(config.get("kind", "sum"))]
    if config.get("nan_propagate") and combine in (np.fmax, np.fmin):
        combine = np.maximum if combine is np.fmax else np.minimum
    wide = numpy_type(target[0].dtype)
    # Half types have no exact partial sums in NumPy's order either; they accumulate in float32, rounded once.
    inner = np.float32 if is_float(target[0].dtype) and np.dtype(wide).itemsize < 4 else wide
    result = combine.reduce(prepare(values.astype(inner)), axis=axis)
    want = tile_extent(target)
    if not config.get("clear", True):
        result = combine(read_region(context, target).astype(inner).reshape(result.shape), result)
    write_region(context, target, np.asarray(result).reshape(want))


def _cumsum(context, operands, config, mask) -> None:
    _whole_block(context, mask, "cumsum")
    source, target = (region_of(context, o, mask) for o in operands)
    values = read_region(context, source)
    axis = int(config.get("dim", 0)) % values.ndim
    kind = numpy_type(target[0].dtype)
    inner = np.float32 if is_float(target[0].dtype) and np.dtype(kind).itemsize < 4 else kind
    if config.get("reverse"):
        values = np.flip(values, axis)
    result = np.cumsum(values.astype(inner), axis=axis)
    write_region(context, target, np.flip(result, axis) if config.get("reverse") else result)


def _atomic_add(context, operands, config, mask) -> None:
    target, value = operands
    varying = any(isinstance(i, np.ndarray) for i in target[1]) or isinstance(value, np.ndarray)
    fragment = is_region(value) and not (isinstance(value[0], LocalBuffer) and value[0].fragment is None)
    by_block = not context.is_iterations and context.machine.stage in ("tile", "laid_out")
    if not varying and mask is None and (by_block or fragment):
        region = region_of(context, target, mask)
        inside = (
            region[0].inside_tile(region[1], region[2]) if not isinstance(region[0], LocalBuffer) else None
        )
        added = read_region(context, region_of(context, value, mask), None) if fragment else value
        old = read_region(context, region, inside)
        added = added.reshape(old.shape) if isinstance(added, np.ndarray) else added
        write_region(context, region, (old + added).astype(old.dtype))
        return
    _atomic_lanes(context, target, value, mask)


def _atomic_lanes(context, target, value, mask) -> None:
    """Every active lane adds by itself; lanes may hit the same element."""
    buffer, low, extent = target
    count = math.prod(extent)
    indices = lane_grid(low, extent, context.count)
    if is_region(value):
        values = value[0].registers(context, *region_of(context, value, mask)[1:], mask)
    else:
        values = np.broadcast_to(value[:, None] if np.ndim(value) else value, (context.count, count))
    active = lane_mask(mask, (context.count, count))
    inside = bounds(buffer.shape, indices)
    if inside is not None:
        if not buffer.lenient and (active & ~inside).any():
            index, _ = context.first_bad(indices, active & ~inside)
            raise fault(
                "TL601", f"{buffer.name}{list(index)} is outside {tuple(buffer.shape)}", context.span()
            )
        active = active & inside
    chosen = tuple(i[active] for i in indices)
    if isinstance(buffer, LogicalBuffer):
        memory = buffer.data
    else:
        memory, chosen = buffer.view, (buffer.table[chosen],)
        # Additions may meet one another, so each counts as a read: a plain write beside it is a race.
        buffer.record(
            context, chosen[0], np.broadcast_to(context.threads[:, None], active.shape)[active], False
        )
    kind = memory.dtype
    if kind.kind in "fiu":
        np.add.at(memory, chosen, values[active].astype(kind))
        return
    for *at, term in zip(*chosen, values[active], strict=True):
        memory[tuple(at)] = memory[tuple(at)] + kind.type(term)


def lane_grid(low, extent, lanes: int) -> tuple[np.ndarray, ...]:
    """The indices (lanes, elements) of the box that each lane addresses."""
    steps = np.unravel_index(np.arange(math.prod(extent)), extent) if extent else ()
    out = []
    for first, step in zip(low, steps, strict=True):
        base = first[:, None] if isinstance(first, np.ndarray) else np.full((lanes, 1), first)
        out.append(base + step[None, :])
    return tuple(out)


def _print(context, operands, config, mask) -> None:
    if not context.may_fault(mask):
        return
    value = operands[0] if operands else ""
    if is_region(value):
        shown = np.array2string(
            np.asarray(read_region(context, region_of(context, value, mask))).astype(float)
        )
    else:
        shown = str(
            np.ravel(value)[int(context.active(mask)[0]) - int(context.threads[0])]
            if np.ndim(value)
            else value
        )
    context.machine.prints.append(f"{config.get('message', '')} {shown}".strip())


TILE_OPS: dict[str, Callable[..., Any]] = {
    "copy": _copy,
    "gemm": _gemm,
    "fill": _fill,
    "reduce": _reduce,
    "cumsum": _cumsum,
    "atomic_add": _atomic_add,
    "print": _print,
}
