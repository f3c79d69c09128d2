"""The JavaScript that is committed is what its sources give, and the TypeScript's own tests pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

VISUALIZERS = Path(__file__).parent.parent.parent / "visualizers"
OLDEST_NODE = 20  # what vitest 4 asks for


@pytest.fixture(scope="module")
def npm():
    """Runs one of the scripts of package.json; the build tools are installed first where they are missing."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed; only developers of the views need them")
    version = subprocess.run(["node", "--version"], text=True, capture_output=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        pytest.skip(f"the build tools need Node.js {OLDEST_NODE}, and this is {version.strip()}")
    run = {"cwd": VISUALIZERS, "text": True, "capture_output": True, "timeout": 600}
    if not (VISUALIZERS / "node_modules" / ".package-lock.json").exists():
        installed = subprocess.run(["npm", "ci"], **run)
        assert installed.returncode == 0, installed.stderr

    def script(name, **environment):
        done = subprocess.run(["npm", "run", "-s", name], env={**os.environ, **environment}, **run)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return script


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.slow
def test_a_fresh_build_is_what_is_committed(npm, tmp_path):
    npm("build", TILELAB_BUILD_OUT=str(tmp_path))
    for folder in ("tilelab_viz/static", "labextension/prebuilt"):
        assert files(tmp_path / folder) == files(VISUALIZERS / folder), (
            f"run `npm run build` in {VISUALIZERS.name}/"
        )


@pytest.mark.slow
def test_the_types_fit(npm):
    npm("check")


@pytest.mark.slow
def test_the_typescript_tests_pass(npm):
    npm("test")


def test_the_extension_loads_the_script_that_is_there():
    folder = VISUALIZERS / "labextension" / "prebuilt"
    build = json.loads((folder / "package.json").read_text(encoding="utf-8"))["jupyterlab"]["_build"]
    assert (folder / build["load"]).is_file()
    assert [p.name for p in (folder / "static").iterdir()] == [Path(build["load"]).name]


def test_built_scripts_are_small():
    scripts = [
        *VISUALIZERS.glob("tilelab_viz/static/*.js"),
        *VISUALIZERS.glob("labextension/prebuilt/static/*.js"),
    ]
    assert scripts
    assert max(p.stat().st_size for p in scripts) < 250_000


def test_the_lock_file_holds_no_download_addresses():
    lock = json.loads((VISUALIZERS / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for path, package in lock["packages"].items() if path)
