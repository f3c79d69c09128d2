"""Writes the traces that the view's tests read, and the sample in `tilelab_viz`: `python make_fixtures.py`.

The programs are written down here stage by stage; line numbers of the source stand behind `#@`. Everything goes
through the dataclasses of `tilelab.trace.schema`, so a fixture cannot drift from the schema.
"""

# ruff: noqa: E501 -- programs are shown as they would be printed

from __future__ import annotations

import json
import sys
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from tilelab.trace.schema import Code, Hit, Line, Note, Source, Step, TracePayload, to_json
from tilelab_viz.compact import encode

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FIXTURES = HERE / "fixtures"
SAMPLE = ROOT / "visualizers" / "tilelab_viz" / "sample_matmul.json"

SOURCE = """\
@tilelang.jit
def matmul(A, B, block_M=128, block_N=128, block_K=32):
    M, K = A.shape
    K, N = B.shape
    C = T.empty((M, N), A.dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C
"""

PARSED = """\
@T.prim_func                                                       #@ 2
def matmul(A_handle: T.handle, B_handle: T.handle, C_handle: T.handle):  #@ 2
    A = T.match_buffer(A_handle, (512, 1024), "float16")           #@ 3
    B = T.match_buffer(B_handle, (1024, 768), "float16")           #@ 4
    C = T.match_buffer(C_handle, (512, 768), "float16")            #@ 5
    bx = T.launch_thread("blockIdx.x", T.ceildiv(768, 128))        #@ 6
    by = T.launch_thread("blockIdx.y", T.ceildiv(512, 128))        #@ 6
    tx = T.launch_thread("threadIdx.x", 128)                       #@ 6
    A_shared = T.alloc_buffer((128, 32), "float16", scope="shared")    #@ 7
    B_shared = T.alloc_buffer((32, 128), "float16", scope="shared")    #@ 8
    C_local = T.alloc_buffer((128, 128), "float32", scope="fragment")  #@ 9
    T.tile.fill(C_local[0:128, 0:128], T.float32(0))               #@ 10
    for ko in T.serial(T.ceildiv(1024, 32), annotations={"num_stages": 3}):  #@ 11
        T.tile.copy(A_shared[0:128, 0:32], A[by * 128:by * 128 + 128, ko * 32:ko * 32 + 32])  #@ 12
        T.tile.copy(B_shared[0:32, 0:128], B[ko * 32:ko * 32 + 32, bx * 128:bx * 128 + 128])  #@ 13
        T.tile.gemm(C_local[0:128, 0:128], A_shared[0:128, 0:32], B_shared[0:32, 0:128])      #@ 14
    T.tile.copy(C[by * 128:by * 128 + 128, bx * 128:bx * 128 + 128], C_local[0:128, 0:128])   #@ 15
"""

PIPELINED = """\
    full = T.alloc_channel(A_shared, B_shared, depth=3, transport="cp.async")  #@ 11
    for s in T.unroll(2):                                          #@ 11
        T.channel.acquire(full, s)
        T.tile.copy(A_shared[s, 0:128, 0:32], A[by * 128:by * 128 + 128, s * 32:s * 32 + 32])  #@ 12
        T.tile.copy(B_shared[s, 0:32, 0:128], B[s * 32:s * 32 + 32, bx * 128:bx * 128 + 128])  #@ 13
        T.channel.commit(full, s)
    for ko in T.serial(32):                                        #@ 11
        T.channel.wait(full, ko % 3)
        T.tile.gemm(C_local[0:128, 0:128], A_shared[ko % 3, 0:128, 0:32], B_shared[ko % 3, 0:32, 0:128])  #@ 14
        T.channel.release(full, ko % 3)
        if ko + 2 < 32:                                            #@ 11
            T.channel.acquire(full, (ko + 2) % 3)
            T.tile.copy(A_shared[(ko + 2) % 3, 0:128, 0:32], A[by * 128:by * 128 + 128, ko * 32 + 64:ko * 32 + 96])  #@ 12
            T.tile.copy(B_shared[(ko + 2) % 3, 0:32, 0:128], B[ko * 32 + 64:ko * 32 + 96, bx * 128:bx * 128 + 128])  #@ 13
            T.channel.commit(full, (ko + 2) % 3)
"""

LOWERED_GEMM = """\
        for kk in T.unroll(2):                                     #@ 14
            for i in T.unroll(4):                                  #@ 14
                T.ptx.ldmatrix(A_frag, i * 8, A_shared, T.swizzle(ko % 3, tx, i, kk), 4)   #@ 14
            for j in T.unroll(4):                                  #@ 14
                T.ptx.ldmatrix_trans(B_frag, j * 4, B_shared, T.swizzle(ko % 3, tx, j, kk), 4)  #@ 14
            for i, j in T.grid(4, 8):                              #@ 14
                T.ptx.mma("m16n8k16", C_local, i * 32 + j * 4, A_frag, i * 8, B_frag, j * 2)  #@ 14
"""

CODE = """\
#include <cuda_fp16.h>
#include "tilelab_ptx.h"
extern "C" __global__ void __launch_bounds__(128)                  #@ 2
matmul(const half* __restrict__ A, const half* __restrict__ B, half* __restrict__ C) {  #@ 2
  extern __shared__ __align__(128) unsigned char smem[];
  half* A_shared = (half*)(smem);                                  #@ 7
  half* B_shared = (half*)(smem + 24576);                          #@ 8
  float C_local[128];                                              #@ 9
  unsigned A_frag[32], B_frag[16];                                 #@ 14
  const int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x;    #@ 6
  #pragma unroll
  for (int i = 0; i < 128; ++i) C_local[i] = 0.0f;                 #@ 10
  #pragma unroll
  for (int s = 0; s < 2; ++s) {                                    #@ 11
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      tl::cp_async_16(A_shared + tl::swizzle(s, tx, v), A + by * 131072 + tl::row(tx, v) * 1024 + s * 32);  #@ 12
    }
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      tl::cp_async_16(B_shared + tl::swizzle_b(s, tx, v), B + (s * 32 + tl::row(tx, v)) * 768 + bx * 128);  #@ 13
    }
    tl::cp_async_commit();
  }
  #pragma unroll 1
  for (int ko = 0; ko < 32; ++ko) {                                #@ 11
    tl::cp_async_wait<1>();
    __syncthreads();
    #pragma unroll
    for (int kk = 0; kk < 2; ++kk) {                               #@ 14
      for (int i = 0; i < 4; ++i) tl::ldmatrix_x4(A_frag + i * 8, A_shared + tl::swizzle(ko % 3, tx, i, kk));  #@ 14
      for (int j = 0; j < 4; ++j) tl::ldmatrix_x4_trans(B_frag + j * 4, B_shared + tl::swizzle(ko % 3, tx, j, kk));  #@ 14
      for (int i = 0; i < 4; ++i)                                  #@ 14
        for (int j = 0; j < 8; ++j)                                #@ 14
          tl::mma_m16n8k16(C_local + i * 32 + j * 4, A_frag + i * 8, B_frag + j * 2);  #@ 14
    }
    if (ko + 2 < 32) {                                             #@ 11
      for (int v = 0; v < 4; ++v)
        tl::cp_async_16(A_shared + tl::swizzle((ko + 2) % 3, tx, v), A + by * 131072 + tl::row(tx, v) * 1024 + ko * 32 + 64);  #@ 12
      for (int v = 0; v < 4; ++v)
        tl::cp_async_16(B_shared + tl::swizzle_b((ko + 2) % 3, tx, v), B + (ko * 32 + 64 + tl::row(tx, v)) * 768 + bx * 128);  #@ 13
    }
    tl::cp_async_commit();
  }
  for (int v = 0; v < 64; ++v)                                     #@ 15
    ((half2*)C)[tl::store_index(by, bx, tx, v)] = __floats2half2_rn(C_local[2 * v], C_local[2 * v + 1]);  #@ 15
}
"""


def read(text: str) -> tuple[Line, ...]:
    """Lines of a stage, with the source lines behind `#@` and the buffers they name."""
    lines = []
    for row in text.splitlines():
        body, _, where = row.partition("#@")
        buffers = tuple(name for name in ("A_shared", "B_shared", "C_local") if name in body)
        source = (int(where), int(where)) if where.strip() else None
        lines.append(Line(body.rstrip(), source, None, buffers))
    return tuple(lines)


def edit(lines: tuple[Line, ...], *changes: tuple[str, str]) -> tuple[Line, ...]:
    """Replace text in every line; a replacement of several lines takes the source of the line it replaces."""
    out = []
    for line in lines:
        text = line.text
        for old, new in changes:
            text = text.replace(old, new)
        out += [replace(line, text=row) for row in text.split("\n")]
    return tuple(out)


def splice(lines: tuple[Line, ...], first: str, last: str, new: str) -> tuple[Line, ...]:
    """Replace the lines from the one that contains `first` to the one that contains `last`."""
    start = next(i for i, line in enumerate(lines) if first in line.text)
    end = next(i for i, line in enumerate(lines) if i >= start and last in line.text)
    return lines[:start] + read(new) + lines[end + 1 :]


class Recorder:
    """Collects steps and fills in what a pipeline run would: makers, counts, times."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(
        self, name: str, doc: str, stage: str, lines: tuple[Line, ...] | None, reason: str = "", **more
    ) -> None:
        before = self.steps[-1].lines if self.steps else ()
        status = more.pop("status", None)
        after = before if lines is None else lines
        status = status or ("changed" if [x.text for x in before] != [x.text for x in after] else "unchanged")
        made, added, removed = [], 0, 0
        matcher = SequenceMatcher(None, [x.text for x in before], [x.text for x in after], autojunk=False)
        for tag, a0, a1, b0, b1 in matcher.get_opcodes():
            if tag == "equal":
                made += before[a0:a1]
            else:
                made += [replace(line, made_by=name) for line in after[b0:b1]]
                added, removed = added + b1 - b0, removed + a1 - a0
        seconds = 0.0 if status == "skipped" else (180 + 37 * len(name) + 11 * added) * 1e-6
        self.steps.append(
            Step(name, doc, stage, seconds, status, reason, tuple(made), added=added, removed=removed, **more)
        )

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.steps[-1].lines


def matmul() -> TracePayload:
    """A pipelined matrix product for sm_80: eighteen steps of every status but failed."""
    r = Recorder()
    r.add("parse", "Read the Python source into tile IR, each statement with its line.", "tile", read(PARSED))
    r.add(
        "check_tiles",
        "Check that the operands of every tile operation fit together.",
        "tile",
        None,
        "all 5 tile operations have operands that fit",
    )
    simplified = edit(
        r.lines, ("T.ceildiv(768, 128)", "6"), ("T.ceildiv(512, 128)", "4"), ("T.ceildiv(1024, 32)", "32")
    )
    r.add(
        "simplify",
        "Fold constants and drop code that cannot run.",
        "tile",
        simplified,
        hits=(
            Hit("fold_ceildiv", 6, "T.ceildiv(768, 128)", "6"),
            Hit("fold_ceildiv", 6, "T.ceildiv(512, 128)", "4"),
            Hit("fold_ceildiv", 11, "T.ceildiv(1024, 32)", "32"),
        ),
    )
    r.add(
        "split_loops",
        "Split loops at the conditions that divide their range.",
        "tile",
        None,
        "no loop holds a condition on its own variable",
    )
    r.add(
        "plan_grid",
        "Choose the order in which blocks take their tiles.",
        "tile",
        None,
        "24 blocks fit the chip at once, so their order does not matter",
        notes=(Note("decision", "row-major order over 6 × 4 blocks; 24 blocks on 108 multiprocessors", 6),),
    )
    planned = edit(
        r.lines,
        ("B_shared[0:32, 0:128])", 'B_shared[0:32, 0:128], row="mma.m16n8k16.f32.f16", warps=(2, 2))'),
    )
    planned = tuple(x if "T.tile.gemm" in x.text else y for x, y in zip(planned, r.lines, strict=True))
    r.add(
        "plan_gemms",
        "Choose a matrix instruction for every gemm.",
        "tile",
        planned,
        notes=(
            Note(
                "decision",
                "mma.m16n8k16.f32.f16, 2 × 2 warps of 64 × 64: 128 accumulator registers a thread",
                14,
            ),
            Note("refusal", "wgmma.m64n128k16 needs sm_90a, the target is sm_80", 14),
            Note("refusal", "mma.m16n8k8.f32.f16 fits, at half the work for each instruction", 14),
        ),
    )
    r.add(
        "plan_roles",
        "Give loading and computing to different warps.",
        "tile",
        None,
        "sm_80 has no asynchronous barrier that a loading warp could signal",
        status="skipped",
    )
    piped = splice(r.lines, "for ko in", "T.tile.gemm", PIPELINED)
    piped = edit(
        piped,
        ("alloc_buffer((128, 32)", "alloc_buffer((3, 128, 32)"),
        ("alloc_buffer((32, 128)", "alloc_buffer((3, 32, 128)"),
        ("0:32, 0:128])", '0:32, 0:128], row="mma.m16n8k16.f32.f16", warps=(2, 2))'),
    )
    r.add(
        "plan_pipeline",
        "Overlap loading the next tiles with computing on this one.",
        "tile",
        piped,
        notes=(
            Note(
                "decision",
                "3 stages of 16 KiB each: 48 KiB of the 164 KiB of shared memory, 3 blocks a multiprocessor",
                11,
            ),
        ),
    )
    r.add(
        "stage_copies",
        "Stage copies that cannot go straight from one memory to the other.",
        "tile",
        None,
        "all 5 copies have an instruction that moves them directly",
    )
    laid = edit(
        r.lines,
        ('"float16", scope="shared")', '"float16", scope="shared", layout="Sw<2,3,3> o (128,32):(32,1)")'),
        ('"float32", scope="fragment")', '"float32", scope="fragment", layout="((4,8,2,2),(2,2,8,4))")'),
    )
    r.add(
        "plan_layouts",
        "Give every buffer a layout that its readers and writers accept.",
        "laid_out",
        laid,
        notes=(
            Note(
                "decision",
                "A_shared: 64-byte swizzle, so that ldmatrix reads 8 rows without a bank conflict",
                7,
            ),
            Note("decision", "C_local: rows of mma.m16n8k16 fix it; 128 values in each of 128 threads", 9),
        ),
    )
    copies = edit(
        r.lines,
        ("ko * 32 + 64:ko * 32 + 96])", 'ko * 32 + 64:ko * 32 + 96], row="cp.async.16")'),
        ("s * 32:s * 32 + 32])", 's * 32:s * 32 + 32], row="cp.async.16")'),
        ("bx * 128:bx * 128 + 128])", 'bx * 128:bx * 128 + 128], row="cp.async.16")'),
    )
    r.add(
        "plan_copies",
        "Choose an instruction for every copy.",
        "laid_out",
        copies,
        notes=(
            Note("decision", "cp.async of 16 bytes: 4 a thread for A_shared, 4 for B_shared", 12),
            Note(
                "slow_path", "C is stored 4 bytes at a time: neighbouring threads hold pairs of float16", 15
            ),
            Note("refusal", "tma.load.2d needs sm_90, the target is sm_80", 12),
        ),
    )
    gemms = splice(r.lines, "T.tile.gemm", "T.tile.gemm", LOWERED_GEMM)
    gemms = edit(
        gemms,
        (
            "    full = T.alloc_channel",
            (
                '    A_frag = T.alloc_buffer((32,), "uint32", scope="local")\n'
                '    B_frag = T.alloc_buffer((16,), "uint32", scope="local")\n    full = T.alloc_channel'
            ),
        ),
    )
    r.add(
        "lower_gemm",
        "Write every gemm as its matrix instructions and the loads of their operands.",
        "threaded",
        gemms,
    )
    fills = splice(
        r.lines,
        "T.tile.fill",
        "T.tile.fill",
        "    for i in T.unroll(128):  #@ 10\n        C_local[i] = T.float32(0)  #@ 10\n",
    )
    r.add("lower_fill", "Write every fill as stores by the threads that hold the values.", "threaded", fills)
    renamed = edit(
        r.lines,
        ("kk", "k_inner"),
        ("for s in", "for stage in"),
        ("(full, s)", "(full, stage)"),
        ("[s, 0", "[stage, 0"),
        ("s * 32:s * 32", "stage * 32:stage * 32"),
    )
    r.add("name_variables", "Give every variable a name of its own.", "threaded", renamed)
    r.add(
        "guard_bounds",
        "Guard accesses that may leave a buffer.",
        "threaded",
        None,
        "512, 768 and 1024 are multiples of the tiles, so no access can leave its buffer",
    )
    r.add(
        "vectorize",
        "Join neighbouring accesses of a thread into wider ones.",
        "threaded",
        None,
        "every access is already as wide as its instruction allows",
        notes=(Note("info", "stores to C join 2 values; a third is 16 columns away", 15),),
    )
    waits = edit(
        r.lines,
        ("T.channel.wait(full, ko % 3)", "T.ptx.cp_async_wait_group(1)\n        T.sync_threads()"),
        ("T.channel.commit(full, stage)", "T.ptx.cp_async_commit_group()"),
        ("T.channel.commit(full, (ko + 2) % 3)", "T.ptx.cp_async_commit_group()"),
    )
    waits = tuple(
        x
        for x in waits
        if not any(w in x.text for w in ("channel.acquire", "channel.release", "alloc_channel"))
    )
    r.add(
        "insert_waits",
        "Wait for asynchronous copies no earlier than their first reader.",
        "synced",
        waits,
        notes=(
            Note(
                "decision", "one group stays in flight: the reader needs stage ko, the newest is ko + 1", 14
            ),
        ),
    )
    r.add(
        "insert_proxy_fences",
        "Order generic writes before asynchronous reads.",
        "synced",
        None,
        "sm_80 has one memory proxy",
        status="skipped",
    )
    return TracePayload(
        "matmul",
        "cuda:sm_80",
        Source("matmul.py", 1, tuple(SOURCE.splitlines())),
        tuple(r.steps),
        Code("cuda", tuple(replace(x, made_by="print") for x in read(CODE))),
        'tilelab.trace_of(matmul, A, B, target="cuda:sm_80")  # A: (512, 1024) float16, B: (1024, 768) float16',
        {"tilelab": "0.1.0", "apache-tvm": "0.27.0.post1", "python": "3.11.9", "nvrtc": "13.0"},
    )


def failed(whole: TracePayload) -> TracePayload:
    """The same compile stopped by an error in plan_layouts."""
    steps = list(whole.steps[:9])
    text = (
        "TL202: two operations want different layouts of C_local\n"
        "the row reduction at line 15 needs a whole row in one thread; mma.m16n8k16 needs four threads a row"
    )
    notes = (
        Note("refusal", "mma.m16n8k16 fixes four threads a row for C_local", 14),
        Note("refusal", "the row reduction wants one thread a row", 15),
    )
    steps.append(
        Step(
            "plan_layouts",
            "Give every buffer a layout that its readers and writers accept.",
            "laid_out",
            0.0012,
            "failed",
            text,
            steps[-1].lines,
            notes=notes,
        )
    )
    return replace(whole, steps=tuple(steps), code=None, source=replace(whole.source, cell="cell-3"))


def large(whole: TracePayload, passes: int = 60, lines: int = 400) -> TracePayload:
    """Sixty passes over four hundred lines, every fourth of which changes some: a course kernel at its largest."""
    first = tuple(
        Line(
            f"    acc[{i}] = acc[{i}] + A_frag[{i % 32}] * B_frag[{i * 7 % 16}]",
            (14, 14),
            "parse",
            ("C_local",),
        )
        for i in range(lines)
    )
    r = Recorder()
    r.add("parse", "Read the Python source into tile IR.", "tile", first)
    for k in range(1, passes):
        if k % 4:
            r.add(f"check_{k}", "Looks for something that is not there.", "threaded", None, "nothing to do")
        else:
            new = tuple(
                replace(x, text=x.text.replace("acc", f"acc_{k}") if i % 40 == k % 40 else x.text)
                for i, x in enumerate(r.lines)
            )
            r.add(f"rewrite_{k}", "Rewrites some lines.", "threaded", new)
    return replace(whole, kernel="unrolled", steps=tuple(r.steps), code=Code("cuda", first))


def chinese(whole: TracePayload) -> TracePayload:
    """Names and comments outside ASCII, markup characters and dollar signs, as users write them."""
    source = replace(
        whole.source, file="矩陣/乘法.py", lines=("# 矩陣乘法 <b>&amp;</b> $x$ 🧮", *whole.source.lines[1:])
    )
    steps = tuple(
        replace(s, lines=(Line('# </script><b>不是標記</b> $y$ 🧮 "', (1, 1), s.name), *s.lines))
        for s in whole.steps
    )
    return replace(whole, kernel="矩陣乘法", source=source, steps=steps)


def main() -> int:
    """Write every fixture."""
    whole = matmul()
    made = {"matmul": whole, "failed": failed(whole), "chinese": chinese(whole)}
    FIXTURES.mkdir(exist_ok=True)
    for name, payload in made.items():
        text = json.dumps(to_json(payload), ensure_ascii=False, separators=(",", ":")) + "\n"
        (FIXTURES / f"{name}.json").write_text(text, encoding="utf-8")
    packed = json.dumps(encode(whole), indent=1) + "\n"
    (ROOT / "visualizers" / "core" / "test" / "data" / "matmul.json").write_text(packed, encoding="utf-8")
    SAMPLE.write_text((FIXTURES / "matmul.json").read_text(encoding="utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
