"""All that needs a CUDA device, in one command: `python tests/gpu/run_all.py [--out FOLDER]`.

Says what the machine is, runs the GPU tests, tries compute-sanitizer, measures matmuls beside torch, and
prints a short table. Ends with status 1 when a test failed or a kernel was wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (512, 768, 1024))
SANITIZER_TOOLS = ("memcheck", "racecheck", "synccheck")
WRONG = 1e-2  # relative error that no rounding of float16 explains


def machine() -> str:
    """The device, its driver, and the tools, in one line."""
    from tests.gpu.running import architecture
    from tilelab.runtime.cuda_driver import cuda
    from tilelab.runtime.nvrtc import nvrtc_version

    device = cuda()
    name = device.call(device.api.cuDeviceGetName, 64, device.device)
    text = name.decode(errors="replace").strip("\0 ") if isinstance(name, bytes) else str(name)
    driver = device.call(device.api.cuDriverGetVersion)
    version = ".".join(map(str, nvrtc_version()))
    return (
        f"{text} ({architecture()}), driver for CUDA {driver // 1000}.{driver % 1000 // 10}, NVRTC {version}"
    )


def tests(out: Path | None, chosen: list[str]) -> int:
    """Run the GPU tests; the status of pytest."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "gpu",
        "tests/gpu",
        "-p",
        "no:cacheprovider",
        *chosen,
    ]
    if out is not None:
        command.append(f"--junitxml={out / 'gpu-tests.xml'}")
    return subprocess.run(command, cwd=ROOT).returncode


def sanitizer() -> list[str]:
    """One line a tool: clean, what it found, or why it could not run."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        return ["compute-sanitizer: not installed here"]
    lines = []
    for tool in SANITIZER_TOOLS:
        command = [
            found,
            "--report-api-errors",
            "no",
            "--tool",
            tool,
            "--error-exitcode",
            "9",
            sys.executable,
            "-m",
            "tests.gpu.sanitize",
        ]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            lines.append(f"compute-sanitizer {tool}: no end within 120 s")
            continue
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        if done.returncode == 0 and "done" in said:
            lines.append(f"compute-sanitizer {tool}: clean")
        else:
            why = next(
                (s for s in said if "ERROR SUMMARY" in s or "not supported" in s or "Error" in s), said[-1:]
            )
            lines.append(f"compute-sanitizer {tool}: status {done.returncode}: {why}")
    return lines


def compiled() -> dict[str, object]:
    """The matmul of the language, compiled through the whole pipeline; empty (and said so) while that
    fails.
    """
    from tests.kernels.matmul import matmul
    from tilelab.errors import InternalError, TileError

    try:
        import tilelab

        kernel = tilelab.jit(matmul)
        import torch

        tiny = torch.ones(128, 128, device="cuda", dtype=torch.float16)
        kernel(tiny, tiny)
        return {"tilelab": kernel}
    except (TileError, InternalError, AttributeError, ImportError) as error:
        print(f"the compiled matmul is left out: {type(error).__name__}: {error}")
        return {}


def main() -> int:
    """Run everything; 0 when all is right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for gpu-tests.xml and gpu.json")
    parser.add_argument("--no-benchmark", action="store_true")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    chosen = parser.parse_args()
    print(machine(), flush=True)
    status = tests(chosen.out, chosen.pytest)
    checked = sanitizer()
    print("\n".join(checked), flush=True)
    figures = []
    if not chosen.no_benchmark:
        from tests.gpu.benchmark import measure_matmuls

        figures = measure_matmuls(SHAPES, compiled())
        print(f"{'kernel':<16}{'M×N×K':<20}{'TFLOP/s':>9}{'of torch':>10}{'error':>10}")
        for f in figures:
            shape = "×".join(map(str, f.shape))
            print(f"{f.kernel:<16}{shape:<20}{f.tflops:>9.1f}{f.ratio:>10.3f}{f.error:>10.1e}")
    if chosen.out is not None:
        held = {
            "machine": machine(),
            "tests": status,
            "sanitizer": checked,
            "matmuls": [asdict(f) for f in figures],
        }
        (chosen.out / "gpu.json").write_text(json.dumps(held, indent=1))
    wrong = [f for f in figures if not f.error < WRONG]
    for f in wrong:
        print(f"WRONG: {f.kernel} at {f.shape}: relative error {f.error:.1e}")
    print("tests failed" if status else "tests passed")
    return 1 if status or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
