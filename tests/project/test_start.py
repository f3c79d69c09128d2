"""start.py: arguments, notebooks, what it decides to install, and when it has nothing to do."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import start


def options(*words: str) -> argparse.Namespace:
    return start.parse_arguments(list(words))[0]


# ---------------------------------------------------------------- arguments


def test_arguments_after_two_dashes_go_to_jupyterlab() -> None:
    parsed, passed = start.parse_arguments(["lab", "--", "--no-browser", "--port=9999"])
    assert (parsed.command, passed) == ("lab", ["--no-browser", "--port=9999"])


def test_pytest_arguments_need_no_dashes() -> None:
    assert start.parse_arguments(["test", "-k", "swizzle", "-x"])[1] == ["-k", "swizzle", "-x"]


def test_pytest_arguments_are_not_taken_for_abbreviations_of_ours() -> None:
    assert start.parse_arguments(["test", "--ve"])[1] == ["--ve"]


def test_own_options_stand_before_or_after_the_command() -> None:
    before, after = options("--wheelhouse", "w", "lab"), options("lab", "--wheelhouse", "w")
    assert before.wheelhouse == after.wheelhouse == Path("w")


def test_a_misspelt_option_of_lab_is_refused(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        start.parse_arguments(["lab", "--no-browser"])
    assert "after --" in capsys.readouterr().err


# ---------------------------------------------------------------- notebooks


@pytest.fixture
def notebooks(tmp_path: Path) -> tuple[Path, Path]:
    source = tmp_path / "notebooks"
    source.mkdir()
    (source / "01_first.ipynb").write_text("one")
    (source / "02_second.ipynb").write_text("two")
    return source, tmp_path / "tilelab-course"


def test_notebooks_are_copied_once(notebooks: tuple[Path, Path]) -> None:
    source, course = notebooks
    assert start.copy_notebooks(source, course) == ["new: 01_first.ipynb", "new: 02_second.ipynb"]
    assert start.copy_notebooks(source, course) == []
    assert (course / "01_first.ipynb").read_text() == "one"


def test_an_untouched_notebook_follows_ours(notebooks: tuple[Path, Path]) -> None:
    source, course = notebooks
    start.copy_notebooks(source, course)
    (source / "01_first.ipynb").write_text("one, second edition")
    assert start.copy_notebooks(source, course) == ["updated: 01_first.ipynb"]
    assert (course / "01_first.ipynb").read_text() == "one, second edition"


def test_an_edited_notebook_is_kept_while_ours_stays(notebooks: tuple[Path, Path]) -> None:
    source, course = notebooks
    start.copy_notebooks(source, course)
    (course / "01_first.ipynb").write_text("mine")
    assert start.copy_notebooks(source, course) == []
    assert (course / "01_first.ipynb").read_text() == "mine"
    assert not (course / "01_first.new.ipynb").exists()


def test_a_new_edition_is_put_beside_an_edited_notebook_once(notebooks: tuple[Path, Path]) -> None:
    source, course = notebooks
    start.copy_notebooks(source, course)
    (course / "01_first.ipynb").write_text("mine")
    (source / "01_first.ipynb").write_text("one, second edition")
    assert "01_first.new.ipynb" in start.copy_notebooks(source, course)[0]
    assert (course / "01_first.ipynb").read_text() == "mine"
    assert (course / "01_first.new.ipynb").read_text() == "one, second edition"
    assert start.copy_notebooks(source, course) == []


def test_a_notebook_that_was_there_before_us_is_never_overwritten(notebooks: tuple[Path, Path]) -> None:
    source, course = notebooks
    course.mkdir()
    (course / "01_first.ipynb").write_text("mine")
    start.copy_notebooks(source, course)
    assert (course / "01_first.ipynb").read_text() == "mine"


# ---------------------------------------------------------------- what to install


@pytest.mark.parametrize(
    ("words", "cuda", "offered", "taken"),
    [
        (("lab",), None, "cpu", True),
        (("lab",), None, "cuda", False),
        (("lab",), None, None, False),
        (("lab",), 13, "cuda", True),
        (("lab",), 12, "cuda", False),
        (("lab", "--torch", "yes"), None, "cuda", True),
        (("lab", "--torch", "no"), 13, "cpu", False),
        (("lab", "--torch-index", "url"), None, "cuda", True),
    ],
)
def test_torch_is_taken_where_it_is_small_or_a_driver_can_use_it(
    words: tuple[str, ...], cuda: int | None, offered: str | None, taken: bool
) -> None:
    decision, reason = start.choose_torch(options(*words), cuda, offered)
    assert decision is taken
    assert reason


@pytest.mark.parametrize(
    ("version", "requires", "system", "kind"),
    [
        ("2.13.0+cpu", [], "linux", "cpu"),
        ("2.13.0+cu126", [], "linux", "cuda"),
        ("2.13.0", ["filelock", "cuda-toolkit==13.0.3; platform_system == 'Linux'"], "linux", "cuda"),
        ("2.13.0", ["nvidia-cudnn-cu13; platform_system == 'Linux'"], "win32", "cpu"),
        ("2.13.0", ["filelock", "sympy"], "linux", "cpu"),
    ],
)
def test_a_cuda_build_of_torch_is_told_by_what_it_requires(
    version: str, requires: list[str], system: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert start.torch_kind(version, requires) == kind


def test_the_course_takes_the_cuda_compiler_only_with_a_driver() -> None:
    assert start.choose_extras("lab", None) == {"hip", "lab"}
    assert start.choose_extras("lab", 13) == {"cuda", "hip", "lab"}
    assert start.choose_extras("demo", 12) == {"cuda12", "hip"}


def test_the_tests_take_the_cuda_compiler_even_without_a_driver() -> None:
    assert "cuda" in start.choose_extras("test", None)


def test_an_old_driver_gets_constraints_without_cuda_13(tmp_path: Path) -> None:
    fitting = start.fitting_constraints(tmp_path, {"cuda12"}).read_text(encoding="utf-8")
    assert "cuda-python" not in fitting
    assert "apache-tvm==" in fitting


class Driver:
    """A CUDA driver library that answers as told."""

    def __init__(self, error: int, version: int) -> None:
        self.error, self.version = error, version

    def cuInit(self, flags: int) -> int:
        return self.error

    def cuDriverGetVersion(self, pointer: object) -> int:
        pointer._obj.value = self.version
        return 0


@pytest.mark.parametrize(("error", "version", "major"), [(0, 13010, 13), (0, 12040, 12), (100, 13010, None)])
def test_a_driver_counts_only_if_it_starts(
    error: int, version: int, major: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start.ctypes, "CDLL", lambda name: Driver(error, version))
    assert start.driver_cuda_version() == major


def test_a_missing_driver_library_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(start.ctypes, "CDLL", missing)
    assert start.driver_cuda_version() is None


# ---------------------------------------------------------------- setting up


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The extras of each install that set_up asks for; nothing is installed."""
    asked: list[set[str]] = []
    monkeypatch.setattr(start, "driver_cuda_version", lambda: None)
    monkeypatch.setattr(start, "make_venv", lambda venv, wanted: Path(sys.executable))
    monkeypatch.setattr(start, "install", lambda options, python, extras, cuda: asked.append(set(extras)))
    return asked


def test_a_second_start_installs_nothing(installs: list[set[str]], tmp_path: Path) -> None:
    for _ in range(2):
        start.set_up(options("lab", "--venv", str(tmp_path)))
    assert installs == [{"hip", "lab"}]


def test_a_command_that_needs_more_adds_it_and_keeps_the_rest(
    installs: list[set[str]], tmp_path: Path
) -> None:
    for command in ("lab", "test", "lab", "demo"):
        start.set_up(options(command, "--venv", str(tmp_path)))
    assert installs == [{"hip", "lab"}, {"cuda", "dev", "hip", "lab"}]


def test_changed_constraints_install_again(
    installs: list[set[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(start.ROOT / name, root)
    monkeypatch.setattr(start, "ROOT", root)
    venv = str(tmp_path)
    start.set_up(options("lab", "--venv", venv))
    (root / "constraints.txt").write_text("numpy==2.2.6\n")
    start.set_up(options("lab", "--venv", venv))
    assert len(installs) == 2


def test_a_failed_install_leaves_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise start.CannotStart("no network")

    monkeypatch.setattr(start, "make_venv", lambda venv, wanted: Path(sys.executable))
    monkeypatch.setattr(start, "install", fails)
    assert start.main(["lab", "--venv", str(tmp_path)]) == 1
    assert not (tmp_path / "tilelab-setup.json").exists()


def test_a_wheelhouse_is_the_only_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(start, "run_pip", lambda pip, arguments: asked.append(arguments))
    monkeypatch.setattr(start, "offered_torch", lambda pip, sources: None)
    monkeypatch.setattr(start, "make_importable", lambda python, venv: None)
    parsed = options("lab", "--venv", str(tmp_path), "--wheelhouse", str(tmp_path))
    start.install(parsed, Path(sys.executable), {"hip", "lab"}, None)
    for arguments in asked:
        assert ["--no-index", "--find-links", str(tmp_path)] == arguments[2:5]
    assert asked[-1][-2:] == ["-e", ".[hip,lab]"]


def test_a_python_outside_the_range_is_refused_by_name() -> None:
    with pytest.raises(start.CannotStart, match=r"needs Python 3\.10 to 3\.13; no-such-python"):
        start.choose_python("no-such-python")


@pytest.mark.parametrize(
    ("version", "accepted"), [((3, 9), False), ((3, 10), True), ((3, 13), True), ((3, 14), False)]
)
def test_python_is_accepted_from_3_10_to_3_13(
    version: tuple[int, int], accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "python_version", lambda program: version)
    if accepted:
        assert start.choose_python("python") == "python"
    else:
        with pytest.raises(start.CannotStart):
            start.choose_python("python")


# ---------------------------------------------------------------- running


def test_jupyterlab_opens_the_first_notebook_and_runs_as_root_when_root(tmp_path: Path) -> None:
    for name in ("02_b.ipynb", "01_a.ipynb", "01_a.new.ipynb"):
        (tmp_path / name).write_text("{}")
    command = start.lab_command(Path("py"), tmp_path, ["--no-browser"], is_root=True)
    assert command == ["py", "-m", "jupyterlab", "--no-browser", "--allow-root", "01_a.ipynb"]
    assert "--allow-root" not in start.lab_command(Path("py"), tmp_path, [], is_root=False)


def test_the_built_extension_is_put_where_jupyterlab_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "visualizers" / "labextension" / "prebuilt"
    built.mkdir(parents=True)
    (built / "package.json").write_text(json.dumps({"name": "tilelab"}))
    monkeypatch.setattr(start, "ROOT", tmp_path)
    placed = tmp_path / "venv" / start.LAB_EXTENSION / "package.json"
    start.place_lab_extension(tmp_path / "venv")
    assert json.loads(placed.read_text()) == {"name": "tilelab"}
    (built / "package.json").write_text(json.dumps({"name": "tilelab", "version": "2"}))
    start.place_lab_extension(tmp_path / "venv")
    assert json.loads(placed.read_text())["version"] == "2"


def test_packages_are_named_where_they_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(start.shutil, "which", lambda name: None)
    assert start.install_debian_packages(("chromium",), "the browser tests") is False
    assert "the browser tests needs chromium" in capsys.readouterr().out


def test_node_packages_are_installed_once_for_a_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess:
        (cwd / "node_modules").mkdir(exist_ok=True)
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(start.shutil, "which", lambda name: name)
    monkeypatch.setattr(start.subprocess, "run", run)
    (tmp_path / "package-lock.json").write_text("{}")
    start.install_node_packages(tmp_path)
    start.install_node_packages(tmp_path)
    assert len(ran) == 1
    (tmp_path / "package-lock.json").write_text('{"changed": true}')
    start.install_node_packages(tmp_path)
    assert len(ran) == 2
