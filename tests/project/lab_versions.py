"""JupyterLab, oldest and newest supported version, with the built extension and this Python's kernel.

    python -m tests.project.lab_versions 4.2 [FOLDER]    serve that version until Ctrl-C; prints its address

Tests use `lab_environment` and `serving`; a browser test opens `Server.address + "/lab/tree/NAME.ipynb"`.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import start
from tests.project.pins import ROOT

OLDEST, NEWEST = "4.2", "4.6"
VERSIONS = (OLDEST, NEWEST)


@dataclass(frozen=True)
class Server:
    """A JupyterLab that is running: its address without a slash, the token to add, and its version."""

    address: str
    token: str
    version: str

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page of this server."""
        request = urllib.request.Request(
            f"{self.address}/{path}", headers={"Authorization": f"token {self.token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def lab_environment(version: str, folder: Path) -> Path:
    """The Python of an environment with that JupyterLab ("4.2"), the extension and a kernel of this Python.

    The newest version is pinned by constraints.txt, so it is the running environment's own.
    """
    if version == NEWEST:
        start.place_lab_extension(Path(sys.prefix))
        return Path(sys.executable)
    python = start.make_venv(folder, None)
    kept = [
        line
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not re.match(r"jupyter[a-z]*[-=]|notebook", line)
    ]
    (folder / "constraints.txt").write_text("\n".join(kept), encoding="utf-8")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    start.run_pip(pip, ["-c", str(folder / "constraints.txt"), f"jupyterlab=={version}.*"])
    start.place_lab_extension(folder)
    kernel = folder / "share" / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return python


def cached_environment(version: str) -> Path:
    """That environment, made under .cache once for all tests. Raises CannotStart where pip cannot."""
    folder = ROOT / ".cache" / f"jupyterlab-{version}"
    ready = folder / "ready"
    if version != NEWEST and ready.exists() and ready.read_text(encoding="utf-8") == sys.executable:
        return start.venv_python(folder)
    python = lab_environment(version, folder)
    if version != NEWEST:
        ready.write_text(sys.executable, encoding="utf-8")
    return python


@contextmanager
def serving(python: Path, folder: Path, seconds: float = 90) -> Iterator[Server]:
    """Runs that environment's JupyterLab in the folder; ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = "tilelab"
    command = [
        *(str(python), "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port_retries=0"),
        *(f"--port={port}", f"--IdentityProvider.token={token}", "--ip=127.0.0.1"),
    ]
    log = folder / "jupyterlab.log"
    settings = {
        "JUPYTERLAB_SETTINGS_DIR": str(folder / ".settings"),
        "JUPYTER_RUNTIME_DIR": str(folder / ".run"),
    }
    paths = {"PYTHONPATH": os.pathsep.join(str(p) for p in (ROOT, ROOT / "visualizers", ROOT / "puzzles"))}
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=folder, stdout=stream, stderr=stream, env={**os.environ, **settings, **paths}
        )
        try:
            yield wait_for(
                Server(f"http://127.0.0.1:{port}", token, lab_version(python)), process, log, seconds
            )
        finally:
            process.terminate()
            process.wait(20)


def lab_version(python: Path) -> str:
    done = subprocess.run(
        [str(python), "-m", "jupyterlab", "--version"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def answers(server: Server) -> bool:
    try:
        return server.get("api")[0] == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def wait_for(server: Server, process: subprocess.Popen, log: Path, seconds: float) -> Server:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if answers(server):
            return server
        time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not answer in {seconds} s:\n{log.read_text()}")


def main(version: str, folder: str = "lab-version") -> int:
    base = Path(folder).absolute()
    base.mkdir(exist_ok=True)
    with serving(lab_environment(version, base / "venv"), base) as server:
        print(f"JupyterLab {server.version}: {server.address}/lab?token={server.token}", flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
