"""Set up tilelab in a virtual environment and run one of: lab, demo, test.

    python3 start.py lab [-- JUPYTERLAB ARGUMENTS]    the course in JupyterLab
    python3 start.py demo                             one kernel on three targets, no browser
    python3 start.py test [PYTEST ARGUMENTS]          the tests

Needs Python 3.10 to 3.13 and nothing else; what it installs comes through pip, so pip's own settings
(PIP_INDEX_URL, PIP_CERT, HTTPS_PROXY, pip.conf) hold, and certificates come from the system's trust store.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import hashlib
import io
import json
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
OLDEST, NEWEST = (3, 10), (3, 13)
EXTRAS = {
    "demo": {"hip"},
    "lab": {"hip", "lab"},
    "test": {"cuda", "dev", "hip", "lab"},
}
COURSE = "tilelab-course"
COPIED = ".copied.json"
LAB_EXTENSION = Path("share", "jupyter", "labextensions", "tilelab")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_PACKAGES = ("chromium", "fonts-noto-cjk")
NODE_PACKAGES = ("nodejs", "npm")


class CannotStart(Exception):
    """Something that the person at the keyboard can put right; its text is all that is shown."""


# ---------------------------------------------------------------- arguments


def parse_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of this file, and the arguments for JupyterLab, the demo or pytest."""
    own, passed = argv, []
    if "--" in argv:
        cut = argv.index("--")
        own, passed = argv[:cut], argv[cut + 1 :]
    parser = argparse.ArgumentParser(
        prog="start.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=tuple(EXTRAS))
    parser.add_argument(
        "--venv", type=Path, default=ROOT / ".venv", metavar="DIR", help="default: .venv here"
    )
    parser.add_argument("--python", metavar="PROGRAM", help="the Python to set up; default: this one")
    parser.add_argument("--wheelhouse", type=Path, metavar="DIR", help="install from this folder, offline")
    parser.add_argument("--torch", choices=("auto", "yes", "no"), default="auto", help="default: auto")
    parser.add_argument("--torch-index", metavar="URL", help="an index with the build of torch to take")
    options, unknown = parser.parse_known_args(own)
    if unknown and options.command != "test":
        parser.error(f"not an option of start.py: {' '.join(unknown)} (put others' arguments after --)")
    return options, [*unknown, *passed]


# ---------------------------------------------------------------- Python and the virtual environment


def choose_python(wanted: str | None) -> str:
    """A Python between OLDEST and NEWEST: the wanted one, else this one, else one on PATH."""
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    for candidate in [wanted] if wanted else [sys.executable, *names]:
        if candidate and OLDEST <= (python_version(candidate) or (0, 0)) <= NEWEST:
            return candidate
    asked = f"{wanted} is not one" if wanted else f"this is {sys.version_info[0]}.{sys.version_info[1]}"
    raise CannotStart(f"tilelab needs Python 3.10 to 3.13; {asked}. Name one with --python PROGRAM.")


def python_version(program: str) -> tuple[int, int] | None:
    code = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = done.stdout.split()
    return int(major), int(minor)


def venv_python(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_venv(venv: Path, wanted: str | None) -> Path:
    """The Python of a virtual environment that has pip, made if it is not there yet."""
    python = venv_python(venv)
    if python.exists() and run_quietly([python, "-m", "pip", "--version"]):
        have = python_version(str(python))
        if wanted and have != python_version(wanted):
            raise CannotStart(f"{venv} has another Python than {wanted}: delete it or name another --venv")
        return python
    program = choose_python(wanted)
    print(f"making {venv}", flush=True)
    command = [program, "-m", "venv", "--clear", str(venv)]
    if not run_quietly(command):
        install_debian_packages(("python3-venv",), "a virtual environment")
        if not run_quietly(command):
            raise CannotStart(
                f"{program} -m venv fails: on Debian or Ubuntu, install the package python3-venv"
            )
    return python


def run_quietly(command: list) -> bool:
    return subprocess.run([str(part) for part in command], capture_output=True).returncode == 0


def install_debian_packages(packages: tuple[str, ...], purpose: str) -> bool:
    """Installs Debian packages when run as root where apt-get exists; otherwise names them."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if not (is_root and shutil.which("apt-get")):
        print(f"{purpose} needs {' '.join(packages)}: install it with your system's package manager")
        return False
    print(f"installing {' '.join(packages)} for {purpose}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            print(f"{' '.join(command)} failed: {done.stderr.strip()}")
            return False
    return True


# ---------------------------------------------------------------- what to install


def driver_cuda_version() -> int | None:
    """The major CUDA version that the NVIDIA driver here supports, or None without a working driver."""
    name = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return None
    version = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000


def choose_torch(options: argparse.Namespace, cuda: int | None, offered: str | None) -> tuple[bool, str]:
    """Whether to install torch, and why, in one line.

    `offered` is the kind of torch that pip would take: "cpu", "cuda", or None if it has none.
    """
    if options.torch != "auto":
        return options.torch == "yes", f"--torch {options.torch}"
    if options.torch_index:
        return True, "from the index given"
    if offered is None:
        return False, "pip finds no torch for this Python and system; kernels take NumPy arrays"
    if offered == "cpu":
        return True, "the CPU build"
    if cuda is None:
        return False, (
            "no NVIDIA driver here, and pip would take a CUDA build of several GB; kernels take NumPy"
            " arrays. For the CPU build: --torch-index URL, as PyTorch's install page gives it"
        )
    if cuda < 13:
        return False, (
            f"the driver stops at CUDA {cuda} and pip would take a build for 13; for one that fits it:"
            " --torch-index URL, as PyTorch's install page gives it"
        )
    return True, "the CUDA build"


def offered_torch(pip: list[str], sources: list[str]) -> str | None:
    """The kind of torch that pip would take here: "cpu", "cuda" or None. Downloads no wheel."""
    command = [*pip, "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report", "-"]
    command += ["--only-binary=:all:", *sources, "torch"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=ROOT)
    if done.returncode:
        return None
    metadata = json.loads(done.stdout)["install"][0]["metadata"]
    return torch_kind(metadata["version"], metadata.get("requires_dist", []))


def torch_kind(version: str, requires: list[str]) -> str:
    """Tells a CPU build of torch from a CUDA build by its version or by what it requires on this system."""
    if "+" in version:
        return "cpu" if version.endswith("+cpu") else "cuda"
    needs_cuda = any(line.startswith(("nvidia-", "cuda-")) for line in requires)
    return "cuda" if needs_cuda and sys.platform.startswith("linux") else "cpu"


def choose_extras(command: str, cuda: int | None) -> set[str]:
    """The extras of a command here: CUDA's where there is a driver, in the edition that fits it.

    Without a driver only the tests take them, which keeps what `lab` downloads below 600 MB.
    """
    extras = set(EXTRAS[command])
    if cuda is not None:
        extras = extras - {"cuda"} | {"cuda" if cuda >= 13 else "cuda12"}
    return extras


def fitting_constraints(venv: Path, extras: set[str]) -> Path:
    """The constraints file, less the lines for CUDA 13 where CUDA 12, pinned in pyproject.toml, is wanted."""
    if "cuda12" not in extras:
        return ROOT / "constraints.txt"
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    fitting = venv / "constraints.txt"
    kept = [line for line in lines if not line.startswith(("cuda-", "nvidia-"))]
    fitting.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return fitting


# ---------------------------------------------------------------- installing


def setup_key(options: argparse.Namespace, cuda: int | None) -> str:
    """Changes whenever the environment has to be brought up to date."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes().replace(b"\r\n", b"\n"))
    digest.update(repr((str(ROOT), options.torch, options.torch_index, cuda)).encode())
    return digest.hexdigest()


def set_up(options: argparse.Namespace) -> Path:
    """The Python of an environment that holds what the command needs; at once if nothing changed."""
    stamp, cuda = options.venv / "tilelab-setup.json", driver_cuda_version()
    key = setup_key(options, cuda)
    done = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
    python = make_venv(options.venv, options.python)
    extras, present = choose_extras(options.command, cuda), set(done.get("extras", ()))
    if done.get("key") != key or not extras <= present:
        stamp.unlink(missing_ok=True)
        extras |= present if done.get("key") == key else set()
        install(options, python, extras, cuda)
        stamp.write_text(json.dumps({"key": key, "extras": sorted(extras)}), encoding="utf-8")
    place_lab_extension(options.venv)
    return python


def install(options: argparse.Namespace, python: Path, extras: set[str], cuda: int | None) -> None:
    """Installs tilelab from this checkout, editable, with these extras and perhaps torch."""
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    sources = ["-c", str(fitting_constraints(options.venv, extras))]
    if options.wheelhouse:
        sources += ["--no-index", "--find-links", str(options.wheelhouse.resolve())]
    # pip takes certificates from the system's trust store since 24.2, so an older one goes first.
    run_pip(pip, [*sources, "pip>=24.2", "hatchling"])
    if options.torch_index:
        sources += ["--extra-index-url", options.torch_index]
    with_torch, reason = choose_torch(options, cuda, offered_torch(pip, sources))
    print(f"torch: {'taken' if with_torch else 'left out'} ({reason})", flush=True)
    wanted = f".[{','.join(sorted(extras | ({'torch'} if with_torch else set())))}]"
    print(f"installing tilelab{wanted[1:]} into {options.venv} (minutes, the first time)", flush=True)
    run_pip(pip, [*sources, "--no-build-isolation", "-e", wanted])
    make_importable(python, options.venv)


def run_pip(pip: list[str], arguments: list[str]) -> None:
    quiet = [] if sys.stdout.isatty() else ["-qq"]
    environment = dict(os.environ)
    bundle = ssl.get_default_verify_paths().cafile
    if bundle and not has_setting(pip, "cert") and pip_version(pip) < (24, 2):
        environment["PIP_CERT"] = bundle
    done = subprocess.run([*pip, "install", *quiet, *arguments], cwd=ROOT, env=environment)
    if done.returncode:
        raise CannotStart(
            "pip could not install (its words are above). Behind a proxy set HTTPS_PROXY, for a mirror"
            " PIP_INDEX_URL, for a certificate of your own PIP_CERT; offline use --wheelhouse DIR."
        )


def pip_version(pip: list[str]) -> tuple[int, ...]:
    done = subprocess.run([*pip, "--version"], capture_output=True, text=True, encoding="utf-8")
    return tuple(int(part) for part in done.stdout.split()[1].split(".")[:2])


def has_setting(pip: list[str], name: str) -> bool:
    done = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, encoding="utf-8")
    return f".{name}=" in done.stdout


def make_importable(python: Path, venv: Path) -> None:
    """Sees to it that the checkout's packages import from anywhere.

    Before 3.13 Python reads the .pth file of an editable install in the locale's encoding, which on
    Windows garbles a path outside it; a line of ASCII with escapes reads the same everywhere.
    """
    # A name of the package, since a folder of data files alone would import as a namespace.
    check = [str(python), "-c", "from tilelab import jit"]
    if subprocess.run(check, cwd=venv, capture_output=True).returncode == 0:
        return
    folders = [str(ROOT), str(ROOT / "visualizers"), str(ROOT / "puzzles")]
    where = "import sysconfig; print(ascii(sysconfig.get_path('purelib')))"
    done = subprocess.run([str(python), "-c", where], capture_output=True, text=True, check=True)
    target = Path(ast.literal_eval(done.stdout)) / "tilelab_checkout.pth"
    target.write_text(f"import sys; sys.path[:0] = {folders!a}\n", encoding="ascii")
    if subprocess.run(check, cwd=venv).returncode:
        raise CannotStart("tilelab was installed but does not import (the reason is above)")


def place_lab_extension(venv: Path) -> None:
    """Copies the built JupyterLab extension to where JupyterLab looks, if the two differ."""
    built, placed = ROOT / "visualizers" / "labextension" / "prebuilt", venv / LAB_EXTENSION
    if not built.is_dir():
        print("this checkout has no built JupyterLab extension; notebooks show pictures and text instead")
        return
    if contents(built) == contents(placed):
        return
    shutil.rmtree(placed, ignore_errors=True)
    shutil.copytree(built, placed)


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# ---------------------------------------------------------------- the commands


def copy_notebooks(source: Path, course: Path) -> list[str]:
    """Brings the course up to date and says what it did; a notebook that its reader changed is never touched.

    A new edition of such a notebook is put beside it as NAME.new.ipynb.
    """
    course.mkdir(parents=True, exist_ok=True)
    record = course / COPIED
    copied = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    said = []
    for ours in sorted(source.glob("*.ipynb")):
        theirs, edition = course / ours.name, sha256(ours)
        found = sha256(theirs) if theirs.exists() else None
        if found is None or (found == copied.get(ours.name) and found != edition):
            shutil.copyfile(ours, theirs)
            said.append(f"{'new' if found is None else 'updated'}: {ours.name}")
        elif found != edition and copied.get(ours.name) != edition:
            shutil.copyfile(ours, theirs.with_suffix(".new.ipynb"))
            said.append(f"kept your {ours.name}; the new edition is {theirs.stem}.new.ipynb")
        copied[ours.name] = edition
    record.write_text(json.dumps(copied, indent=1), encoding="utf-8")
    return said


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def lab_command(python: Path, course: Path, passed: list[str], is_root: bool) -> list[str]:
    """JupyterLab on the first notebook of the course, allowed to run as root where it would run as root."""
    command = [str(python), "-m", "jupyterlab", *passed]
    if is_root and "--allow-root" not in passed:
        command.append("--allow-root")
    names = sorted(path.name for path in course.glob("*.ipynb") if not path.name.endswith(".new.ipynb"))
    return command + names[:1]


def lab(python: Path, passed: list[str]) -> int:
    course = Path.cwd() / COURSE
    for line in copy_notebooks(ROOT / "notebooks", course):
        print(line)
    sys.stdout.flush()
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    command = lab_command(python, course, passed, is_root)
    os.chdir(course)
    if os.name != "nt":  # there, exec would give the prompt back while JupyterLab runs
        os.execv(command[0], command)
    return subprocess.call(command)


def demo(python: Path, passed: list[str]) -> int:
    return subprocess.call([str(python), "-m", "tilelab", "demo", *passed])


def test(python: Path, passed: list[str]) -> int:
    """Runs pytest, whose closing line is the last thing printed."""
    if not any(shutil.which(name) for name in BROWSERS):
        install_debian_packages(BROWSER_PACKAGES, "the browser tests")
    install_node_packages(ROOT / "visualizers")
    sys.stdout.flush()
    return subprocess.call([str(python), "-m", "pytest", *passed], cwd=ROOT)


def install_node_packages(folder: Path) -> None:
    """Installs what the JavaScript tests need, where the lock file is new and npm is there or can be had."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / ".tilelab-setup"
    npm = shutil.which("npm")
    if not lock.exists() or (stamp.exists() and stamp.read_text() == sha256(lock)):
        return
    if npm is None and install_debian_packages(NODE_PACKAGES, "the JavaScript tests"):
        npm = shutil.which("npm")
    if npm is None:
        print("without npm the JavaScript tests are skipped")
        return
    # Not `npm ci`, which refuses a lock file whose optional dependencies a registry does not hold.
    command = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=folder).returncode == 0:
        stamp.write_text(sha256(lock))
    else:
        print("npm install failed (its words are above); the JavaScript tests that need it will say so")


def main(argv: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    options, passed = parse_arguments(argv)
    options.venv = options.venv.absolute()
    try:
        python = set_up(options)
    except CannotStart as problem:
        print(f"start.py: {problem}", file=sys.stderr)
        return 1
    return {"lab": lab, "demo": demo, "test": test}[options.command](python, passed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
