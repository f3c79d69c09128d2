"""The CPU that this process runs on, as TVM's LLVM sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import tvm

__all__ = ["HostCPU", "host_cpu"]


@dataclass(frozen=True)
class HostCPU:
    """LLVM's name of the CPU and the arch of the chip in `tilelab.hardware` that has its vectors."""

    name: str
    arch: str


@cache
def host_cpu() -> HostCPU:
    """The CPU of this machine; 128-bit vectors are assumed where LLVM reports nothing wider."""
    name = str(tvm.get_global_func("tvm.codegen.llvm.GetHostCPUName")())
    features = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    has = {str(feature) for feature, present in features.items() if bool(present)}
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= has:
        return HostCPU(name, "cpu-avx512")
    return HostCPU(name, "cpu-avx2" if {"avx2", "fma"} <= has else "cpu")
