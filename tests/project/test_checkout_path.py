"""A checkout works from a path with a space and a Chinese character in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.pins import ROOT

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", "__pycache__", "node_modules", "tilelab-course", ".hypothesis"
)
# Installs as start.py does, but offline: what tilelab needs comes from the environment that runs the tests.
SET_UP = """
import subprocess, sys
from pathlib import Path
import start
venv = Path(sys.argv[1])
python = start.make_venv(venv, None)
pip = [str(python), "-m", "pip"]
start.run_pip(pip, ["--no-index", "--no-deps", "--no-build-isolation", "-e", "."])
start.make_importable(python, venv)
start.place_lab_extension(venv)
"""


def run(command: list, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if subprocess.run([sys.executable, "-c", "import hatchling"], capture_output=True).returncode:
        pytest.skip("hatchling is not installed: run the tests through start.py")
    folder = tmp_path_factory.mktemp("path") / "with space 瓦" / "tilelab"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    run([sys.executable, "-c", SET_UP, folder / ".venv"], folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def python_of(checkout: Path) -> Path:
    return checkout / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def test_tilelab_imports_from_the_checkout_wherever_python_runs(checkout: Path, tmp_path: Path) -> None:
    code = "import sys, tilelab; sys.stdout.write(list(tilelab.__path__)[0])"
    assert Path(run([python_of(checkout), "-c", code], tmp_path)) == checkout / "tilelab"


def test_a_garbled_path_file_is_repaired(checkout: Path, tmp_path: Path) -> None:
    (garbled,) = checkout.glob(".venv/**/site-packages/_*tilelab*.pth")
    text = garbled.read_bytes()
    imports = [python_of(checkout), "-c", "from tilelab import jit"]
    repair = "import start, sys; start.make_importable(*map(start.Path, sys.argv[1:]))"
    try:
        garbled.write_bytes(text.replace("瓦".encode(), b"?"))
        assert subprocess.run(imports, cwd=tmp_path, capture_output=True).returncode != 0
        run([sys.executable, "-c", repair, python_of(checkout), checkout / ".venv"], checkout)
        run(imports, tmp_path)
    finally:
        garbled.write_bytes(text)


def test_the_command_is_installed_and_knows_its_distribution(checkout: Path, tmp_path: Path) -> None:
    code = (
        "from importlib.metadata import entry_points; print(*(e.value for e in entry_points(name='tilelab')))"
    )
    assert run([python_of(checkout), "-c", code], tmp_path).split() == ["tilelab.cli:main"]


def test_jupyterlab_finds_the_extension_there(checkout: Path, tmp_path: Path) -> None:
    if not (checkout / "visualizers" / "labextension" / "prebuilt" / "package.json").exists():
        pytest.skip("this checkout has no built JupyterLab extension")
    code = (
        "from jupyter_core.paths import jupyter_path;"
        "from jupyterlab_server.config import get_federated_extensions;"
        "print(*get_federated_extensions(jupyter_path('labextensions')))"
    )
    assert "tilelab" in run([python_of(checkout), "-c", code], tmp_path).split()
