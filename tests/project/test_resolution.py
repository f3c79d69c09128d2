"""The pinned versions install on every supported system and Python.

uv resolves for a system other than the one it runs on, markers included, and gives each wheel's size
without downloading it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.project.pins import ROOT, tomllib

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# What uv calls a system, and whether the wheels of [cuda] and the disassembler of [hip] exist there.
SYSTEMS = {
    "x86_64-pc-windows-msvc": {"cuda-python", "nvidia-cuda-nvrtc"},
    "aarch64-apple-darwin": set(),
    "x86_64-unknown-linux-gnu": {"cuda-python", "nvidia-cuda-nvrtc", "rocm-llvm-python"},
    "aarch64-unknown-linux-gnu": {"cuda-python", "nvidia-cuda-nvrtc"},
}
OPTIONAL = set().union(*SYSTEMS.values())
LINUX = "x86_64-unknown-linux-gnu"
ALL_EXTRAS = ("cuda", "dev", "hip", "lab", "torch")
# The least that each can be, in bytes; a smaller wheel only keeps the name or downloads the rest later.
LEAST = {
    "apache-tvm": 30_000_000,
    "apache-tvm-ffi": 500_000,
    "numpy": 4_000_000,
    "nvidia-cuda-nvrtc": 20_000_000,
    "rocm-llvm-python": 20_000_000,
    "torch": 50_000_000,
    "ziglang": 50_000_000,
}
# torch-2.13.0+cpu for Linux x86-64, which is not on the package index, so its size is written here.
TORCH_CPU = 191_800_000


COURSE_EXTRAS = ("hip", "lab")


def resolve(system: str, python: str, extras: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess:
    """Writes the lock file of an install with the constraints on that system."""
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "-q", "pyproject.toml", "-c", "constraints.txt"),
        *("--python-platform", system, "--python-version", python, "--only-binary", ":all:"),
        *("--format", "pylock.toml", "-o", str(lock_file(system, python, extras, folder))),
        *(word for extra in extras for word in ("--extra", extra)),
    ]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    if "PIP_INDEX_URL" in os.environ:
        environment.setdefault("UV_DEFAULT_INDEX", os.environ["PIP_INDEX_URL"])
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=170)


def lock_file(system: str, python: str, extras: tuple[str, ...], folder: Path) -> Path:
    return folder / f"pylock.{system.replace('_', '-')}-{python.replace('.', '-')}-{len(extras)}.toml"


@pytest.fixture(scope="module")
def resolved(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str, tuple[str, ...]], dict[str, dict]]:
    """The packages of each install by name; all are resolved at once, since uv mostly waits for the index."""
    folder = tmp_path_factory.mktemp("locks")
    cases = [(system, python, ALL_EXTRAS) for python in PYTHONS for system in SYSTEMS]
    cases += [(LINUX, python, COURSE_EXTRAS) for python in PYTHONS]
    with ThreadPoolExecutor(len(SYSTEMS)) as pool:
        outcomes = dict(zip(cases, pool.map(lambda case: resolve(*case, folder), cases), strict=True))

    def packages(system: str, python: str, extras: tuple[str, ...]) -> dict[str, dict]:
        outcome = outcomes[system, python, extras]
        if outcome.returncode and "Failed to fetch" in outcome.stderr:
            pytest.skip("no package index answers")
        assert outcome.returncode == 0, outcome.stderr
        lock = tomllib.loads(lock_file(system, python, extras, folder).read_text(encoding="utf-8"))
        return {package["name"]: package for package in lock["packages"]}

    return packages


@pytest.mark.network
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_all_extras_resolve_to_real_wheels(system: str, python: str, resolved: Callable) -> None:
    found = resolved(system, python, ALL_EXTRAS)
    for name, package in found.items():
        assert package["wheels"], f"{name} has no wheel"
        assert package["wheels"][0]["size"] >= LEAST.get(name, 1000), f"{name} is a placeholder"
    assert found["apache-tvm"]["version"] == "0.27.0.post1"
    assert found["apache-tvm-ffi"]["version"] == "0.1.14.post1"
    assert found["torch"]["version"] == "2.13.0"
    assert OPTIONAL & found.keys() == SYSTEMS[system]


@pytest.mark.network
@pytest.mark.parametrize("python", PYTHONS)
def test_the_course_without_a_gpu_downloads_at_most_600_mb(python: str, resolved: Callable) -> None:
    found = resolved(LINUX, python, COURSE_EXTRAS)
    assert "torch" not in found
    total = sum(package["wheels"][0]["size"] for package in found.values()) + TORCH_CPU
    assert total <= 600e6
