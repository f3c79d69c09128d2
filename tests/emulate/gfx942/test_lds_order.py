"""The order of LDS accesses: what races, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.emulate.gfx942.lds import LdsAccess, LdsConflict, LdsMemory


def access(wave: int, offsets: list[int], size: int = 4, issue: int = 1) -> LdsAccess:
    count = len(offsets)
    whole = np.full(count, 1, np.int64)
    return LdsAccess(0 * whole, np.array(offsets), wave * whole, issue * whole, size)


def words(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)[:, None]


@pytest.fixture
def lds() -> LdsMemory:
    return LdsMemory(groups=1, size=256, waves_per_group=4)


def barrier(lds: LdsMemory, finished: int = 100) -> None:
    waves = np.arange(4)
    lds.arrive(0 * waves, waves, 0 * waves + finished)
    lds.next_interval(0)


def test_read_after_another_waves_write_races(lds):
    lds.write(access(0, [16]), words(7))
    with pytest.raises(LdsConflict, match="byte 16: wave 1 reads 4 bytes written by wave 0 with no barrier"):
        lds.read(access(1, [16]))


def test_write_after_another_waves_read_races(lds):
    lds.write(access(0, [16]), words(7))
    barrier(lds)
    lds.read(access(1, [16]))
    with pytest.raises(LdsConflict, match="wave 0 writes 4 bytes read by wave 1 with no barrier"):
        lds.write(access(0, [16]), words(8))


def test_write_after_reads_by_several_waves_races_even_for_one_of_them(lds):
    lds.write(access(0, [16]), words(7))
    barrier(lds)
    lds.read(access(1, [16]))
    lds.read(access(2, [16]))
    with pytest.raises(LdsConflict, match="read by several waves"):
        lds.write(access(2, [16]), words(8))


def test_two_waves_writing_different_values_in_one_instruction_race(lds):
    both = LdsAccess(np.zeros(2, int), np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), 4)
    with pytest.raises(LdsConflict, match="in the same instruction"):
        lds.write(both, words(1, 2))


def test_two_waves_writing_the_same_value_do_not_race(lds):
    both = LdsAccess(np.zeros(2, int), np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), 4)
    lds.write(both, words(5, 5))
    lds.write(access(2, [0]), words(5))


def test_neighbouring_bytes_of_two_waves_do_not_race(lds):
    lds.write(access(0, [0, 8], size=4), words(1, 2))
    lds.write(access(1, [4], size=4), words(3))
    lds.write(access(0, [12], size=1), np.array([4], np.uint8))
    lds.write(access(1, [13], size=1), np.array([5], np.uint8))
    data, never = lds.read(access(0, [0], size=4))
    assert data.tolist() == [[1]]
    assert never == 0


def test_narrow_write_inside_a_wide_one_races(lds):
    lds.write(access(0, [0], size=16), np.arange(4, dtype=np.uint32)[None])
    with pytest.raises(LdsConflict, match="byte 6"):
        lds.write(access(1, [6], size=2), np.array([99], np.uint16))


def test_barrier_orders_accesses_that_were_waited_for(lds):
    lds.write(access(0, [16], issue=3), words(7))
    barrier(lds, finished=3)
    data, _ = lds.read(access(1, [16]))
    assert data.tolist() == [[7]]


def test_barrier_does_not_order_a_write_that_was_not_waited_for(lds):
    lds.write(access(0, [16], issue=3), words(7))
    barrier(lds, finished=2)
    with pytest.raises(LdsConflict, match="written by wave 0 without s_waitcnt lgkmcnt before the barrier"):
        lds.read(access(1, [16]))


def test_later_barrier_after_a_wait_orders_the_write(lds):
    lds.write(access(0, [16], issue=3), words(7))
    barrier(lds, finished=2)
    barrier(lds, finished=3)
    lds.read(access(1, [16]))


def test_waves_own_accesses_are_in_order(lds):
    lds.write(access(0, [16]), words(7))
    lds.read(access(0, [16]))
    lds.write(access(0, [16]), words(8))


def test_atomics_do_not_race_with_each_other_but_with_plain_accesses(lds):
    lds.write(access(0, [0]), words(0))
    barrier(lds)
    lds.touch_atomically(access(0, [0]))
    lds.touch_atomically(access(1, [0]))
    with pytest.raises(LdsConflict, match="several waves' atomics"):
        lds.read(access(1, [0]))


def test_wave_may_read_what_only_it_updated_atomically(lds):
    lds.write(access(0, [0, 4]), words(0, 0))
    barrier(lds)
    lds.touch_atomically(access(0, [0]))
    lds.touch_atomically(access(1, [4]))
    lds.read(access(0, [0]))
    with pytest.raises(LdsConflict, match="written by wave 1"):
        lds.read(access(0, [4]))


def test_plain_write_beside_anothers_atomic_races(lds):
    lds.write(access(0, [0]), words(0))
    barrier(lds)
    lds.write(access(0, [0]), words(1))
    with pytest.raises(LdsConflict, match="wave 1 updates 4 bytes written by wave 0"):
        lds.touch_atomically(access(1, [0]))


def test_workgroups_have_their_own_lds():
    lds = LdsMemory(groups=2, size=64, waves_per_group=1)
    for group in (0, 1):
        one = np.array([group])
        lds.write(LdsAccess(one, 0 * one, 0 * one, 0 * one + 1, 4), words(group + 1))
    data, _ = lds.read(LdsAccess(np.array([1]), np.array([0]), np.array([0]), np.array([2]), 4))
    assert data.tolist() == [[2]]


def test_never_written_bytes_are_counted(lds):
    lds.write(access(0, [0], size=4), words(1))
    _, never = lds.read(access(0, [0], size=8))
    assert never == 4
