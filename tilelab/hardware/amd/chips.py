"""AMD chips."""

from __future__ import annotations

from tilelab.hardware.model import Chip
from tilelab.layout import Banks

_NARROW = (
    (4, tuple(tuple(range(i, i + 32)) for i in (0, 32))),
    (8, tuple(tuple(range(i, i + 16)) for i in (0, 16, 32, 48))),
)
# Which lanes a 16-byte access serves together: AMD Composable Kernel's documentation of LDS bank conflicts.
# The groups of narrower accesses are an assumption (as many lanes as make 128 bytes).
_READ_STARTS = ((0, 20), (4, 16), (8, 28), (12, 24), (32, 52), (36, 48), (40, 60), (44, 56))
READS = Banks(32, 4, (*_NARROW, (16, tuple((*range(a, a + 4), *range(b, b + 4)) for a, b in _READ_STARTS))))
WRITES = Banks(32, 4, (*_NARROW, (16, tuple(tuple(range(i, i + 8)) for i in range(0, 64, 8)))))

GFX942 = Chip(
    arch="gfx942",
    product="MI300X",
    warp=64,
    multiprocessors=304,
    threads_per_block=1024,
    threads_per_multiprocessor=2048,
    registers=4 * 512 * 64,
    thread_registers=512,
    shared_default=64 << 10,
    shared_per_block=64 << 10,
    shared_per_multiprocessor=64 << 10,
    reads=READS,
    writes=WRITES,
    features=frozenset({"gpu", "hip", "gfx942", "mfma", "buffer_bounds", "groups"}),
    clock=2.1e9,
    bandwidth=5.3e12,
    l2=4 << 20,
    source="AMD Instinct MI300X data sheet and CDNA3 white paper; MI300 ISA manual",
)

CHIPS = (GFX942,)
