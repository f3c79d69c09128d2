"""A JupyterLab server of a given version with nothing of the user's in it, and notebooks to open there."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import start
from tests.project.lab_versions import cached_environment
from tilelab_viz import display_data

ROOT = Path(__file__).parent.parent.parent
PREBUILT = ROOT / "visualizers" / "labextension" / "prebuilt"


def python_with_lab(version: str | None) -> Path:
    """A Python that has JupyterLab: this one, or one made under .cache for a named version."""
    if version is None:
        pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
        return Path(sys.executable)
    try:
        return cached_environment(version)
    except start.CannotStart as problem:
        pytest.skip(f"JupyterLab {version} could not be installed: {problem}")


class Server:
    """A running JupyterLab; `address` opens a notebook of `folder`."""

    def __init__(self, python: Path, home: Path) -> None:
        self.folder = home / "notebooks"
        self.folder.mkdir(parents=True)
        # This path goes before those of the environment, which may hold an older copy of the extension.
        first = home / "first"
        shutil.copytree(PREBUILT, first / "labextensions" / "tilelab")
        settings = home / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        quiet = {"fetchNews": "false", "checkForUpdates": False}
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = home / "server.log"
        paths = os.pathsep.join(str(ROOT / name) for name in (".", "visualizers", "puzzles"))
        places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        lab_places = {
            f"JUPYTERLAB_{name}_DIR": str(home / name.lower()) for name in ("SETTINGS", "WORKSPACES")
        }
        environment = {
            **os.environ,
            **places,
            **lab_places,
            "PYTHONPATH": paths,
            "JUPYTER_PATH": str(first),
            "IPYTHONDIR": str(home / "ipython"),
        }
        options = {
            "ServerApp.port": self.port,
            "ServerApp.root_dir": self.folder,
            "ServerApp.open_browser": False,
            "IdentityProvider.token": "",
            "ServerApp.allow_root": True,
            "LabApp.expose_app_in_browser": True,
            "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        with self.log.open("wb") as log:
            command = [str(python), "-m", "jupyterlab", *arguments]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 90
        while not self._answers():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.3)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api", timeout=5):
                return True
        except OSError:
            return False

    def address(self, notebook: str) -> str:
        """Where JupyterLab shows the notebook, in a workspace of its own."""
        return f"http://127.0.0.1:{self.port}/lab/workspaces/{Path(notebook).stem}/tree/{notebook}"

    def close(self) -> None:
        """Stop the server and its kernels."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


def write_notebook(path: Path, *cells: tuple[str, object]) -> None:
    """A saved notebook: for each cell its source, and the trace that it showed or None."""
    made = []
    for number, (source, payload) in enumerate(cells):
        outputs = []
        if payload is not None:
            data, metadata = display_data(payload)
            outputs = [{"output_type": "display_data", "data": data, "metadata": metadata}]
        cell = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "execution_count": None}
        made.append({**cell, "source": source, "outputs": outputs})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": made}
    path.write_text(json.dumps(book), encoding="utf-8")
