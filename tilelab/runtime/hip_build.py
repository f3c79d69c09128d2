"""Compile HIP C++ to code objects: with ROCm's hipcc where it is installed, else with the clang of `ziglang`.

The source must need no header. From the `ziglang` package the executable is called directly, first as
clang's own compiler stage and then as the linker: its driver cannot link for AMD GPUs. A kernel takes
about 0.2 s.
"""

from __future__ import annotations

import importlib.util
import linecache
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tilelab.errors import Place, TileError
from tilelab.hardware.amd import disassembler
from tilelab.hardware.amd.code_object import Kernel, read_code_object

__all__ = ["HipBinary", "Tool", "build_hip", "disassemble", "find_tool"]

_CODE_OBJECT_VERSION = "-mcode-object-version=5"
"""Version 5 is what ROCm 6.0 and later load; newer clangs would write version 6."""
_SHARED_OPTIONS = ("-std=c++17", "-O3", _CODE_OBJECT_VERSION, "-fhip-kernel-arg-name")
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$", re.M
)


@dataclass(frozen=True)
class HipBinary:
    """A compiled code object: bytes, each kernel's resources and arguments, tool, its warnings, seconds."""

    code_object: bytes
    resources: tuple[Kernel, ...]
    tool: str
    log: str
    seconds: float


@dataclass(frozen=True)
class Tool:
    """A compiler for code objects; `commands` takes path, arch, options, source and output."""

    name: str
    path: Path
    commands: Callable[[Path, str, Sequence[str], Path, Path], tuple[list[str], ...]]


def build_hip(
    source: str, arch: str = "gfx942", options: Sequence[str] = (), *, allow_spills: bool = False
) -> HipBinary:
    """Compile HIP C++ source for one architecture; `options` are added to the compiler's command line.

    Raises TL403 where no compiler is installed, TL404 with the generated line where the compiler refuses
    the source, and TL302 where a kernel spills registers to memory and `allow_spills` is false.
    """
    tool = find_tool()
    if tool is None:
        raise TileError(
            "TL403",
            f"no compiler for {arch}: neither hipcc nor the package ziglang is installed",
            help="pip install 'tilelab[hip]'",
        )
    started = perf_counter()
    with TemporaryDirectory(prefix="tilelab-hip-") as folder:
        text, output = Path(folder) / "kernel.hip", Path(folder) / "kernel.co"
        text.write_text(source, encoding="utf-8")
        log = ""
        for command in tool.commands(tool.path, arch, options, text, output):
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
            log += done.stderr
            if done.returncode != 0:
                raise _refusal(tool, source, done.stderr, done.returncode)
        code_object = output.read_bytes()
    kernels = read_code_object(code_object).kernels
    if not allow_spills:
        _check_spills(kernels)
    return HipBinary(code_object, kernels, tool.name, log, perf_counter() - started)


def find_tool() -> Tool | None:
    """The compiler that `build_hip` uses here, or None."""
    hipcc = shutil.which("hipcc")
    if hipcc:
        return Tool("hipcc", Path(hipcc), _hipcc_commands)
    found = importlib.util.find_spec("ziglang")
    for folder in (found.submodule_search_locations or ()) if found else ():
        zig = Path(folder) / ("zig.exe" if sys.platform == "win32" else "zig")
        if zig.exists():
            return Tool("ziglang", zig, _zig_commands)
    return None


def disassemble(code_object: bytes, arch: str = "gfx942") -> tuple[str, ...]:
    """The instructions of a code object as lines `address  text`, each kernel under its name.

    Raises TL403 where the disassembler is not installed.
    """
    entries = {kernel.entry: kernel.name for kernel in read_code_object(code_object).kernels}
    out: list[str] = []
    for line in disassembler.disassemble(code_object, arch):
        if line.pc in entries:
            out.append(f"{entries[line.pc]}:")
        out.append(f"  {line.pc:06x}  {line.text}")
    return tuple(out)


def _hipcc_commands(
    path: Path, arch: str, options: Sequence[str], source: Path, output: Path
) -> tuple[list[str], ...]:
    device_only = ("--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}")
    without_headers = ("-nogpuinc", "-nogpulib", "-nostdinc")
    command = [str(path), "-x", "hip", *device_only, *without_headers, *_SHARED_OPTIONS, *options]
    return ([*command, str(source), "-o", str(output)],)


def _zig_commands(
    path: Path, arch: str, options: Sequence[str], source: Path, output: Path
) -> tuple[list[str], ...]:
    middle = output.with_suffix(".o")
    target = ("-triple", "amdgcn-amd-amdhsa", "-target-cpu", arch, "-x", "hip", "-fcuda-is-device")
    # what the driver would add for device code: only kernels stay visible, the rest may be inlined away
    visibility = ("-fvisibility=hidden", "-fapply-global-visibility-to-externs")
    internal = ("-mllvm", "-amdgpu-internalize-symbols")
    compile_ = [str(path), "clang", "-cc1", *target, *_SHARED_OPTIONS, *visibility, *internal, *options]
    link = [str(path), "ld.lld", "-shared", "--no-undefined", str(middle), "-o", str(output)]
    return [*compile_, "-emit-obj", str(source), "-o", str(middle)], link


def _refusal(tool: Tool, source: str, log: str, status: int) -> TileError:
    """The compiler's first error, at its place in the generated source."""
    found = _DIAGNOSTIC.search(log)
    if not found:
        silent = log.strip() or f"exit status {status}"
        last = next((line for line in log.splitlines() if "error" in line), silent)
        return TileError("TL404", f"{tool.name} refused the generated code: {last}")
    name = f"<generated HIP {sha256(source.encode()).hexdigest()[:12]}>"
    # a cached file without a modification time is kept, so that the error can show the line
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    line, column = int(found["line"]), int(found["column"])
    text = linecache.getline(name, line).strip()
    return TileError(
        "TL404",
        f"{tool.name} refused line {line} of the generated code ({text}): {found['text']}",
        places=(Place(name, line, column),),
    )


def _check_spills(kernels: tuple[Kernel, ...]) -> None:
    for kernel in kernels:
        if kernel.private_bytes:
            raise TileError(
                "TL302",
                f"kernel {kernel.name} does not fit its registers: {kernel.private_bytes} bytes a lane go to "
                f"memory ({kernel.vgpr_spills} vector and {kernel.sgpr_spills} scalar registers spilled, "
                f"{kernel.vgprs} vector registers in use)",
                help="use smaller tiles, or more threads for the same tile",
            )
