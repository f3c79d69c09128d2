"""Storage: gathers and scatters at every size and alignment, and the check of every access."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.emulate.gfx942.memory import BASE, Bytes, GlobalMemory, OutOfBounds


@pytest.mark.parametrize("size", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 16])
def test_gather_gives_what_scatter_put(size, alignment):
    store = Bytes(4096)
    offsets = np.random.default_rng(0).permutation(np.arange(64)) * 32 + alignment
    raw = np.random.default_rng(1).integers(0, 256, (64, size)).astype(np.uint8)
    data = raw.view(np.uint16)[:, 0] if size == 2 else raw[:, 0] if size == 1 else raw.view(np.uint32)
    store.scatter(offsets, data, size)
    np.testing.assert_array_equal(store.gather(offsets, size), data)
    for row, offset in zip(raw, offsets, strict=True):
        np.testing.assert_array_equal(store.u8[offset : offset + size], row)
    assert np.count_nonzero(store.u8) == np.count_nonzero(raw)


def test_allocations_are_guarded_on_both_sides():
    memory = GlobalMemory([("first", 100), ("second", 100)])
    first, second = memory.allocations
    memory.check(np.array([first.start, first.end - 4, second.start]), 4)
    for offset, sentence in [
        (first.end - 3, "4 bytes at byte 97 of first, which has 100 bytes"),
        (first.end, "at byte 100 of first"),
        (second.start - 4, "4 bytes before the start of second"),
    ]:
        with pytest.raises(OutOfBounds, match=sentence) as caught:
            memory.check(np.array([first.start, offset]), 4)
        assert caught.value.bad.tolist() == [False, True]


def test_fill_gives_the_address():
    memory = GlobalMemory([("only", 8)])
    address = memory.fill(0, np.arange(8, dtype=np.uint8))
    assert memory.gather(np.array([address - BASE]), 8).view(np.uint8).ravel().tolist() == list(range(8))
    assert memory.content(0).tolist() == list(range(8))
