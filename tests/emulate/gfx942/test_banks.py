"""The cost model of LDS and global accesses."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.emulate.gfx942.banks import ideal_cycles, lds_cycles, lines_touched, phases

LANE = np.arange(64)
EVERYONE = np.ones(64, bool)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("is_write", [False, True])
def test_each_lane_is_served_in_one_phase(size, is_write):
    lanes = [lane for phase in phases(size, is_write) for lane in phase]
    assert sorted(lanes) == list(range(64))


@pytest.mark.parametrize(("size", "cycles"), [(4, 2), (8, 4), (16, 8)])
def test_consecutive_addresses_have_no_conflict(size, cycles):
    assert lds_cycles(LANE * size, EVERYONE, size, is_write=True) == cycles
    assert ideal_cycles(EVERYONE, size, is_write=True) == cycles


@pytest.mark.parametrize(("stride", "cycles"), [(0, 2), (4, 2), (8, 4), (64, 32), (128, 64), (132, 2)])
def test_words_at_a_stride(stride, cycles):
    assert lds_cycles(LANE * stride, EVERYONE, 4, is_write=False) == cycles


def test_wide_reads_have_phases_of_their_own():
    # lanes 0-3 and 20-23 go together: equal banks in those clash, in lanes 0-3 and 4-7 they do not
    addresses = LANE * 16
    assert lds_cycles(addresses, EVERYONE, 16, is_write=False) == 8
    addresses = np.where((LANE >= 20) & (LANE < 24), (LANE - 20) * 16 + 1024, addresses)
    assert lds_cycles(addresses, EVERYONE, 16, is_write=False) > 8


def test_inactive_lanes_cost_nothing():
    only_low = LANE < 16
    assert lds_cycles(LANE * 4, only_low, 4, is_write=False) == 1
    assert ideal_cycles(only_low, 4, is_write=False) == 1
    assert lds_cycles(LANE * 4, ~EVERYONE, 4, is_write=False) == 0


@pytest.mark.parametrize(("start", "size", "lines"), [(0, 4, 2), (64, 4, 3), (0, 16, 8), (124, 16, 9)])
def test_lines_of_a_consecutive_access(start, size, lines):
    assert lines_touched(start + LANE * size, size) == lines
