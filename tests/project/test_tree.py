"""The tree keeps its shape: its top level, its layers, its formatting and its types."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.project.pins import ROOT

FOLDERS = {"tilelab", "puzzles", "notebooks", "visualizers", "tests", "docs"}
FILES = {"pyproject.toml", "start.py", "README.md", "Makefile", "LICENSE", "constraints.txt", "CHANGELOG.md"}


def tool(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


def tracked() -> list[str]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    command = ["git", "-c", "core.quotePath=false", "ls-files"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_top_level_holds_nothing_else() -> None:
    top = {name.split("/")[0] for name in tracked()}
    assert {name for name in top if not name.startswith(".")} <= FOLDERS | FILES


def test_no_file_is_larger_than_a_reader_would_want_to_clone() -> None:
    assert [name for name in tracked() if (ROOT / name).exists() and (ROOT / name).stat().st_size > 2e6] == []


@pytest.mark.parametrize("words", [["check", "."], ["format", "--check", "."]], ids=["lint", "format"])
def test_ruff_has_nothing_to_say(words: list[str]) -> None:
    done = subprocess.run([tool("ruff"), *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_types_fit() -> None:
    command = [tool("basedpyright"), "--pythonpath", sys.executable, "--level", "error"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_layers_import_downwards_only() -> None:
    done = subprocess.run([tool("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_tilelab_loads_neither_tvm_nor_torch() -> None:
    code = "import sys, tilelab; print([m for m in ('tvm', 'tvm_ffi', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("target", ["check", "test", "gpu", "docs", "lab", "fix"])
def test_make_knows_the_six_words(target: str) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make here")
    done = subprocess.run([make, "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in done.stdout.split():
        if word.endswith(".py"):
            assert (ROOT / word).exists(), f"make {target} runs {word}, which is not there"


def test_continuous_integration_runs_the_same_entry() -> None:
    assert "start.py test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
