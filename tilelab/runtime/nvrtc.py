"""CUDA C++ to cubin: NVRTC through cuda-python, nvcc where NVRTC is missing; registers and spills read off
the log.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tilelab.errors import InternalError, Place, TileError
from tilelab.trace.schema import Line

__all__ = ["CudaBinary", "Resources", "build_cuda", "nvrtc_version", "read_resources"]

# -v makes ptxas print registers and spills. Nothing else is asked for: fast math would change what a kernel
# means.
_OPTIONS = ("--std=c++17", "--ptxas-options=-v")
_ERROR = re.compile(r"^(.*?)\((\d+)\): (?:catastrophic )?error[^:]*: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Resources:
    """What one kernel takes: registers a thread, bytes of spill stores and loads, stack and static shared
    memory.

    `warnings` are ptxas's C75xx lines: matrix instructions that were serialised, or register limits not met.
    """

    kernel: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    warnings: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing spilled and ptxas had no complaint."""
        return not (self.spill_stores or self.spill_loads or self.stack or self.warnings)


@dataclass(frozen=True)
class CudaBinary:
    """A cubin with the compiler's log; `compiler` names the tool and its version, `seconds` is its wall time.

    `slow_path` says why the preferred tool was not used, or is empty.
    """

    cubin: bytes
    log: str
    resources: tuple[Resources, ...]
    seconds: float
    compiler: str
    slow_path: str = ""


def build_cuda(
    source: str, arch: str, options: Sequence[str] = (), lines: Sequence[Line] = (), file: str = ""
) -> CudaBinary:
    """Compile for an architecture such as sm_90a.

    `lines` and `file` (the user's) let a refusal name the user's line. Raises TL403 when neither NVRTC nor
    nvcc is there, TL404 when the compiler refuses the source.
    """
    try:
        version = nvrtc_version()
    except (ImportError, OSError, RuntimeError) as error:
        return _with_nvcc(source, arch, options, lines, file, f"NVRTC cannot be used: {error}")
    limit = _driver_major()
    if limit is not None and version[0] > limit:
        why = f"NVRTC {version[0]}.{version[1]} is newer than the driver, which runs CUDA {limit}"
        return _with_nvcc(source, arch, options, lines, file, why)
    return _with_nvrtc(source, arch, options, lines, file, version)


def _nvrtc() -> Any:
    return import_module("cuda.bindings.nvrtc")


@cache
def nvrtc_version() -> tuple[int, int]:
    """NVRTC's version. Raises ImportError or RuntimeError when it is not there."""
    nvrtc = _nvrtc()

    status, major, minor = nvrtc.nvrtcVersion()
    if int(status) != 0:
        raise RuntimeError(str(status))
    return int(major), int(minor)


@cache
def _driver_major() -> int | None:
    """The newest CUDA major version that the installed driver runs; None without a driver."""
    import ctypes
    import sys

    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    return version.value // 1000 if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else None


def _with_nvrtc(
    source: str, arch: str, options: Sequence[str], lines: Sequence[Line], file: str, version: tuple[int, int]
) -> CudaBinary:
    nvrtc = _nvrtc()

    begin = time.perf_counter()
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    _check(status)
    flags = [f"--gpu-architecture={arch}".encode(), *(o.encode() for o in (*_OPTIONS, *options))]
    try:
        (refused,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
        log = log.strip("\0 \n")
        if int(refused) != 0:
            raise _refusal(log, source, lines, file)
        cubin = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    seconds = time.perf_counter() - begin
    return CudaBinary(cubin, log, read_resources(log), seconds, f"NVRTC {version[0]}.{version[1]}")


def _text(size_of: Any, get: Any, program: Any) -> bytes:
    status, size = size_of(program)
    _check(status)
    held = b" " * size
    _check(*get(program, held))
    return held


def _check(status: Any) -> None:
    if int(status) != 0:
        raise InternalError(f"NVRTC: {status}")


def _with_nvcc(
    source: str, arch: str, options: Sequence[str], lines: Sequence[Line], file: str, why: str
) -> CudaBinary:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise TileError(
            "TL403",
            "no compiler for CUDA was found: neither NVRTC nor nvcc",
            help=f"pip install 'tilelab[cuda]' ({why})",
        )
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tilelab-") as folder:
        (Path(folder) / "kernel.cu").write_text(source)
        command = [nvcc, "-cubin", f"-arch={arch}", *_OPTIONS, *options, "kernel.cu", "-o", "kernel.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        log = (done.stdout + done.stderr).strip()
        if done.returncode != 0:
            raise _refusal(log, source, lines, file)
        cubin = (Path(folder) / "kernel.cubin").read_bytes()
    return CudaBinary(cubin, log, read_resources(log), time.perf_counter() - begin, _nvcc_version(nvcc), why)


@cache
def _nvcc_version(nvcc: str) -> str:
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"release (\S+),", said)
    return f"nvcc {found[1]}" if found else "nvcc"


def _refusal(log: str, source: str, lines: Sequence[Line], file: str) -> TileError:
    found = _ERROR.search(log)
    if found is None:
        first = log.splitlines()[0] if log else "without a word"
        return TileError("TL404", f"the CUDA compiler refused the generated code: {first}")
    name, number, message = found[1], int(found[2]), found[3]
    text, places = "", ()
    if not name.endswith("kernel.cu"):
        # A #line directive stands above: the compiler speaks of the user's own line.
        places = (Place(name, number),)
    elif number <= len(source.splitlines()):
        text = f" (line {number} of the generated code: {source.splitlines()[number - 1].strip()})"
        where = lines[number - 1].source if number <= len(lines) else None
        places = (Place(file, where[0], end_line=where[1]),) if where is not None and file else ()
    return TileError(
        "TL404",
        message + text,
        places=places,
        help="this is a fault of tilelab's printer: please report the kernel",
    )


def read_resources(log: str) -> tuple[Resources, ...]:
    """Registers, spills and complaints of each kernel, from what `ptxas -v` printed."""
    complaints = tuple(line.strip() for line in log.splitlines() if re.search(r"\bC75\d\d\b", line))
    parts = re.split(r"Compiling entry function '", log)[1:]
    return tuple(_resources(part, complaints) for part in parts)


def _resources(part: str, complaints: tuple[str, ...]) -> Resources:
    def number(pattern: str) -> int:
        found = re.search(pattern, part)
        return int(found[1]) if found else 0

    return Resources(
        part.partition("'")[0],
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes spill stores"),
        number(r"(\d+) bytes spill loads"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes smem"),
        complaints,
    )
