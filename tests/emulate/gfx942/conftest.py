"""Builds for the emulator's tests: HIP kernels of the folder `kernels`, and snippets of assembler."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tilelab.emulate.gfx942 import run
from tilelab.emulate.gfx942.decode import Instruction, program
from tilelab.hardware.amd.code_object import read_code_object
from tilelab.runtime.hip_build import build_hip, find_tool

KERNELS = Path(__file__).parent / "kernels"
S_NOP = (0xBF800000).to_bytes(4, "little")
SNIPPET = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl snippet
.p2align 8
.type snippet,@function
snippet:
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  v_lshlrev_b32_e32 v10, 4, v0
  v_lshlrev_b32_e32 v11, 3, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[2:5], v10, s[8:9]
  s_waitcnt vmcnt(0)
{body}
  global_store_dwordx2 v11, v[20:21], s[10:11]
  s_endpgm
.Lend:
.size snippet, .Lend-snippet
.rodata
.p2align 6
.amdhsa_kernel snippet
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_accum_offset 64
  .amdhsa_next_free_vgpr 128
  .amdhsa_next_free_sgpr 64
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: snippet
    .symbol: snippet.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 64
    .vgpr_count: 64
    .max_flat_workgroup_size: 1024
    .args:
      - {{ .name: source, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }}
      - {{ .name: target, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }}
...
.end_amdgpu_metadata
"""


@lru_cache(maxsize=64)
def _built(name: str, options: tuple[str, ...]) -> bytes:
    return build_hip((KERNELS / f"{name}.hip").read_text(), options=options).code_object


@pytest.fixture
def build() -> Callable[..., bytes]:
    """`build(name, *options)`: the code object of a kernel file, compiled once per session."""
    return lambda name, *options: _built(name, options)


@pytest.fixture
def assemble(tmp_path: Path) -> Callable[..., bytes]:
    """`assemble(body, lds=0)`: a kernel that loads v[2:5] of each lane, runs the body and stores v[20:21]."""

    def make(body: str, lds: int = 0) -> bytes:
        tool = find_tool()
        assert tool is not None
        (tmp_path / "s.s").write_text(SNIPPET.format(body=body, lds=lds))
        target = ["-triple", "amdgcn-amd-amdhsa", "-target-cpu", "gfx942", "-filetype", "obj"]
        for command in (
            ["clang", "-cc1as", *target, "s.s", "-o", "s.o"],
            ["ld.lld", "-shared", "s.o", "-o", "s.co"],
        ):
            done = subprocess.run([str(tool.path), *command], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return (tmp_path / "s.co").read_bytes()

    return make


@pytest.fixture
def snippet(assemble: Callable[..., bytes]) -> Callable[..., np.ndarray]:
    """`snippet(body, inputs, lds=0, threads=64)`: v[20:21] after the body, from inputs [threads, 4]."""

    def execute(body: str, inputs: np.ndarray, lds: int = 0, threads: int = 64) -> np.ndarray:
        source = np.zeros((threads, 4), np.uint32)
        source[:] = inputs.view(np.uint32)
        target = np.zeros((threads, 2), np.uint32)
        run(assemble(body, lds), "snippet", (1, 1, 1), (threads, 1, 1), [source, target])
        return target

    return execute


@pytest.fixture
def patch() -> Callable[..., bytes]:
    """`patch(code, chooses, words=None)`: overwrite each chosen instruction, by s_nop or by other words."""

    def change(
        code: bytes, chooses: Callable[[Instruction], bool], words: Callable[[bytes], bytes] | None = None
    ) -> bytes:
        out = bytearray(code)
        (segment,) = [s for s in read_code_object(code).segments if s.is_code]
        start = code.index(segment.data)
        chosen = [i for i in program(code).values() if chooses(i)]
        assert chosen, "nothing to patch"
        for instruction in chosen:
            at = start + instruction.pc - segment.address
            old = bytes(out[at : at + instruction.size])
            out[at : at + instruction.size] = words(old) if words else S_NOP * (instruction.size // 4)
        return bytes(out)

    return change
