"""`tilelab doctor`: what is installed here, which targets compile and run, the cache, and settings that are
misspelt.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tilelab import settings
from tilelab.errors import TileError

__all__ = ["add"]

_PACKAGES = (
    "tilelab",
    "apache-tvm",
    "apache-tvm-ffi",
    "numpy",
    "torch",
    "cuda-python",
    "nvidia-cuda-nvrtc",
    "ziglang",
    "rocm-llvm-python",
    "jupyterlab",
    "matplotlib",
)


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("doctor", help="what is installed here and what works", allow_abbrev=False)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Print the findings; status 1 when something is wrong that stops even CPU kernels, or a setting is
    misspelt.
    """
    print(f"Python {platform.python_version()} on {platform.platform()}, {os.cpu_count()} processors")
    for name in _PACKAGES:
        print(f"  {name:<20} {_version(name)}")
    print("targets")
    wrong = _targets()
    print(f"cache        {_cache()}")
    print(f"JupyterLab   {_lab()}")
    print(f"viewers      {_viewers()}")
    strange = settings.unknown_variables()
    for message in strange:
        print(f"warning: {message}")
    for setting in settings.SETTINGS:
        if setting.variable in os.environ:
            print(f"setting      {setting.variable}={os.environ[setting.variable]}")
    return 1 if wrong or strange else 0


def _install(extra: str) -> str:
    """How this project is installed with an extra: from its checkout, as long as no index has it."""
    checkout = Path(__file__).parents[2]
    where = checkout if (checkout / "pyproject.toml").is_file() else "the checkout"
    return f"python -m pip install -e '.[{extra}]' in {where}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _targets() -> bool:
    """Print a line for each kind of target; gives whether the CPU does not work."""
    rows: tuple[tuple[str, Callable[[], str]], ...] = (("llvm", _cpu), ("cuda", _cuda), ("hip", _hip))
    wrong = False
    for name, look in rows:
        try:
            said = look()
        except (ImportError, OSError, RuntimeError, TileError) as error:
            said = f"does not work: {str(error).splitlines()[0]}"
            wrong = wrong or name == "llvm"
        print(f"  {name:<10} {said}")
    return wrong


def _cpu() -> str:
    from tilelab.codegen.llvm import threads
    from tilelab.ir.host import host_cpu

    return f"compiles and runs: {host_cpu().name}, {threads()} threads"


def _cuda() -> str:
    from tilelab.driver.execution import choose
    from tilelab.runtime.nvrtc import nvrtc_version
    from tilelab.targets import parse_target

    try:
        compiler = "NVRTC {}.{}".format(*nvrtc_version())
    except (ImportError, OSError, RuntimeError) as error:
        compiler = f"no NVRTC ({str(error).splitlines()[0]}); {_install('cuda')}"
    if nvcc := shutil.which("nvcc"):
        compiler += f"; nvcc in {nvcc}"
    where = choose(parse_target("cuda"))
    return f"{compiler}; sm_90a runs {where.doc}" + (f" ({where.reason})" if where.reason else "")


def _hip() -> str:
    from tilelab.driver.execution import choose
    from tilelab.runtime.hip_build import find_tool
    from tilelab.targets import parse_target

    tool = find_tool()
    compiler = tool.name if tool is not None else f"no compiler; {_install('hip')}"
    where = choose(parse_target("hip"))
    return f"{compiler}; gfx942 runs {where.doc}" + (f" ({where.reason})" if where.reason else "")


def _cache() -> str:
    from tilelab.runtime.cache import cache_folder, entries

    folder = cache_folder()
    if folder is None:
        return "off: kernels are kept in memory only"
    count, size = entries()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    writable = "" if os.access(existing, os.W_OK) else ", NOT WRITABLE"
    return f"{folder}: {count} entries, {size / 2**20:.1f} MiB{writable}"


def _lab() -> str:
    if importlib.util.find_spec("jupyterlab") is None:
        return f"not installed; {_install('lab')}"
    found = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "tilelab"
    return (
        f"extension found in {found}"
        if found.exists()
        else "the tilelab extension is not installed in this Python"
    )


def _viewers() -> str:
    from tilelab.cli.viewers import viewer

    return (
        "html and text views are installed"
        if viewer("html") and viewer("text")
        else "none installed: text only"
    )
