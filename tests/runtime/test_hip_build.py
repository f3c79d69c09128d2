"""Building HIP: what comes out, and what each kind of failure says."""

from __future__ import annotations

import importlib.util
import stat
import sys
from pathlib import Path

import pytest

from tilelab.errors import TileError
from tilelab.runtime.hip_build import build_hip, disassemble, find_tool

HEAD = 'extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void k'
COPY = HEAD + "(float* p, const float* q) { int i = __builtin_amdgcn_workitem_id_x(); p[i] = q[i]; }\n"
SPILLING = (
    HEAD
    + """(float* p, int n) {
  volatile float big[300];
  for (int i = 0; i < n; ++i) big[i % 300] = p[i];
  p[0] = big[n % 300];
}
"""
)


def test_build_gives_code_and_resources():
    binary = build_hip(COPY)
    assert binary.code_object[:4] == b"\x7fELF"
    (kernel,) = binary.resources
    assert kernel.name == "k"
    assert [a.name for a in kernel.arguments if not a.is_hidden] == ["p", "q"]
    assert kernel.vgprs > 0
    assert kernel.private_bytes == 0
    assert binary.seconds > 0


def test_build_is_reproducible():
    assert build_hip(COPY).code_object == build_hip(COPY).code_object


def test_options_reach_the_compiler():
    source = COPY.replace("p[i] = q[i]", "p[i] = q[i] * FACTOR")
    assert any(
        "v_mul_f32" in line for line in disassemble(build_hip(source, options=["-DFACTOR=3.5f"]).code_object)
    )


def test_listing_names_kernels_and_addresses():
    listing = disassemble(build_hip(COPY).code_object)
    assert listing[0] == "k:"
    assert any(line.endswith("s_endpgm") for line in listing)
    assert all(line.endswith(":") or line.startswith("  00") for line in listing)


def test_compile_error_names_the_generated_line():
    with pytest.raises(TileError) as caught:
        build_hip("\n\n" + COPY.replace("q[i]", "r[i]"))
    error = caught.value
    assert error.code == "TL404"
    assert "line 3 of the generated code" in error.message
    assert "use of undeclared identifier 'r'" in error.message
    assert error.places[0].line == 3
    # the rendered error shows the generated line with a caret under the name
    shown = str(error).splitlines()
    row = next(i for i, line in enumerate(shown) if "p[i] = r[i]" in line and line.startswith("3 |"))
    assert shown[row + 1].index("^") == shown[row].index("r[i]")


def test_error_of_the_code_generator_is_reported():
    body = "static __attribute__((shared)) float big[17500]; big[n] = 1; p[0] = big[n + 1];"
    source = f"{HEAD}(float* p, int n) {{ {body} }}\n"
    with pytest.raises(TileError) as caught:
        build_hip(source)
    assert caught.value.code == "TL404"
    assert "65536" in caught.value.message


def test_spills_are_refused_unless_allowed():
    with pytest.raises(TileError) as caught:
        build_hip(SPILLING)
    assert caught.value.code == "TL302"
    assert "kernel k" in caught.value.message
    assert build_hip(SPILLING, allow_spills=True).resources[0].private_bytes > 0


def test_missing_compiler_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ziglang" else find(name))
    with pytest.raises(TileError) as caught:
        build_hip(COPY)
    assert caught.value.code == "TL403"
    assert caught.value.help == "pip install 'tilelab[hip]'"


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for hipcc is a shell script")
def test_installed_hipcc_is_preferred(monkeypatch, tmp_path: Path):
    ours = build_hip(COPY).code_object
    (tmp_path / "ours.co").write_bytes(ours)
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n'
        f'for last in "$@"; do :; done\n/bin/cp {tmp_path}/ours.co "$last"\necho "a warning" >&2\n'
    )
    hipcc.chmod(hipcc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    binary = build_hip(COPY, options=["-DX"])
    assert binary.tool == "hipcc"
    assert binary.log == "a warning\n"
    assert binary.code_object == ours
    arguments = (tmp_path / "arguments").read_text().split()
    assert "--offload-arch=gfx942" in arguments
    assert "-DX" in arguments
    tool = find_tool()
    assert tool is not None
    assert tool.path == hipcc
