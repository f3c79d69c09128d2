"""Text of the disassembler becomes typed operands; nothing is dropped."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tilelab.emulate.gfx942.decode import ACCUMULATORS, EXEC, Instruction, Operand, program
from tilelab.emulate.gfx942.waits import parse_waitcnt


@pytest.fixture
def decode(assemble):
    """Decode a line of assembler, found behind the kernel's fixed start."""

    def one(text: str) -> Instruction:
        instructions = list(program(assemble(f"  {text}")).values())
        return instructions[6]

    return one


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("v_add_f32_e64 v5, -|v6|, s3", [Operand("v", 5), Operand("v", 6, 1, True, True), Operand("s", 3)]),
        ("v_add_f32_e64 v5, -v6, 0.5", [Operand("v", 5), Operand("v", 6, 1, True), Operand("float", 0.5)]),
        ("s_mov_b64 exec, -1", [Operand("s", EXEC, 2), Operand("integer", -1)]),
        ("v_mov_b32 v1, 0x12345", [Operand("v", 1), Operand("integer", 0x12345)]),
        ("s_movk_i32 s4, -3", [Operand("s", 4), Operand("integer", -3)]),
        ("s_cmpk_lg_u32 s4, 0xfffd", [Operand("s", 4), Operand("integer", 0xFFFD)]),
        ("v_accvgpr_write_b32 a7, v1", [Operand("v", ACCUMULATORS + 7), Operand("v", 1)]),
        ("ds_read_b128 v[8:11], v3", [Operand("v", 8, 4), Operand("v", 3)]),
        ("global_load_dword v1, v[2:3], off", [Operand("v", 1), Operand("v", 2, 2), Operand("off", 0, 0)]),
    ],
)
def test_operands(decode, text, operands):
    assert list(decode(text).operands) == operands


@pytest.mark.parametrize(
    ("text", "name", "modifiers"),
    [
        (
            "ds_read2st64_b64 v[4:7], v3 offset0:2 offset1:64",
            "ds_read2st64_b64",
            {"offset0": "2", "offset1": "64"},
        ),
        (
            "buffer_load_dword v1, v2, s[4:7], 0 offen offset:16",
            "buffer_load_dword",
            {"offen": "", "offset": "16"},
        ),
        ("global_load_dword v1, v[2:3], off offset:-8 nt", "global_load_dword", {"offset": "-8", "nt": ""}),
        (
            "v_mov_b32_dpp v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            "v_mov_b32",
            {"quad_perm": "[1,0,3,2]", "row_mask": "0xf", "bank_mask": "0xf"},
        ),
        ("v_mul_f32_e64 v1, v2, v3 clamp", "v_mul_f32", {"clamp": ""}),
    ],
)
def test_modifiers(decode, text, name, modifiers):
    found = decode(text)
    assert found.name == name
    assert found.modifiers == modifiers


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("s_waitcnt vmcnt(0)", (0, None)),
        ("s_waitcnt lgkmcnt(3)", (None, 3)),
        ("s_waitcnt vmcnt(17) lgkmcnt(0)", (17, 0)),
        ("s_waitcnt 0", (0, 0)),
        ("s_waitcnt vmcnt(63)", (None, None)),
    ],
)
def test_wait_counts(decode, text, counts):
    assert parse_waitcnt(decode(text)) == counts


def test_program_is_decoded_once_per_content(build):
    assert program(build("gemm")) is program(bytes(bytearray(build("gemm"))))


def test_every_instruction_of_the_kernels_is_decoded_without_gaps(build):
    instructions = sorted(program(build("gemm")).values(), key=lambda i: i.pc)
    assert all(a.pc + a.size == b.pc for a, b in pairwise(instructions))
    assert not [i for i in instructions for o in i.operands if o.kind == "text"]
