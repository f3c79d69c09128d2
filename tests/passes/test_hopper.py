"""The hand-built Hopper matmul through the passes: what each makes of it, and its planted defects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernels.hopper import HopperMatmul
from tilelab.emulate import emulate
from tilelab.emulate.compare import compare_steps, relative_error
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import IfThenElse, PrimFunc, Stmt, TileCall, same_structure
from tilelab.ir.rewrite import rewrite
from tilelab.ir.statements import children, each_statement
from tilelab.ir.tile_ops import op_of
from tilelab.pipelines.cuda import CUDA
from tilelab.targets import parse_target

ERROR = 2**-11  # one rounding to float16
KINDS = {
    "one role of two warpgroups": HopperMatmul(block_n=128, n=128, k=320),
    "two roles of one": HopperMatmul(block_n=128, n=128, k=320, roles=2),
    "B along its columns": HopperMatmul(block_n=128, n=128, k=256, b_major="mn"),
    "two tiles a block, two blocks": HopperMatmul(block_n=64, n=256, k=256, tiles=2, roles=2),
    "cleared by the first step": HopperMatmul(block_n=64, n=64, k=192, clear="first step"),
    "one step": HopperMatmul(block_n=64, n=64, k=64),
    "no step": HopperMatmul(block_n=64, n=64, k=64, steps=0),
}
# What stands between the two asks for fences that the second of them puts in.
UNFINISHED = ("insert_barriers",)


def error_of(kernel: HopperMatmul, f: PrimFunc, **how) -> float:
    a, right, c = kernel.inputs()
    emulate(f, [a, right, c], **how)
    return relative_error(c, kernel.expected(a, right))


# ---- values


@pytest.mark.parametrize("kind", KINDS)
def test_every_pass_keeps_the_values(kind: str) -> None:
    kernel = KINDS[kind]
    steps = [(s.name, s.function) for s in kernel.trace().steps if s.name not in UNFINISHED]
    a, right, _ = kernel.inputs()
    change = compare_steps(
        steps,
        lambda: dict(zip("ABC", kernel.inputs(), strict=True)),
        {"C": kernel.expected(a, right)},
        ERROR,
    )
    assert change is None, str(change)


@pytest.mark.parametrize("roles", [1, 2])
@pytest.mark.parametrize("mode", ["late", "early"])
def test_any_interleaving_gives_the_values(roles: int, mode: str) -> None:
    kernel = HopperMatmul(block_n=64, n=64, k=320, roles=roles)
    for seed in range(6):
        assert error_of(kernel, kernel.device(), mode=mode, seed=seed) < ERROR


def test_laid_out_roles_meet_only_at_channels() -> None:
    kernel = HopperMatmul(block_n=64, n=64, k=320, roles=2)
    for seed in range(6):
        assert error_of(kernel, kernel.build(), seed=seed) < ERROR


# ---- planted defects


def fault(kernel: HopperMatmul, f: PrimFunc, mode: str = "late") -> TileError:
    """What the emulator says of a faulty kernel, in the first of eight interleavings in which it sees it."""
    with pytest.raises(TileError) as caught:
        _run_until_caught(kernel, f, mode)
    assert caught.value.places
    assert all(p.file.endswith("hopper.py") for p in caught.value.places)
    return caught.value


def _run_until_caught(kernel: HopperMatmul, f: PrimFunc, mode: str) -> None:
    for seed in range(8):
        error_of(kernel, f, mode=mode, seed=seed)


def small(planted: str = "", **more) -> HopperMatmul:
    return HopperMatmul(block_n=64, n=64, k=320, planted=planted, **more)


@pytest.mark.parametrize("mode", ["late", "early"])
@pytest.mark.parametrize("roles", [1, 2])
@pytest.mark.parametrize(
    ("planted", "codes", "said"),
    [
        ("consumer phase", {"TL602", "TL603", "TL604"}, ("A_shared", "ring_full")),
        ("producer phase", {"TL604"}, ("ring_empty[0], parity 0",)),
        ("early release", {"TL603"}, ("A_shared",)),
        ("no release", {"TL604"}, ("ring_empty[0], parity 0", "ring_full")),
    ],
)
def test_a_defect_of_the_protocol_is_caught(
    planted: str, codes: set[str], said, roles: int, mode: str
) -> None:
    kernel = small(planted, roles=roles)
    caught = fault(kernel, kernel.device(), mode)
    assert caught.code in codes
    assert any(words in caught.message for words in said), caught.message


@pytest.mark.parametrize(("planted", "code"), [("consumer phase", "TL602"), ("producer phase", "TL604")])
def test_a_wrong_phase_is_caught_at_stage_laid_out_too(planted: str, code: str) -> None:
    kernel = small(planted, roles=2)
    caught = fault(kernel, kernel.build())
    assert caught.code in {code, "TL604"}


def test_an_early_release_names_the_line_that_still_reads() -> None:
    kernel = small("early release")
    lines = {s.span.line for s in each_statement(kernel.build().body)
             if isinstance(s, TileCall) and op_of(s).name in ("gemm", "copy")}  # fmt: skip
    caught = fault(kernel, kernel.device())
    assert {p.line for p in caught.places} <= lines


@pytest.mark.parametrize("mode", ["late", "early"])
def test_a_missing_proxy_fence_is_caught(mode: str) -> None:
    kernel = small()
    caught = fault(kernel, kernel.device("insert_proxy_fences"), mode)
    assert caught.code == "TL605"
    assert "C_shared" in caught.message


def changed(f: PrimFunc, rule: Callable[[TileCall], Stmt | None]) -> PrimFunc:
    return rewrite(f, (TileCall, rule))


@pytest.mark.parametrize("mode", ["late", "early"])
@pytest.mark.parametrize("factor", [0.5, 2])
def test_wrong_expected_bytes_are_caught(factor: float, mode: str) -> None:
    def rule(call: TileCall) -> Stmt | None:
        if op_of(call).name != "mbarrier_expect":
            return None
        return b.tile_with(call, call.args[0], b.const(int(b.as_int(call.args[1]) * factor)))

    kernel = small()
    caught = fault(kernel, changed(kernel.device(), rule), mode)
    assert caught.code in {"TL304", "TL602", "TL603", "TL604"}


def test_no_expected_bytes_at_all_are_caught() -> None:
    def rule(call: TileCall) -> Stmt | None:
        if op_of(call).name != "mbarrier_expect":
            return None
        return b.tile("mbarrier_arrive", call.args[0])

    kernel = small()
    assert fault(kernel, changed(kernel.device(), rule)).code in {"TL304", "TL602", "TL603"}


def test_a_wgmma_that_nobody_waits_for_is_caught() -> None:
    def rule(call: TileCall) -> Stmt | None:
        is_wait = op_of(call).name == "wait_group" and b.plain(call.config)["kind"] == "wgmma"
        return b.seq() if is_wait else None

    kernel = small()
    assert fault(kernel, changed(kernel.device(), rule)).code in {"TL602", "TL603"}


def test_a_store_that_nobody_waits_for_is_caught() -> None:
    def rule(call: TileCall) -> Stmt | None:
        return b.seq() if b.plain(call.config).get("kind") == "bulk.read" else None

    kernel = small()
    with pytest.raises(TileError, match=r"the block ends while tma\.store"):
        error_of(kernel, changed(kernel.device(), rule))


# ---- what the passes leave


def test_one_thread_does_all_the_loading() -> None:
    f = HopperMatmul(k=256).device()
    producer = next(s for s in each_statement(f.body) if b.group_of(s) == ("producer", 0, 128))
    first, guard = producer.body.body.seq
    assert op_of(first).name == "set_max_registers"
    assert isinstance(guard, IfThenElse)
    assert [op_of(s).name for s in each_statement(guard) if isinstance(s, TileCall)] == [
        "mbarrier_wait",
        "mbarrier_expect",
        "issue",
        "issue",
    ]


def test_barriers_of_roles_are_named_and_none_joins_two_roles() -> None:
    f = HopperMatmul(roles=2).device()
    barriers = [b.plain(s.config) for s in each_statement(f.body) if isinstance(s, TileCall)
                and op_of(s).name == "barrier"]  # fmt: skip
    assert [(x.get("id"), x.get("threads")) for x in barriers] == [(None, None), (2, 128), (3, 128)]


def test_the_bytes_of_a_slot_are_those_of_its_loads() -> None:
    for b_major in ("k", "mn"):
        f = HopperMatmul(b_major=b_major).device()
        (expect,) = [s for s in each_statement(f.body) if isinstance(s, TileCall)
                     and op_of(s).name == "mbarrier_expect"]  # fmt: skip
        assert b.as_int(expect.args[1]) == 2 * (128 * 64 + 256 * 64)


@pytest.mark.parametrize("roles", [1, 2])
@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        ("insert_barriers", "barrier"),
        ("insert_proxy_fences", "fence"),
        ("insert_register_limits", "set_max_registers"),
    ],
)
def test_a_pass_that_inserts_does_only_that(name: str, inserted: str, roles: int) -> None:
    steps = HopperMatmul(roles=roles).trace().steps
    (at,) = [i for i, s in enumerate(steps) if s.name == name]
    before, after = leaves(steps[at - 1].function), leaves(steps[at].function)
    kept = [s for s in after if not (isinstance(s, TileCall) and op_of(s).name == inserted)]
    old = [s for s in before if not (isinstance(s, TileCall) and op_of(s).name == inserted)]
    assert len(after) > len(before)
    assert len(kept) == len(old)
    assert all(same_structure(x, y) for x, y in zip(kept, old, strict=True))


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("lower_copy", {"copy"}),
        ("lower_gemm", {"gemm"}),
        ("lower_channels", {"acquire", "commit", "wait", "release"}),
    ],
)
def test_a_pass_that_lowers_leaves_nothing_of_it(name: str, gone: set[str]) -> None:
    (step,) = [s for s in HopperMatmul(roles=2).trace().steps if s.name == name]
    assert not gone & {op_of(s).name for s in leaves(step.function) if isinstance(s, TileCall)}


def leaves(f: PrimFunc) -> list[Stmt]:
    return [s for s in each_statement(f.body) if not children(s)]


def test_every_statement_but_inserted_ones_has_its_line() -> None:
    f = HopperMatmul().device()
    inserted = ("barrier", "fence", "mbarrier_init", "set_max_registers")
    calls = [s for s in each_statement(f.body) if isinstance(s, TileCall) and op_of(s).name not in inserted]
    assert len(calls) > 10
    assert all(s.span is not None for s in calls)


def test_the_new_passes_are_skipped_where_the_chip_lacks_the_hardware() -> None:
    new = ("lower_channels", "insert_register_limits", "insert_proxy_fences")
    skips = {p.name: p.skip for p in CUDA if p.name in new}
    for name in new:
        assert "sm_80 has no" in skips[name](parse_target("cuda:sm_80"))
        assert skips[name](parse_target("cuda:sm_90a")) is None
