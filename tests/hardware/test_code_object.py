"""Code objects: metadata, descriptors and disassembly of what the HIP build produces."""

from __future__ import annotations

import pytest

from tilelab.errors import InternalError
from tilelab.hardware.amd.code_object import read_code_object
from tilelab.hardware.amd.disassembler import disassemble
from tilelab.runtime.hip_build import build_hip

SOURCE = """
extern "C" __attribute__((global, amdgpu_flat_work_group_size(128, 128)))
void first(const float* x, float* y, int n, double scale) {
  static __attribute__((shared)) float tile[100];
  int t = __builtin_amdgcn_workitem_id_x();
  if (t < 100) tile[t] = x[t];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (t < n) y[t] = tile[99 - t] * scale;
}
extern "C" __attribute__((global)) void second(unsigned* p) { p[__builtin_amdgcn_workitem_id_x()] = 7; }
"""


@pytest.fixture(scope="module")
def code() -> bytes:
    return build_hip(SOURCE).code_object


def test_kernels_and_their_arguments(code):
    first, second = read_code_object(code).kernels
    shown = [a for a in first.arguments if not a.is_hidden]
    assert [(a.name, a.offset, a.size) for a in shown] == [
        ("x", 0, 8),
        ("y", 8, 8),
        ("n", 16, 4),
        ("scale", 24, 8),
    ]
    assert [a.is_pointer for a in shown] == [True, True, False, False]
    assert (first.name, second.name) == ("first", "second")


def test_resources(code):
    first, second = read_code_object(code).kernels
    assert first.lds_bytes == 400
    assert second.lds_bytes == 0
    assert first.private_bytes == 0
    assert first.max_workgroup_size == 128
    assert 1 <= first.vgprs <= 32


def test_entry_points_at_the_kernels_first_instruction(code):
    lines = {line.pc: line for line in disassemble(code)}
    for kernel in read_code_object(code).kernels:
        assert lines[kernel.entry].text.startswith("s_load_dword") or "v_" in lines[kernel.entry].text
    assert sum(line.text == "s_endpgm" for line in lines.values()) == 2


def test_unknown_kernel_lists_those_there_are(code):
    with pytest.raises(KeyError, match="first, second"):
        read_code_object(code).kernel("third")


def test_other_files_are_refused():
    with pytest.raises(InternalError, match="not an AMDGPU code object"):
        read_code_object(b"\x7fELF" + bytes(100))
