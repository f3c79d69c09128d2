"""CUDA C++ to cubin without a GPU: resources, refusals with their places, the fallback, and the time it
takes.
"""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from tilelab.errors import TileError
from tilelab.runtime import nvrtc
from tilelab.trace.schema import Line

COPY = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] = 1.0f; }\n'
needs_nvrtc = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="cuda-python is not installed (no wheels for this system)",
)


@needs_nvrtc
def test_a_cubin_comes_with_its_kernels_resources():
    binary = nvrtc.build_cuda(COPY, "sm_80")
    assert binary.cubin[:4] == b"\x7fELF"
    (found,) = binary.resources
    assert (found.kernel, found.spill_stores, found.spill_loads, found.stack) == ("k", 0, 0, 0)
    assert 0 < found.registers <= 32
    assert found.is_clean
    assert binary.compiler.startswith("NVRTC")
    assert binary.slow_path == ""


@needs_nvrtc
def test_a_spill_is_seen():
    # 128 live values, kept from being folded by the loop's unknown length, in 32 registers.
    sums = "".join(f"float s{i} = a[{i}];" for i in range(128))
    adds = "".join(f"s{i} = s{i} * s{(i + 1) % 128} + 1.0f;" for i in range(128))
    out = "".join(f"a[{i}] = s{i};" for i in range(128))
    head = 'extern "C" __global__ void k(float* a, int n)'
    source = f"{head} {{ {sums} for (int i = 0; i < n; ++i) {{ {adds} }} {out} }}"
    (found,) = nvrtc.build_cuda(source, "sm_80", ["--maxrregcount=32"]).resources
    assert found.spill_stores > 0
    assert not found.is_clean


def test_complaints_about_matrix_instructions_are_kept():
    log = """ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async is serialized in 'k'
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 1024 bytes smem"""
    (found,) = nvrtc.read_resources(log)
    assert (found.registers, found.stack, found.spill_stores, found.spill_loads) == (168, 16, 8, 4)
    assert found.shared == 1024
    assert "C7510" in found.warnings[0]
    assert not found.is_clean


@needs_nvrtc
def test_a_refusal_names_the_generated_line_and_the_users():
    source = "// one\n" + COPY.replace("1.0f", "undefined_word")
    lines = (Line("// one"), Line(COPY, source=(17, 17)))
    with pytest.raises(TileError, match=r"undefined_word.*line 2 of the generated code") as caught:
        nvrtc.build_cuda(source, "sm_80", lines=lines, file="matmul.py")
    assert caught.value.code == "TL404"
    assert (caught.value.places[0].file, caught.value.places[0].line) == ("matmul.py", 17)


@needs_nvrtc
def test_a_refusal_below_a_line_directive_names_the_users_file():
    source = '#line 41 "attention.py"\n' + COPY.replace("1.0f", "undefined_word")
    with pytest.raises(TileError) as caught:
        nvrtc.build_cuda(source, "sm_80")
    assert (caught.value.places[0].file, caught.value.places[0].line) == ("attention.py", 41)


def _without_nvrtc(monkeypatch):
    def missing():
        raise ImportError("no module named cuda")

    monkeypatch.setattr(nvrtc, "nvrtc_version", missing)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
def test_nvcc_takes_over_and_says_why(monkeypatch):
    _without_nvrtc(monkeypatch)
    binary = nvrtc.build_cuda(COPY, "sm_80")
    assert binary.cubin[:4] == b"\x7fELF"
    assert binary.compiler.startswith("nvcc")
    assert "no module named cuda" in binary.slow_path
    assert binary.resources[0].kernel == "k"
    with pytest.raises(TileError, match="undefined_word") as caught:
        nvrtc.build_cuda(COPY.replace("1.0f", "undefined_word"), "sm_80")
    assert caught.value.code == "TL404"


def test_no_compiler_at_all_is_said_with_what_to_install(monkeypatch):
    _without_nvrtc(monkeypatch)
    monkeypatch.setattr(nvrtc.shutil, "which", lambda _: None)
    with pytest.raises(TileError) as caught:
        nvrtc.build_cuda(COPY, "sm_80")
    assert caught.value.code == "TL403"
    assert "tilelab[cuda]" in caught.value.help


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
def test_an_nvrtc_newer_than_the_driver_is_not_used(monkeypatch):
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: (13, 5))
    monkeypatch.setattr(nvrtc, "_driver_major", lambda: 12)
    binary = nvrtc.build_cuda(COPY, "sm_80")
    assert binary.compiler.startswith("nvcc")
    assert "newer than the driver" in binary.slow_path
