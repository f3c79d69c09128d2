"""CPUs, by the width of their vectors; the other figures stand for one core of a common server."""

from __future__ import annotations

from tilelab.hardware.model import Chip
from tilelab.layout import Banks

# A CPU has caches instead of banked shared memory: one bank as wide as any access, never a conflict.
_FLAT = Banks(1, 64, ((64, ((0,),)),))


def _cpu(arch: str, product: str, vector_bits: int) -> Chip:
    wide = {f"v{size}" for size in (128, 256, 512) if size <= vector_bits}
    return Chip(
        arch=arch,
        product=product,
        warp=1,
        multiprocessors=1,
        threads_per_block=1024,
        threads_per_multiprocessor=1024,
        # 32 vector registers, counted in 32-bit words.
        registers=vector_bits,
        thread_registers=vector_bits,
        shared_default=1 << 20,
        shared_per_block=1 << 20,
        shared_per_multiprocessor=1 << 20,
        reads=_FLAT,
        writes=_FLAT,
        features=frozenset({"cpu", *wide}),
        clock=3.0e9,
        bandwidth=20e9,
        l2=1 << 20,
        vector_bits=vector_bits,
        source="x86-64 and arm64 manuals; shared memory is a buffer that we bound at 1 MiB, an L2 cache",
    )


CPU = _cpu("cpu", "any CPU with 128-bit vectors", 128)
CPU_AVX2 = _cpu("cpu-avx2", "x86-64 with AVX2", 256)
CPU_AVX512 = _cpu("cpu-avx512", "x86-64 with AVX-512", 512)

CHIPS = (CPU, CPU_AVX2, CPU_AVX512)
