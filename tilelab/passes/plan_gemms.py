"""Choose the matrix instruction of each gemm and how the warps share its tile.

Annotates `row`, `warps` (along m and n), `repeats` (atoms of a warp along m, n and k) and `replication`. The
choice is `hardware.select_gemm`'s: the fastest row by the tables among those that fit; the others are
recorded with the reason. Where one gemm's result is another's A operand in registers (attention), every gemm
gives whole rows to a warp, so that the result is where the next instruction wants it.

Before (cuda:sm_80, threads=128):

    As = T.alloc_buffer((64, 32), "float16", scope="shared.dyn")
    Bs = T.alloc_buffer((32, 64), "float16", scope="shared.dyn")
    acc = T.alloc_buffer((64, 64), scope="local.fragment")
    T.gemm(As[0:64, 0:32], Bs[0:32, 0:64], acc[0:64, 0:64])

After:

    As = T.alloc_buffer((64, 32), "float16", scope="shared.dyn")
    Bs = T.alloc_buffer((32, 64), "float16", scope="shared.dyn")
    acc = T.alloc_buffer((64, 64), scope="local.fragment")
    T.gemm(As[0:64, 0:32], Bs[0:32, 0:64], acc[0:64, 0:64], replication=1, repeats=[2, 4, 2], row="mma.m16n8k16.f32.f16", warps=[2, 2])
"""  # noqa: E501

from __future__ import annotations

from typing import Any

from tilelab.errors import TileError
from tilelab.hardware import GemmChoice, row, select_gemm
from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc, Region, TileCall, dtype_of
from tilelab.ir.rewrite import collect, rewrite
from tilelab.ir.spans import place_of
from tilelab.ir.tile_ops import op_of, operand
from tilelab.passes.base import Pass, because, chip_of, decide, threads_of

__all__ = ["choice_of", "gemm_shape", "plan_gemms"]

_POLICIES = {"square": "square", "fullrow": "full_row", "fullcol": "full_col"}
# wgmma reads its tiles through descriptors and needs groups of threads with their own waits: a kernel that
# lays those out by hand names the row itself.
_BY_HAND = ("wgmma",)


def _extents(region: Region) -> list[int]:
    sizes = [b.as_int(r.extent) for r in region.region]
    if any(s is None for s in sizes):
        raise TileError(
            "TL201", f"the extents of {region.source.name} in a gemm must be known when it is compiled"
        )
    while len(sizes) > 2 and sizes[0] == 1:
        sizes.pop(0)
    return sizes  # type: ignore[return-value] - None was refused above


def gemm_shape(call: TileCall) -> tuple[int, int, int]:
    """(m, n, k) of a gemm, transposes taken into account."""
    config = b.plain(call.config)
    m, n = _extents(operand(call, "C"))
    rows, columns = _extents(operand(call, "A"))
    return m, n, rows if config.get("transpose_A") else columns


def choice_of(call: TileCall) -> GemmChoice:
    """The choice that `plan_gemms` wrote into a gemm's keywords."""
    config = b.plain(call.config)
    return GemmChoice(
        row(config["row"]), tuple(config["warps"]), tuple(config["repeats"]), config["replication"]
    )


def _is_gemm(node: Any) -> bool:
    return isinstance(node, TileCall) and op_of(node).name == "gemm"


def _scope_of(region: Region) -> str:
    return str(region.source.scope())


def _places_of(call: TileCall) -> tuple[str, str]:
    """Where the instructions find A and B."""
    if _scope_of(operand(call, "B")) == "local.fragment":
        raise TileError(
            "TL203",
            "B of a gemm is in registers; the instructions take it from shared memory",
            help="copy it to a T.alloc_shared tile first",
        )
    return ("register" if _scope_of(operand(call, "A")) == "local.fragment" else "shared", "shared")


def run(f: PrimFunc) -> PrimFunc:
    gemms = [c for c in collect(f.body, TileCall) if _is_gemm(c)]
    if not gemms:
        because("the kernel has no gemm")
        return f
    from_registers = [c for c in gemms if _scope_of(operand(c, "A")) == "local.fragment"]
    chip, threads = chip_of(f), threads_of(f)

    def choose_row(call: TileCall) -> TileCall | None:
        if not _is_gemm(call):
            return None
        config = b.plain(call.config)
        policy = _POLICIES[str(config.get("policy", "square")).lower().replace("_", "")]
        if from_registers and policy != "full_row":
            policy = "full_row"
            first = place_of(from_registers[0].span)
            decide(
                "warps own whole rows, since the gemm" + (f" at line {first.line}" if first else "")
                + " takes A from registers", call.span,
            )  # fmt: skip
        m, n, k = gemm_shape(call)
        dtypes = [dtype_of(operand(call, name).source) for name in ("A", "B", "C")]
        without = _BY_HAND if chip.has("wgmma") else ()
        choice = select_gemm(chip, m, n, k, *dtypes, *_places_of(call), threads, policy, without=without)
        text = (
            f"{choice.row.name} for {m} x {n} x {k}: {choice.warps[0]} x {choice.warps[1]} warps, "
            f"{choice.repeats[0]} x {choice.repeats[1]} x {choice.repeats[2]} atoms each"
        )
        decide(
            text, call.span, row=choice.row.name, warps=list(choice.warps), repeats=list(choice.repeats),
            refused={r.name: r.reason for r in choice.refusals},
        )  # fmt: skip
        return b.tile_with(
            call, row=choice.row.name, warps=list(choice.warps), repeats=list(choice.repeats),
            replication=choice.replication,
        )  # fmt: skip

    return rewrite(f, (TileCall, choose_row))


plan_gemms = Pass("plan_gemms", run, needs="tile", gives="tile")
