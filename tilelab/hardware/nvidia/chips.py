"""NVIDIA chips: limits by compute capability; clock and memory of one product each."""

from __future__ import annotations

from dataclasses import replace

from tilelab.hardware.model import Chip
from tilelab.layout import Banks

_SOURCE = "CUDA C++ programming guide, 'Compute capabilities'; clock and memory from the product's data sheet"

# 32 banks of 4 bytes. An access of 4 bytes a lane is one wavefront, of 8 bytes two (half warps), of 16 four.
# Source: Nsight Compute's ideal wavefronts; ldmatrix serves eight 16-byte rows a wavefront.
_BANKS = Banks(
    32,
    4,
    (
        (4, (tuple(range(32)),)),
        (8, tuple(tuple(range(i, i + 16)) for i in (0, 16))),
        (16, tuple(tuple(range(i, i + 8)) for i in (0, 8, 16, 24))),
    ),
)
_SM80 = frozenset({"gpu", "cuda", "sm_50", "sm_75", "sm_80", "mma", "ldmatrix", "cp_async", "groups"})
_SM89 = _SM80 | {"sm_89", "fp8"}
_SM90 = _SM89 | {"sm_90", "stmatrix", "tma", "mbarrier", "async_proxy", "cluster"}


def _chip(
    arch: str,
    product: str,
    *,
    multiprocessors: int,
    threads: int,
    shared: int,
    clock: float,
    bandwidth: float,
    l2: int,
    features: frozenset[str],
) -> Chip:
    """A chip whose `shared` bytes a multiprocessor leave 1 KiB to the driver for each block."""
    return Chip(
        arch=arch,
        product=product,
        warp=32,
        multiprocessors=multiprocessors,
        threads_per_block=1024,
        threads_per_multiprocessor=threads,
        registers=65536,
        thread_registers=255,
        shared_default=48 << 10,
        shared_per_block=shared - 1024,
        shared_per_multiprocessor=shared,
        reads=_BANKS,
        writes=_BANKS,
        features=features,
        clock=clock,
        bandwidth=bandwidth,
        l2=l2,
        source=_SOURCE,
    )


SM_80 = _chip(
    "sm_80",
    "A100 SXM 80 GB",
    multiprocessors=108,
    threads=2048,
    shared=164 << 10,
    clock=1.41e9,
    bandwidth=2.039e12,
    l2=40 << 20,
    features=_SM80,
)
SM_89 = _chip(
    "sm_89",
    "L40S",
    multiprocessors=142,
    threads=1536,
    shared=100 << 10,
    clock=2.52e9,
    bandwidth=0.864e12,
    l2=96 << 20,
    features=_SM89,
)
SM_90 = _chip(
    "sm_90",
    "H200",
    multiprocessors=132,
    threads=2048,
    shared=228 << 10,
    clock=1.83e9,
    bandwidth=4.8e12,
    l2=50 << 20,
    features=_SM90,
)
# The same product, compiled for this very architecture: only sm_90a has the warpgroup instructions.
SM_90A = replace(SM_90, arch="sm_90a", features=_SM90 | {"sm_90a", "wgmma", "setmaxnreg"})

CHIPS = (SM_80, SM_89, SM_90, SM_90A)
