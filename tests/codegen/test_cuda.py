"""Device-stage kernels as CUDA C++: what is printed, and that NVRTC makes clean cubins of it without a
GPU.
"""

from __future__ import annotations

import linecache
import re
from functools import partial

import numpy as np
import pytest

from tests.codegen import kernels
from tilelab.codegen.cuda import Cuda, cuda_text
from tilelab.codegen.helpers import in_order
from tilelab.codegen.ptx_rows import helper_of_row, row_function
from tilelab.codegen.templates.cuda import CUDA_HELPERS
from tilelab.emulate import emulate
from tilelab.errors import InternalError
from tilelab.hardware import ROWS, row
from tilelab.hardware.model import Register, Shared
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.spans import at, make_span, place_of
from tilelab.ir.statements import each_statement
from tilelab.runtime.nvrtc import build_cuda

KERNELS = {
    "vector_add.float32": lambda: kernels.vector_add(),
    "vector_add.float16": lambda: kernels.vector_add("float16", 8),
    "vector_add.bfloat16": lambda: kernels.vector_add("bfloat16", 8),
    "vector_add.int8": lambda: kernels.vector_add("int8", 16),
    "vector_add.float64": lambda: kernels.vector_add("float64", 2),
    "mma_matmul.float16": lambda: kernels.mma_matmul(128, 128, 128),
    "mma_matmul.bfloat16": lambda: kernels.mma_matmul(128, 128, 128, "bfloat16", "float32"),
    "row_sums": kernels.row_sums,
    "histogram": kernels.histogram,
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_compiles_without_spills_or_complaints(name, arch):
    code = cuda_text(KERNELS[name]())
    binary = build_cuda(code.text, arch)
    (found,) = binary.resources
    assert found.kernel == code.entry
    assert found.registers > 0
    assert found.is_clean, binary.log
    assert "warning" not in binary.log


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_warp_specialised_wgmma_kernel_compiles_without_spills_or_complaints(dtype):
    code = cuda_text(kernels.wgmma_matmul(256, 512, 256, dtype))
    binary = build_cuda(code.text, "sm_90a")
    (found,) = binary.resources
    assert found.is_clean, binary.log
    assert "C75" not in binary.log
    # 65536 registers over 384 threads, in eights: what setmaxnreg shares out.
    assert found.registers == 168


@pytest.mark.parametrize("mode", ["late", "early"])
@pytest.mark.parametrize(
    "make", [kernels.mma_matmul, partial(kernels.wgmma_matmul, split=True)], ids=["mma", "wgmma"]
)
def test_what_is_printed_is_right_when_the_emulator_runs_it_freely(make, mode):
    m, n, k = 128, 256, 192
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float16)
    f = make(m, n, k)
    flat = len(f.params[0].shape) == 1
    emulate(f, [x.reshape(-1) if flat else x for x in (a, b, c)], mode=mode)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(c - wanted) / np.linalg.norm(wanted) < 2**-11


def test_a_role_a_warpgroup_is_printed_as_a_chain_and_compiles_clean(check_text):
    code = cuda_text(kernels.wgmma_matmul(256, 512, 256, split=True))
    check_text(
        code.text,
        """
# CHECK: if (warpgroup == 0) {  // producer
# CHECK: else if (warpgroup == 1) {  // consumer0
# CHECK: named_barrier(5, 128);
# CHECK: else {  // consumer1
# CHECK: named_barrier(9, 128);
""",
    )
    (found,) = build_cuda(code.text, "sm_90a").resources
    assert found.is_clean


def test_a_vector_that_is_only_moved_moves_as_one_word(check_text):
    size = 'A: T.Buffer((1024,), "float16"), C: T.Buffer((1024,), "float16")'
    f = kernels.function("copy", size, 128, "C[T.Ramp(tx * 8, 1, 8)] = A[T.Ramp(tx * 8, 1, 8)]")
    text = cuda_text(f).text
    check_text(text, "# CHECK: *(uint4*)(C + tx * 8) = *(const uint4*)(A + tx * 8);")
    assert "vec<" not in text


def test_arithmetic_on_vectors_goes_lane_by_lane_between_wide_accesses(check_text):
    code = cuda_text(kernels.vector_add("float16", 8))
    check_text(
        code.text,
        """
# CHECK: const vec<half, 8> [[A:v[0-9]+]] = *(const vec<half, 8>*)(A +
# CHECK: const vec<half, 8> [[B:v[0-9]+]] = *(const vec<half, 8>*)(B +
# CHECK: #pragma unroll
# CHECK-NEXT: for (int l = 0; l < 8; ++l) [[C:v[0-9]+]][l] = [[A]][l] + [[B]][l];
# CHECK-NEXT: *(vec<half, 8>*)(C +
""",
    )
    assert build_cuda(code.text, "sm_80").resources[0].is_clean


def test_matrix_rows_print_as_calls_of_small_helpers(check_text):
    check_text(
        cuda_text(kernels.mma_matmul(128, 128, 128)).text,
        """
# CHECK: DEV void mma_m16n8k16_f32_f16(float* d, const void* a, const void* b)
# CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
# CHECK: extern __shared__ __align__(1024) unsigned char pool[];
# CHECK: half* const B_shared = (half*)(pool + 24576);
# CHECK: #pragma unroll 1
# CHECK-NEXT: for (int ko = 0; ko < 4; ++ko)
# CHECK: cp_async_wait<1>();
# CHECK: __syncthreads();
# CHECK: ldmatrix_x4(A_local + i * 8,
# CHECK: ldmatrix_x4_trans(B_local + j * 8,
# CHECK: mma_m16n8k16_f32_f16(C_local + (i * 32 + j * 4), A_local + i * 8, B_local + j * 4);
# CHECK: pack_half(C +
""",
    )


def test_roles_print_as_branches_on_a_warp_uniform_index(check_text):
    code = cuda_text(kernels.wgmma_matmul(256, 512, 256))
    check_text(
        code.text,
        """
# CHECK: __launch_bounds__(384, 1) matmul(
# CHECK: const __grid_constant__ CUtensorMap A_map,
# CHECK: const int warpgroup = __shfl_sync(0xffffffffu, tx / 128, 0);
# CHECK: mbarrier_init(full + s, 1);
# CHECK: fence_mbarrier_init();
# CHECK: if (warpgroup == 0) {  // producer
# CHECK: set_max_registers_down<40>();
# CHECK: mbarrier_wait(empty + ko % 4, (ko / 4 % 2) ^ 1);
# CHECK: mbarrier_expect(full + ko % 4, 49152);
# CHECK: tma_load_2d(A_shared + ko % 4 * 8192, &A_map, full + ko % 4, ko * 64, by * 128);
# CHECK: else {  // consumers
# CHECK: set_max_registers_up<232>();
# CHECK: wgmma_fence();
# CHECK: wgmma_m64n256k16_f32_f16_ss_k_mn(C_local,
# CHECK: wgmma_wait<0>();
# CHECK-NEXT: wgmma_landed(C_local);
# CHECK: named_barrier(5, 256);
# CHECK: tma_store_2d(&C_map, C_shared +
""",
    )
    assert code.shared_bytes == 229440
    assert [p.kind for p in code.parameters] == ["tensor_map"] * 3
    maps = {p.name: p.tensor_map for p in code.parameters}
    assert maps["B_map"].box == (64, 64)
    assert maps["A_map"].box == (128, 64)
    assert maps["A_map"].swizzle_bytes == 128
    assert maps["B_map"].strides == ("512", "1")


def test_every_line_of_a_statement_has_its_source():
    f = kernels.mma_matmul(128, 128, 128)
    code = cuda_text(f)
    statements = [s for s in each_statement(f.body) if not isinstance(s, n.SeqStmt)]
    wanted = {place_of(s.span).line for s in statements if s.span is not None}
    printed = {line.source[0] for line in code.lines if line.source is not None}
    launch = {place_of(s.span).line for s in statements if isinstance(s, n.AttrStmt) and s.span is not None}
    assert len(wanted) > 30
    assert len(wanted & printed) >= 0.95 * len(wanted - launch)
    begin = next(i for i, line in enumerate(code.lines) if "C_local[128]" in line.text)
    body = [line for line in code.lines[begin:-1] if line.text.strip()]
    with_source = sum(line.source is not None for line in body)
    assert with_source >= 0.95 * len(body)
    assert "\n".join(line.text for line in code.lines) + "\n" == code.text


def _two_lines_of(path: str):
    one = b.buffer("A", (128,), "float32")
    tx = b.var("tx")
    with at(make_span(path, 1, 1, 1, 10)):
        first = b.store(one, b.load(one, [tx]) + b.const(1.0, "float32"), [tx])
    with at(make_span(path, 2, 2, 1, 10)):
        second = b.store(one, b.load(one, [tx]) * b.const(2.0, "float32"), [tx])
    return b.function(
        "k", [one], b.launch("threadIdx.x", tx, 128, b.seq(first, second)), stage="device", threads=128
    )


def test_the_users_line_stands_above_its_code(tmp_path, check_text):
    source = tmp_path / "kernel.py"
    source.write_text("A[i] += 1\nA[i] *= 2\n")
    linecache.checkcache(str(source))
    f = _two_lines_of(str(source))
    check_text(
        cuda_text(f).text,
        """
# CHECK: // kernel.py:1  A[i] += 1
# CHECK-NEXT: A[tx] = A[tx] + 1.0f;
# CHECK-NEXT: // kernel.py:2  A[i] *= 2
# CHECK-NEXT: A[tx] = A[tx] * 2.0f;
""",
    )
    directed = cuda_text(f, line_directives=True)
    assert f'#line 2 "{source}"' in directed.text
    assert build_cuda(directed.text, "sm_80", ["--generate-line-info"]).cubin


@pytest.mark.parametrize("name", CUDA_HELPERS)
def test_a_helper_compiles_alone(name):
    text = "\n".join(h.text for h in in_order([name], CUDA_HELPERS))
    binary = build_cuda(text + '\nextern "C" __global__ void k() {}\n', "sm_90a", ["--diag-suppress=177"])
    assert binary.cubin


def test_every_ptx_row_has_a_helper_that_assembles():
    helpers, calls = dict(CUDA_HELPERS), []
    for each in ROWS:
        if each.dialect != "ptx" or each.family == "tma":
            continue
        helpers[row_function(each)] = helper_of_row(each)
        words = []
        for name, operand in each.operands:
            if isinstance(operand, Register):
                words.append(
                    "(float*)registers" if name == "d" and each.family in ("wgmma", "mma") else "registers"
                )
            elif each.family == "wgmma":
                words.append("0ull")
            else:
                words.append("pool" if isinstance(operand, Shared) else "memory")
        words += ["true"] if each.family == "wgmma" else []
        calls.append(f"{row_function(each)}({', '.join(words)});")
    used = {call.partition("(")[0] for call in calls}
    text = "\n".join(h.text for h in in_order(used, helpers))
    text += '\nextern "C" __global__ void k(void* memory) {\n'
    text += "extern __shared__ unsigned char pool[]; alignas(16) float registers[128] = {};\n"
    text += "\n".join(calls) + "\n}\n"
    assert len(used) > 100
    assert build_cuda(text, "sm_90a").cubin


def test_every_row_of_memory_prints_and_compiles():
    rows = [r for r in ROWS if r.name.startswith(("ld.", "st."))]
    lines = ['L = T.alloc_buffer((16,), "uint8", scope="local")',
             'S = T.alloc_buffer((64,), "uint8", scope="shared.dyn")']  # fmt: skip
    for each in rows:
        size, outside = each.bytes, "S" if "shared" in each.name else "A"
        memory, held = f"{outside}[tx * {size}:tx * {size} + {size}]", f"L[0:{size}]"
        operands = f"{held}, {memory}" if each.family == "load" else f"{memory}, {held}"
        lines += [
            f'T.issue({operands}, row="{each.name}")',
            f'T.issue({operands}, tx < n, row="{each.name}")',
        ]
    assert len(rows) == 20
    f = kernels.function("k", 'A: T.Buffer((1024,), "uint8"), n: T.int32', 64, "\n".join(lines))
    assert build_cuda(cuda_text(f).text, "sm_80").resources[0].is_clean


def test_printing_compiles():
    f = kernels.function("k", 'C: T.Buffer((64,), "float16")', 64, 'T.print(C[0], message="50% of C")')
    text = cuda_text(f).text
    assert 'printf("50%% of C %f\\n", double(C[0]));' in text
    assert build_cuda(text, "sm_80").cubin


def test_a_row_without_printing_is_our_fault_and_named():
    f = kernels.function(
        "k", 'A: T.Buffer((16,), "float16")', 64, 'T.issue(A[0:8], A[8:16], row="ds_read_b128")'
    )
    with pytest.raises(InternalError, match="ds_read_b128"):
        cuda_text(f)
    f = kernels.function("k", 'A: T.Buffer((16,), "float16")', 64, "T.fill(A[0:16], T.float16(0))")
    with pytest.raises(InternalError, match="fill"):
        cuda_text(f)


EXPRESSIONS = [
    ("C[tx] = A[tx] // 4", "C[tx] = A[tx] >> 2;"),
    ("C[tx] = tx // 4", "C[tx] = tx / 4;"),
    ("C[tx] = A[tx] % 8", "C[tx] = A[tx] & 7;"),
    ("C[tx] = A[tx] // 3", "C[tx] = floor_div(A[tx], 3);"),
    ("C[tx] = A[tx] - (A[tx] - 3)", "C[tx] = A[tx] - (A[tx] - 3);"),
    ("C[tx] = (A[tx] + 1) * 2", "C[tx] = (A[tx] + 1) * 2;"),
    ("C[tx] = A[tx] * (A[tx] * 2)", "C[tx] = A[tx] * (A[tx] * 2);"),
    ("C[tx] = T.max(A[tx], 0)", "C[tx] = max_of(A[tx], 0);"),
    ("C[tx] = T.if_then_else(tx < 3 and A[tx] > 1, A[tx], -1)", "C[tx] = tx < 3 && A[tx] > 1 ? A[tx] : -1;"),
    ("C[tx] = T.Cast('int32', T.Cast('float16', A[tx]))", "C[tx] = int(half(A[tx]));"),
    ("C[tx] = T.bitwise_xor(A[tx], 3) * 8", "C[tx] = (A[tx] ^ 3) * 8;"),
    ("C[tx] = T.Select(A[tx] == 0, 1, 2)", "C[tx] = A[tx] == 0 ? 1 : 2;"),
]


@pytest.mark.parametrize(("statement", "printed"), EXPRESSIONS)
def test_an_expression_prints_readably_and_compiles(statement, printed):
    f = kernels.function("k", 'A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")', 64, statement)
    text = cuda_text(f).text
    assert printed in text, text
    assert build_cuda(text, "sm_80").cubin


@pytest.mark.parametrize(
    "word", ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "floor"]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_function_of_floats_compiles(word, dtype):
    tensors = f'A: T.Buffer((64,), "{dtype}"), C: T.Buffer((64,), "{dtype}")'
    f = kernels.function("k", tensors, 64, f"C[tx] = T.{word}(A[tx])")
    assert build_cuda(cuda_text(f).text, "sm_80").cubin


def test_eight_bit_floats_compute_in_float():
    text = cuda_text(kernels.vector_add("float8_e4m3fn", 16)).text
    assert "vec<float8_e4m3, 16>" in text
    assert build_cuda(text, "sm_90a").resources[0].is_clean


def test_a_guarded_vector_load_stays_behind_its_guard(check_text):
    tensors = 'A: T.Buffer((1024,), "float16"), C: T.Buffer((1024,), "float16"), n: T.int32'
    at = "T.Ramp(tx * 8, 1, 8)"
    body = f"C[{at}] = T.if_then_else(tx < n, A[{at}], T.Broadcast(T.float16(0), 8))"
    code = cuda_text(kernels.function("k", tensors, 128, body))
    check_text(
        code.text,
        """
# CHECK: if (tx < n) {
# CHECK-NEXT: const vec<half, 8> v{{[0-9]+}} = *(const vec<half, 8>*)(A +
# CHECK: else {
# CHECK: half(0.0f)
""",
    )
    assert build_cuda(code.text, "sm_80").resources[0].is_clean


def test_a_swizzle_prints_as_a_call(check_text):
    tensors = 'A: T.Buffer((64,), "float16")'
    layout = "S<3,3,3>o(8,64):(64,1)"
    body = f"""
S = T.alloc_buffer((8, 64), "float16", scope="shared.dyn", annotations={{"tl.layout": "{layout}"}})
S[tx // 8, tx % 8 * 8] = A[tx]
"""
    code = cuda_text(kernels.function("k", tensors, 64, body))
    check_text(code.text, "# CHECK: S[swizzle<3, 56>(tx / 8 * 64 + tx % 8 * 8)] = A[tx];")
    assert build_cuda(code.text, "sm_80").cubin


def test_a_kernels_names_do_not_hide_helpers():
    body = """
swizzle = T.alloc_buffer((1,), "int32", scope="local.var")
swizzle[0] = 3
C[tx] = swizzle[0] // C[tx]
"""
    text = cuda_text(kernels.function("k", 'C: T.Buffer((64,), "int32")', 64, body)).text
    assert "int swizzle_;" in text
    assert "floor_div(swizzle_, C[tx])" in text
    assert build_cuda(text, "sm_80").cubin


def test_names_that_cxx_has_taken_are_changed_and_scopes_end_with_loops():
    body = """
for half in T.serial(4):
    C[half] = 1
for half in T.serial(4):
    C[half] = 2
"""
    text = cuda_text(kernels.function("k", 'C: T.Buffer((64,), "int32")', 64, body)).text
    assert text.count("for (int half_ = 0; half_ < 4; ++half_)") == 2
    assert build_cuda(text, "sm_80").cubin


def test_dynamic_extents_become_scalars_and_an_expression_of_the_grid():
    n_rows = b.var("n")
    a, c = b.buffer("A", (n_rows,), "float32"), b.buffer("C", (n_rows,), "float32")
    bx, tx = b.var("bx"), b.var("tx")
    index = bx * 128 + tx
    inner = b.launch("threadIdx.x", tx, 128, b.if_(index < n_rows, b.store(c, b.load(a, [index]), [index])))
    f = b.function("k", [a, c], b.launch("blockIdx.x", bx, b.ceildiv(n_rows, 128), inner), stage="device")
    code = cuda_text(f)
    assert [(p.kind, p.name, p.index) for p in code.parameters] == [
        ("buffer", "A", 0), ("buffer", "C", 1), ("scalar", "n", None),
    ]  # fmt: skip
    assert eval(code.grid[0], {"n": 1021}) == 8
    assert build_cuda(code.text, "sm_80").cubin


def test_a_role_smaller_than_a_warp_is_tested_by_thread():
    body = """
with T.attr({"tl.group": "one:0:1"}):
    C[0] = 1
with T.attr({"tl.group": "rest:1:127"}):
    C[tx] = 2
"""
    text = cuda_text(kernels.function("k", 'C: T.Buffer((128,), "int32")', 128, body)).text
    assert re.search(r"if \(tx == 0\) \{  // one", text)
    assert re.search(r"else \{  // rest", text)


def test_dialect_names_every_type_that_rows_use():
    for each in ROWS:
        for _, operand in each.operands:
            if operand.dtype != "any" and each.dialect == "ptx":
                assert Cuda().type_name(operand.dtype)
    assert row("mma.m16n8k16.f32.f16").dialect == "ptx"
