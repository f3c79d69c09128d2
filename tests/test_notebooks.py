"""Notebooks run on a CPU, show themselves without running, and their exercises can be solved."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_WORDS = 40
MOST_BYTES = 600_000


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_notebook_runs_from_top_to_bottom(path: Path) -> None:
    pytest.importorskip("nbval")
    folders = os.pathsep.join(str(ROOT / name) for name in (".", "visualizers", "puzzles"))
    env = {**os.environ, "PYTHONPATH": folders, "TILELAB_TARGET": "", "MPLBACKEND": ""}
    env = {name: value for name, value in env.items() if value}
    options = ["--nbval-lax", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(path.parent), str(path)]
    done = subprocess.run(command, cwd=path.parent, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_outputs_show_themselves_without_running(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    numbers = [cell["execution_count"] for cell in cells(path, "code")]
    assert numbers == list(range(1, len(numbers) + 1)), "run from top to bottom before storing"
    outputs = [o for cell in cells(path, "code") for o in cell["outputs"]]
    assert outputs
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    for output in outputs:
        data = output.get("data", {})
        if any(kind.startswith("application/vnd.tilelab") for kind in data):
            assert {"text/html", "text/plain", "image/png"} <= set(data)
            assert "<script" not in "".join(data["text/html"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_prose_is_short_and_torch_is_not_needed(path: Path) -> None:
    for cell in cells(path, "markdown"):
        words = re.sub(r"<[^>]+>|^#.*$", " ", source(cell), flags=re.MULTILINE).split()
        assert len(words) <= MOST_WORDS, f"{len(words)} words: {source(cell)[:60]}…"
    assert not any("torch" in source(cell) for cell in cells(path, "code"))


def run_with(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str]) -> dict:
    """The names of a notebook after running its code as a script, with these replacements."""
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = "\n\n".join(source(cell) for cell in cells(path, "code"))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    script = tmp_path / f"{path.stem.lstrip('0123456789_')}.py"
    script.write_text(text, encoding="utf-8")
    return runpy.run_path(str(script))


def named(stem: str) -> Path:
    return next(p for p in NOTEBOOKS if p.stem.endswith(stem))


@pytest.mark.slow
def test_the_first_kernel_says_what_happened_and_its_exercise_can_be_solved(tmp_path, monkeypatch) -> None:
    wrong, right = "out[bx * block, by * block]", "out[by * block, bx * block]"
    names = run_with(named("first_kernel"), tmp_path, monkeypatch, (wrong, right))
    inputs = [(names["small"],), (names["picture"],), (names["ragged"],)]
    assert names["check"](names["paste"], lambda picture: picture, inputs)
    badges = names["badges"](names["matmul"], names["A"], names["B"])
    cpu, h100, mi300x = badges.rows
    kinds = {t: names["matmul"].compile(names["A"], names["B"], target=t).execution.kind
             for t in ("llvm", "cuda:sm_90a", "hip:gfx942")}  # fmt: skip
    assert cpu.status == "ran"
    assert (h100.status == "ran") == (kinds["cuda:sm_90a"] == "cuda")
    assert (mi300x.status == "emulated") == (kinds["hip:gfx942"] == "gfx942")
    assert len(names["broken"].races) >= 1


@pytest.mark.slow
def test_the_detective_of_the_passes_can_be_right(tmp_path, monkeypatch, capsys) -> None:
    names = run_with(named("see_the_passes"), tmp_path, monkeypatch)
    solution = {text: names["first_maker"](text) for text in names["answers"]}
    assert len(set(solution.values())) == len(solution), solution
    known = {step.name for step in names["passes"]}
    assert set(solution.values()) <= known
    assert solution["T.barrier"] == "insert_barriers"
    assert "0 of 4 so far" in capsys.readouterr().out


def test_the_padding_of_the_layouts_has_one_answer(tmp_path, monkeypatch, capsys) -> None:
    names = run_with(named("layouts"), tmp_path, monkeypatch, ("padding = 0", "padding = 2"))
    assert capsys.readouterr().out.rstrip().endswith("✓ solved")
    check = names["check"]
    assert [p for p in range(33) if check(p) == "✓ solved"] == [2]
    assert "is enough" in check(6)
    assert "multiple of four" in check(1)
