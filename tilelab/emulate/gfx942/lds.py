"""LDS of a batch of workgroups, with the order of accesses checked byte for byte.

Accesses of different waves are ordered only by barriers. Two accesses of one interval between barriers race
if they come from different waves, touch the same bytes and one writes other bytes than those already there.
An LDS operation that its wave has not waited for (`s_waitcnt lgkmcnt`) before the barrier may still be
under way after it, so it races with what other waves do next.

Each granule of bytes (as wide as the narrowest access seen) keeps a tag of its last writer and of its last
reader: interval number, wave, and the number of the operation in its wave's lgkm counter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilelab.emulate.gfx942.formats import I64, Array
from tilelab.emulate.gfx942.memory import Bytes

__all__ = ["LdsAccess", "LdsConflict", "LdsMemory"]

_INTERVAL_SHIFT, _WAVE_SHIFT = 42, 34
_CODE_MASK = 0xFF
_ISSUE_MASK = (1 << _WAVE_SHIFT) - 1
_ATOMIC_FLAG = 128
"""Added to the wave in the tag of an atomic update."""
_SEVERAL_ATOMICALLY, _SEVERAL = 254, 255
"""Stand for several waves in a writer tag, and in a reader tag."""


@dataclass(frozen=True)
class LdsAccess:
    """One access per element of the arrays: workgroup, offset in its LDS, wave in it, lgkm number."""

    group: Array
    offset: Array
    wave: Array
    issue: Array
    size: int

    def take(self, rows: Array) -> LdsAccess:
        """Some of the accesses."""
        return LdsAccess(self.group[rows], self.offset[rows], self.wave[rows], self.issue[rows], self.size)


class LdsConflict(Exception):
    """A race: the index of the first bad access, the other wave, and the sentence that explains it."""

    def __init__(self, bad: Array, sentence: str) -> None:
        super().__init__(sentence)
        self.bad = bad
        self.sentence = sentence


class LdsMemory:
    """LDS of `groups` workgroups of `size` bytes each."""

    def __init__(self, groups: int, size: int, waves_per_group: int) -> None:
        self.size = size
        self._stride = (max(size, 4) + 15) // 16 * 16
        self.bytes = Bytes(groups * self._stride)
        self._granule = 16
        cells = groups * self._stride // self._granule
        self._writer, self._reader = np.zeros(cells, I64), np.zeros(cells, I64)
        # interval 0 is "before the launch": a zero tag means never accessed
        self._interval = np.ones(groups, I64)
        self._finished_at_barrier = np.zeros((groups, waves_per_group), I64)

    def arrive(self, group: Array, wave: Array, finished: Array) -> None:
        """Waves arrive at a barrier having waited for their first `finished` lgkm operations."""
        self._finished_at_barrier[group, wave] = finished

    def next_interval(self, group: int) -> None:
        """Every wave of the workgroup has arrived at its barrier."""
        self._interval[group] += 1

    def flat(self, access: LdsAccess) -> Array:
        """Offsets in `bytes` of the accesses."""
        return access.group * self._stride + access.offset

    def read(self, access: LdsAccess) -> tuple[Array, int]:
        """The data as `Bytes.gather` gives it, and how many bytes of it were never written.

        Raises LdsConflict.
        """
        places = self.flat(access)
        cells = self._cells(places, access.size)
        wave = access.wave[:, None]
        tag = self._tag_as(access, wave)
        writer = self._writer[cells]
        self._check_tags(access, writer, wave, "reads", "written")
        old = self._reader[cells]
        is_shared = (old >> _INTERVAL_SHIFT == tag >> _INTERVAL_SHIFT) & (_wave_of(old) != wave)
        self._reader[cells] = np.where(is_shared, self._tag_as(access, _SEVERAL), tag)
        never = int((writer == 0).sum()) * self._granule if not writer.all() else 0
        return self.bytes.gather(places, access.size), never

    def write(self, access: LdsAccess, data: Array) -> None:
        """Store data of the shape that `Bytes.scatter` takes. Raises LdsConflict."""
        places = self.flat(access)
        cells = self._cells(places, access.size)
        wave = access.wave[:, None]
        tag = self._tag_as(access, wave)
        is_new = self._changes(places, data, access.size)
        self._check_tags(access, self._writer[cells], wave, "writes", "written", is_new)
        self._check_tags(access, self._reader[cells], wave, "writes", "read", is_new)
        self._writer[cells] = tag
        self.bytes.scatter(places, data, access.size)
        # two waves in one lockstep instruction: the last one's tag and bytes have won
        lost = (self._writer[cells] != tag).any(axis=1)
        if lost.any():
            lost &= self._changes(places, data, access.size)
            if lost.any():
                raise self._race(access, lost, "writes", "written in the same instruction by another wave")

    def touch_atomically(self, access: LdsAccess) -> None:
        """Check and tag atomic accesses; they never race with each other. The caller updates the bytes."""
        cells = self._cells(self.flat(access), access.size)
        wave = access.wave[:, None]
        tag = self._tag_as(access, wave + _ATOMIC_FLAG)
        writer = self._writer[cells]
        is_atomic = _code_of(writer) >= _ATOMIC_FLAG
        self._check_tags(access, np.where(is_atomic, 0, writer), wave, "updates", "written")
        self._check_tags(access, self._reader[cells], wave, "updates", "read")
        self._writer[cells] = tag
        is_same_interval = writer >> _INTERVAL_SHIFT == tag >> _INTERVAL_SHIFT
        is_shared = is_atomic & is_same_interval & (_wave_of(writer) != wave)
        # a tag that did not stay was overwritten by another wave of this very instruction
        is_shared |= self._writer[cells] != tag
        everyone = np.broadcast_to(self._tag_as(access, _SEVERAL_ATOMICALLY), cells.shape)
        self._writer[cells[is_shared]] = everyone[is_shared]

    # ------------------------------------------------------------------------------------------------- tags
    def _cells(self, places: Array, size: int) -> Array:
        """The granules of each access, [n, granules]; they get finer when an access asks for it."""
        together = int(np.bitwise_or.reduce(places)) | size
        wanted = math.gcd(together & -together, self._granule)
        if wanted < self._granule:
            times = self._granule // wanted
            self._writer, self._reader = np.repeat(self._writer, times), np.repeat(self._reader, times)
            self._granule = wanted
        first = places // self._granule
        return first[:, None] + np.arange(size // self._granule)

    def _tag_as(self, access: LdsAccess, code: Array | int) -> Array:
        """The tag of accesses under a wave's number or another code, [n, 1]."""
        interval = self._interval[access.group]
        return (interval << _INTERVAL_SHIFT | access.issue)[:, None] | code << _WAVE_SHIFT

    def _changes(self, places: Array, data: Array, size: int) -> Array:
        """Whether each access would store other bytes than are there."""
        there = self.bytes.gather(places, size)
        return (there != data.reshape(there.shape)).reshape(len(places), -1).any(axis=1)

    def _check_tags(
        self,
        access: LdsAccess,
        tags: Array,
        wave: Array,
        verb: str,
        participle: str,
        only: Array | None = None,
    ) -> None:
        """Raise if a tag is another wave's and its operation is not known to be over."""
        other = _wave_of(tags)
        is_other = (tags != 0) & (other != wave)
        if not is_other.any():
            return
        is_now = is_other & (tags >> _INTERVAL_SHIFT == self._interval[access.group][:, None])
        known = is_other & (other < _ATOMIC_FLAG) & ~is_now
        finished = self._finished_at_barrier[access.group[:, None], np.where(known, other, 0)]
        is_late = known & ((tags & _ISSUE_MASK) > finished)
        bad = (is_now | is_late).any(axis=1)
        if only is not None:
            bad &= only
        if not bad.any():
            return
        row = int(np.argmax(bad))
        column = int(np.argmax((is_now | is_late)[row]))
        code = int(other[row, column])
        whose = {_SEVERAL_ATOMICALLY: "several waves' atomics", _SEVERAL: "several waves"}.get(
            code, f"wave {code}"
        )
        if is_now[row, column]:
            reason = f"{participle} by {whose} with no barrier between"
        else:
            reason = f"{participle} by {whose} without s_waitcnt lgkmcnt before the barrier"
        raise self._race(access, bad, verb, reason)

    def _race(self, access: LdsAccess, bad: Array, verb: str, reason: str) -> LdsConflict:
        row = int(np.argmax(bad))
        who = f"wave {access.wave[row]} {verb} {access.size} bytes"
        sentence = f"LDS race at byte {access.offset[row]}: {who} {reason}"
        return LdsConflict(bad, sentence)


def _code_of(tags: Array) -> Array:
    return tags >> _WAVE_SHIFT & _CODE_MASK


def _wave_of(tags: Array) -> Array:
    """The wave of a tag, or one of the codes for several."""
    code = _code_of(tags)
    return np.where((code >= _ATOMIC_FLAG) & (code < _SEVERAL_ATOMICALLY), code - _ATOMIC_FLAG, code)
