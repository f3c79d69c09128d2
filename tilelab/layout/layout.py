"""Layouts: functions from coordinates to offsets, written as a tree of sizes and a tree of strides.

`((4,8),(2,2)):((32,1),(16,8))` has two modes. A mode's coordinate is split into digits, the leftmost fastest,
and each digit adds its stride: mode 0 at 5 is (1, 1), so it adds 1·32 + 1·1 = 33. A layout is also a function
of one integer, split over all digits the same way. This is CuTe's algebra; what differs is that an operation
whose result is no layout raises `ValueError` instead of giving a layout that is right only in part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from tilelab.layout.tuples import IntTuple, congruent, format_tuple, leaves, offset_of, tuple_size

__all__ = ["Digit", "Layout", "column_major", "concat", "row_major", "split_digit"]

Digit = tuple[int, int]  # (size, stride)


@dataclass(frozen=True)
class Layout:
    """A function from coordinates to offsets; `shape` and `stride` are congruent trees of integers."""

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        if not congruent(self.shape, self.stride):
            raise ValueError(f"shape {self.shape} and stride {self.stride} are not congruent")
        if any(size < 1 for size in leaves(self.shape)) or any(step < 0 for step in leaves(self.stride)):
            raise ValueError(f"sizes must be positive and strides not negative: {self}")

    def __call__(self, *coordinates: IntTuple) -> int:
        """The offset at one linear index, or at one coordinate a mode (each an integer or a nested tuple)."""
        if len(coordinates) == 1:
            return offset_of(coordinates[0], self.shape, self.stride)
        return offset_of(coordinates, self.shape, self.stride)

    def __str__(self) -> str:
        return f"{format_tuple(self.shape)}:{format_tuple(self.stride)}"

    @property
    def rank(self) -> int:
        """The number of modes."""
        return 1 if isinstance(self.shape, int) else len(self.shape)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return tuple_size(self.shape)

    @property
    def cosize(self) -> int:
        """One more than the largest offset."""
        return 1 + sum((size - 1) * step for size, step in self.digits())

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The layouts of the single modes; concatenated they give this layout."""
        return _modes(self)

    def __getitem__(self, mode: int) -> Layout:
        return _modes(self)[mode]

    def digits(self, mode: int | None = None) -> tuple[Digit, ...]:
        """The (size, stride) pairs of a mode, or of all, fastest first: offset = Σ digit · stride."""
        return _digits(self if mode is None else _modes(self)[mode])

    def offsets(self) -> list[int]:
        """Every offset in the order of the linear index (for tests and pictures; not for the hot path)."""
        table = [0]
        for size, step in self.digits():
            table = [base + i * step for i in range(size) for base in table]
        return table

    def flatten(self) -> Layout:
        """The same function of a linear index, its modes being single integers."""
        digits = self.digits()
        return Layout(tuple(size for size, _ in digits), tuple(step for _, step in digits))

    def coalesce(self) -> Layout:
        """The same function of a linear index with the fewest digits; one digit gives an integer shape."""
        return _coalesce(self)

    def compose(self, inner: Layout) -> Layout:
        """R with R(i) = self(inner(i)) for every i below inner.size; R's modes are inner's, digits split.

        Raises ValueError if inner reaches past self.size or if the result is not a layout.
        """
        return _compose(self, inner)

    def complement(self, cotarget: int) -> Layout:
        """The layout that walks what self leaves out.

        (self, complement) is one-to-one onto 0 … cotarget − 1; the complement's strides increase. Raises
        ValueError if self holds an offset twice (stride-0 digits apart, which count once) or does not divide
        the cotarget.
        """
        rest = _complement(self, cotarget)
        distinct = math.prod(size for size, step in self.digits() if step)
        if rest.size * distinct != cotarget:
            raise ValueError(f"{self} does not divide {cotarget}")
        return rest

    def divide(self, tiler: Layout | int | tuple[Layout | int | None, ...]) -> Layout:
        """Two modes, (tile, rest): self over the tiler's positions, and self over the tiler's repetitions.

        A tuple of tilers divides mode by mode and gives one (tile, rest) pair a mode; None keeps a mode
        whole. result.size == self.size, and it holds the same offsets. Raises ValueError if the tiler does
        not divide.
        """
        if isinstance(tiler, tuple):
            if len(tiler) > self.rank:
                raise ValueError(f"{len(tiler)} tilers for {self.rank} modes")
            parts = [m if t is None else m.divide(t) for m, t in zip(self.modes, tiler, strict=False)]
            return concat(*parts, *self.modes[len(tiler) :])
        tile = Layout(tiler, 1) if isinstance(tiler, int) else tiler
        return self.compose(concat(tile, tile.complement(self.size)))

    def product(self, tiler: Layout | int) -> Layout:
        """Two modes, (self, repetitions): self once for every position of the tiler, side by side.

        result.size == self.size · tiler.size; mode 0 is self; mode 1 visits copies of self in the tiler's
        order.
        """
        tile = Layout(tiler, 1) if isinstance(tiler, int) else tiler
        room = _complement(self, self.size * tile.cosize)
        return concat(self, room.compose(tile))

    def right_inverse(self) -> Layout:
        """R with self(R(i)) = i for every i below R.size: the longest run 0, 1, 2 … that self reaches."""
        return _right_inverse(self)

    def left_inverse(self) -> Layout:
        """R with R(self(i)) = i for every i below self.size. Raises ValueError if self is not one-to-one."""
        if any(step == 0 for size, step in self.digits() if size > 1):
            raise ValueError(f"{self} holds an offset twice, so it has no left inverse")
        return _right_inverse(concat(self, _complement(self, self.cosize)))

    def inverse(self) -> Layout:
        """R with R(self(i)) = self(R(i)) = i. ValueError if self is not one-to-one onto 0 … size − 1."""
        result = _right_inverse(self)
        if result.size != self.size:
            raise ValueError(f"{self} is not one-to-one onto 0 … {self.size - 1}")
        return result


def concat(*layouts: Layout) -> Layout:
    """One mode a layout: result(i, j, …) = layouts[0](i) + layouts[1](j) + …"""
    return Layout(tuple(part.shape for part in layouts), tuple(part.stride for part in layouts))


def column_major(shape: IntTuple) -> Layout:
    """The compact layout of a shape whose leftmost digit has stride 1."""
    return Layout(shape, _compact(shape, 1))


def row_major(shape: IntTuple) -> Layout:
    """The compact layout of a shape whose rightmost digit has stride 1."""
    return Layout(shape, _mirror(_compact(_mirror(shape), 1)))


def split_digit(size: int, stride: int, extents: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Cut a digit of a linear index over a box into digits of the box's axes.

    `extents` are the box's, leftmost fastest. Gives (size, stride along the axis, axis), the fastest first,
    whose sizes multiply to `size`. Raises ValueError if the digit crosses an axis at an uneven place or
    leaves the box.
    """
    if size == 1:
        return []
    if stride == 0:
        return [(size, 0, 0)]
    out: list[tuple[int, int, int]] = []
    left, step = size, stride
    for axis, extent in enumerate(extents):
        if step >= extent:
            if step % extent:
                raise ValueError(f"{size}:{stride} crosses extent {extent} of {extents} unevenly")
            step //= extent
            continue
        if (left - 1) * step < extent:
            out.append((left, step, axis))
            return out
        if extent % step or left % (extent // step):
            raise ValueError(f"{size}:{stride} crosses extent {extent} of {extents} unevenly")
        out.append((extent // step, step, axis))
        left //= extent // step
        step = 1
    raise ValueError(f"{size}:{stride} leaves the box {extents}")


def _compact(shape: IntTuple, step: int) -> IntTuple:
    if isinstance(shape, int):
        return step
    out: list[IntTuple] = []
    for branch in shape:
        out.append(_compact(branch, step))
        step *= tuple_size(branch)
    return tuple(out)


def _mirror(tree: IntTuple) -> IntTuple:
    return tree if isinstance(tree, int) else tuple(_mirror(branch) for branch in reversed(tree))


@cache
def _digits(layout: Layout) -> tuple[Digit, ...]:
    return tuple(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


@cache
def _modes(layout: Layout) -> tuple[Layout, ...]:
    if isinstance(layout.shape, int) or isinstance(layout.stride, int):
        return (layout,)
    return tuple(map(Layout, layout.shape, layout.stride))


def _from_digits(digits: list[Digit]) -> Layout:
    if not digits:
        return Layout(1, 0)
    if len(digits) == 1:
        return Layout(*digits[0])
    return Layout(tuple(size for size, _ in digits), tuple(step for _, step in digits))


@cache
def _coalesce(layout: Layout) -> Layout:
    out: list[Digit] = []
    for size, step in layout.digits():
        if size == 1:
            continue
        if out and out[-1][0] * out[-1][1] == step:
            out[-1] = (out[-1][0] * size, out[-1][1])
        else:
            out.append((size, step))
    return _from_digits(out)


@cache
def _compose(outer: Layout, inner: Layout) -> Layout:
    if inner.cosize > outer.size:
        raise ValueError(
            f"{inner} reaches {inner.cosize - 1}, past the last index {outer.size - 1} of {outer}"
        )
    modes = outer.coalesce().digits()
    extents = tuple(size for size, _ in modes)
    reach = [0] * len(modes)

    def build(shape: IntTuple, stride: IntTuple) -> Layout:
        if isinstance(shape, tuple) and isinstance(stride, tuple):
            return concat(*map(build, shape, stride))
        # The trees are congruent, so here both are integers.
        assert isinstance(shape, int)
        assert isinstance(stride, int)
        out: list[Digit] = []
        for size, step, mode in split_digit(shape, stride, extents):
            reach[mode] += (size - 1) * step
            out.append((size, step * modes[mode][1]))
        return _from_digits(out)

    result = build(inner.shape, inner.stride)
    # The digits add up mode by mode only if no sum of them carries into the next mode of the outer layout.
    if any(most >= extent for most, extent in zip(reach, extents, strict=True)):
        raise ValueError(f"{outer} after {inner} is not a layout: its digits carry")
    return result


@cache
def _complement(layout: Layout, cotarget: int) -> Layout:
    out: list[Digit] = []
    current = 1
    for step, size in sorted((step, size) for size, step in layout.digits() if step and size > 1):
        if step % current:
            raise ValueError(f"{layout} has no complement: stride {step} is no multiple of {current}")
        out.append((step // current, current))
        current = step * size
    out.append((-(-cotarget // current), current))
    return _from_digits(list(out)).coalesce()


@cache
def _right_inverse(layout: Layout) -> Layout:
    index = 1
    placed: list[tuple[int, int, int]] = []
    for size, step in layout.coalesce().digits():
        placed.append((step, size, index))
        index *= size
    out: list[Digit] = []
    current = 1
    for step, size, place in sorted(placed):
        if step == current and size > 1:
            out.append((size, place))
            current *= size
        elif step > current:
            break
    return _from_digits(out).coalesce()
