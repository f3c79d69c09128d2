"""Every PTX row's text is accepted by NVIDIA's assembler, every HIP row's by clang for gfx942."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilelab.hardware import ROWS, Global, Instruction, Register, Shared

PARAMETERS = (
    "float* out, unsigned long long map, unsigned long long where, unsigned long long box, "
    "unsigned at, unsigned n, int x, int y"
)
FIELDS = {"bytes": ("r", "n"), "scale": ("r", "n"), "barrier": ("r", "at"), "map": ("l", "map")}


def arguments(row: Instruction, name: str, operand: object) -> list[tuple[str, str]]:
    """The asm constraints and expressions that stand for an operand."""
    if isinstance(operand, Register):
        letter = "f" if operand.dtype == "float32" else "r"
        return [("+" * (name == "d") + letter, f"{name}[{i}]") for i in range(operand.registers)]
    if row.family == "wgmma":
        return [("l", "box")]
    if isinstance(operand, Global):
        return [("r", "x"), ("r", "y")] if row.family == "tma" else [("l", "where")]
    assert isinstance(operand, Shared)
    return [("r", "at")]


def ptx_kernel(row: Instruction, number: int) -> str:
    """A kernel that executes the row once, written from the row alone."""
    parts = [(name, operand, arguments(row, name, operand)) for name, operand in row.operands]
    parts += [(name, None, [FIELDS[name]]) for name in row.fields]
    results = [part for part in parts if part[0] == "d" and isinstance(part[1], Register)]
    ordered = results + [part for part in parts if part not in results]
    names, count = {}, 0
    for name, operand, values in ordered:
        text = ", ".join(f"%{count + i}" for i in range(len(values)))
        names[name] = f"{{{text}}}" if isinstance(operand, Register) or len(values) > 1 else text
        count += len(values)
    before = after = ""
    if "scale" in names:
        before, after = f"{{ .reg .pred p; setp.ne.b32 p, {names['scale']}, 0; ", " }"
        names["scale"] = "p"
    declared = "".join(
        f"{'float' if operand.dtype == 'float32' else 'unsigned'} {name}[{operand.registers}] = {{}};"
        for name, operand in row.operands
        if isinstance(operand, Register)
    )
    written = ", ".join(f'"{c}"({e})' for _, _, values in results for c, e in values)
    read = ", ".join(f'"{c}"({e})' for part in ordered if part not in results for c, e in part[2])
    used = "".join(f"for (int i = 0; i < {len(p[2])}; ++i) out[i] = d[i];" for p in results)
    text = before + row.text.format(**names) + after
    body = f'{declared} asm volatile("{text}" : {written} : {read} : "memory"); {used}'
    return f"__global__ void k{number}({PARAMETERS}) {{ {body} }}"


@pytest.mark.parametrize(
    ("needs", "arch"), [("sm_75", "sm_80"), ("sm_80", "sm_80"), ("sm_90", "sm_90"), ("sm_90a",) * 2]
)
def test_ptx_texts_assemble(needs, arch):
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra [cuda]")
    rows = [row for row in ROWS if row.dialect == "ptx" and row.needs == needs]
    if needs == "sm_90a":
        rows = rows[::5]
    assert rows
    source = "\n".join(ptx_kernel(row, number) for number, row in enumerate(rows))
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"rows.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={arch}".encode()])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert int(status) == 0, log.decode()


HIP_TYPES = """
typedef unsigned u32; typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef _Float16 float16x4 __attribute__((ext_vector_type(4)));
typedef short bfloat16x4 __attribute__((ext_vector_type(4)));
typedef float float32x4 __attribute__((ext_vector_type(4)));
typedef float float32x16 __attribute__((ext_vector_type(16)));
"""
WORDS = {1: "unsigned char", 2: "unsigned short", 4: "u32", 8: "u32x2", 16: "u32x4"}


def hip_type(operand: Register) -> str:
    return WORDS[operand.values] if operand.dtype == "uint8" else f"{operand.dtype}x{operand.values}"


def hip_kernel(row: Instruction, number: int) -> str:
    """A kernel that executes the row once on values it reads from memory, written from the row alone."""
    place = {Shared: "shared", Global: "offset" if "resource" in row.fields else "memory"}
    names = {
        name: name if isinstance(operand, Register) else place[type(operand)]
        for name, operand in row.operands
    }
    registers = [(name, o) for name, o in row.operands if isinstance(o, Register)]
    # An address of the lane's own keeps the compiler from using scalar loads.
    declared = "memory += 1024 * __builtin_amdgcn_workitem_id_x();" + "".join(
        f"{hip_type(o)} {n} = *({hip_type(o)}*)(memory + {64 * i});" for i, (n, o) in enumerate(registers)
    )
    if "resource" in row.fields:
        declared += "auto resource = __builtin_amdgcn_make_buffer_rsrc(memory, 0, n, 0x00027000);"
    used = "".join(f"*({hip_type(o)}*)(memory + 256) = {n};" for n, o in registers if n == "d")
    body = f"{declared} {row.text.format(**names, resource='resource')} {used}"
    return (
        f'extern "C" __attribute__((global)) void k{number}(char* memory, u32 offset, u32 n) '
        f"{{ __attribute__((shared)) static u32x4 tile[64]; char* shared = (char*)(tile + offset); {body} }}"
    )


def test_hip_texts_compile_for_gfx942(tmp_path):
    pytest.importorskip("ziglang", reason="needs the extra [hip]")
    rows = [row for row in ROWS if row.dialect == "hip"]
    assert len(rows) > 30
    source = tmp_path / "rows.hip"
    source.write_text(HIP_TYPES + "\n".join(hip_kernel(row, number) for number, row in enumerate(rows)))
    options = (
        "-triple amdgcn-amd-amdhsa -target-cpu gfx942 -x hip -fcuda-is-device -std=c++17 -O1 -S -o rows.s"
    )
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-cc1", *options.split(), str(source)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "rows.s").read_text()
    for mnemonic in (
        "v_mfma_f32_32x32x8_f16",
        "v_mfma_f32_32x32x8_bf16",
        "v_mfma_f32_16x16x16_f16",
        "v_mfma_f32_16x16x16_bf16",
        *("buffer_load_dwordx4", "buffer_store_dwordx4", "buffer_load_ubyte", "global_load_dwordx4"),
    ):
        assert mnemonic in made
