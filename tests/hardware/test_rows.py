"""Every row obeys every law; register maps and texts agree with the manuals."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilelab.errors import TileError
from tilelab.hardware import CHIPS, ROWS, Completes, Register, Shared, chip, row
from tilelab.hardware.laws import LAWS, broken_laws, repeated_names
from tilelab.hardware.meanings import MEANINGS, emulate_registers, gather, register_table, scatter
from tilelab.hardware.nvidia.tma import check_box, tma_load
from tilelab.hardware.nvidia.wgmma import descriptor, wgmma
from tilelab.layout import Layout, shared_tile

FACTS = json.loads((Path(__file__).parent / "mfma_facts.json").read_text())


def test_names_are_unique():
    assert repeated_names(ROWS) == []
    assert repeated_names((ROWS[0], *ROWS)) == [ROWS[0].name]


@pytest.mark.parametrize("each", ROWS, ids=lambda each: each.name)
def test_a_row_obeys_every_law(each):
    assert broken_laws(each) == []


MMA = row("mma.m16n8k16.f32.f16")


@pytest.mark.parametrize(
    ("law", "broken"),
    [
        # Lanes broadcast over k instead of splitting it.
        ("together hold its tile", replace(MMA, a=replace(MMA.a, layout=Layout(((4, 8), 8), ((0, 1), 16))))),
        ("exactly one owner", replace(MMA, d=replace(MMA.d, layout=Layout(((4, 8), 8), ((32, 1), 8))))),
        ("tiles fit", replace(MMA, b=replace(MMA.b, tile=(16, 8)))),
        (
            "whole registers",
            replace(MMA, b=Register("float8_e4m3fn", (8, 8), Layout(((4, 8), 2), ((16, 1), 8)))),
        ),
        ("name every row", replace(row("ldmatrix.x4"), a=replace(row("ldmatrix.x4").a, rows=Layout(32, 1)))),
        ("text names", replace(MMA, text="mma {d}, {a}, {a}, {d};")),
        ("meaning exists", replace(MMA, means="guess")),
        ("some chip", replace(MMA, needs="sm_999")),
        ("rates are", replace(MMA, cost=replace(MMA.cost, rates=(("gfx942", 1.0),)))),
        ("counts the work", replace(MMA, cost=replace(MMA.cost, flops=1))),
        ("a source", replace(MMA, source=" ")),
    ],
)
def test_each_law_catches_a_row_that_breaks_it(law, broken):
    assert any(law in line for line in broken_laws(broken))


def test_the_emulation_law_catches_a_meaning_that_does_not_add():
    def product_only(a, b, d):
        return (a @ np.swapaxes(b, -1, -2)).astype(d.dtype)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MEANINGS, "matmul_accumulate", product_only)
        assert any("emulated registers" in line for line in broken_laws(MMA))


def test_laws_have_names():
    assert len({law.name for law in LAWS}) == len(LAWS)


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("mfma.f32.32x32x8.f16", "v_mfma_f32_32x32x8_f16"),
        ("mfma.f32.32x32x8.bf16", "v_mfma_f32_32x32x8_bf16"),
        ("mfma.f32.16x16x16.f16", "v_mfma_f32_16x16x16_f16"),
        ("mfma.f32.16x16x16.bf16", "v_mfma_f32_16x16x16_bf16"),
    ],
)
def test_mfma_maps_are_those_of_amds_calculator(name, fact):
    each, facts = row(name), FACTS[fact]
    assert each.shape == (facts["M"], facts["N"], facts["K"])
    assert (each.a.registers, each.d.registers) == (facts["gprA"], facts["gprCD"])
    assert each.cost.flops == facts["flops"]
    assert each.cost.rate("gfx942") == facts["flops_cu_cycle"]

    def at(role, axis, lane, register, half=0):
        names = {"lane": lane, "GPR_num": register, "GPR_bits": 16 * half, "floor": math.floor}
        return eval(facts[f"{role}_{axis}"], {"__builtins__": {}}, names)

    for lane in range(64):
        for value in range(each.a.values):
            want = tuple(at("A", axis, lane, value // 2, value % 2) for axis in "ik")
            assert each.a.fragment.coords(lane, value) == want
            assert each.b.fragment.coords(lane, value) == want
        for value in range(each.d.values):
            want = tuple(at("C or D", axis, lane, value) for axis in "ij")
            assert each.d.fragment.coords(lane, value) == want


def test_mma_operands_are_where_the_ptx_manual_says():
    for lane in range(32):
        group, pair = lane // 4, 2 * (lane % 4)
        for i in range(8):
            a_row = group + (8 if i in (2, 3, 6, 7) else 0)
            assert MMA.a.fragment.coords(lane, i) == (a_row, pair + (i & 1) + (8 if i >= 4 else 0))
        for i in range(4):
            assert MMA.b.fragment.coords(lane, i) == (group, pair + (i & 1) + (8 if i >= 2 else 0))


def test_wgmma_gives_each_warp_sixteen_rows():
    each = wgmma(40, "float16", "register")
    for thread, value in itertools.product(range(0, 128, 3), range(each.d.values)):
        lane, warp = thread % 32, thread // 32
        want = (16 * warp + lane // 4 + 8 * (value // 2 % 2), 8 * (value // 4) + 2 * (lane % 4) + value % 2)
        assert each.d.fragment.coords(thread, value) == want
    assert each.d.registers == 20
    assert each.a.registers == 4
    warp_one = each.a.fragment.coords(32, 0)
    assert warp_one == (16, 0)
    assert each.a.fragment.coords(0, 4) == (0, 8)


def test_wgmma_is_written_as_in_the_measured_kernels():
    assert wgmma(256, "bfloat16").text == (
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {d}, {a}, {b}, {scale}, 1, 1, 0, 0;"
    )
    assert wgmma(128, "float16", "register", b_major="mn").text.endswith("{scale}, 1, 1, 1;")
    assert wgmma(128, "float16", "shared", "mn", "k").text.endswith("{scale}, 1, 1, 1, 0;")
    assert (wgmma(64, "float16").completes, wgmma(64, "float16").proxy) == (Completes.GROUP, "async")


@pytest.mark.parametrize(("n", "dtype"), [(4, "float16"), (12, "float16"), (264, "float16"), (64, "float32")])
def test_wgmma_refuses_what_the_hardware_does_not_have(n, dtype):
    with pytest.raises(ValueError, match=r"wgmma|family"):
        wgmma(n, dtype)


def test_descriptors_are_those_of_the_measured_kernels():
    k_major = descriptor(128, "k", 256)
    assert k_major.constant == (1 << 16) | (64 << 32) | (1 << 62)
    assert k_major.k_step == 32
    mn_major = descriptor(128, "mn", 64)
    assert (mn_major.leading, mn_major.stride, mn_major.k_step) == (8192, 1024, 2048)


@pytest.mark.parametrize("swizzle_bytes", [32, 64, 128])
def test_descriptor_strides_are_those_of_the_shared_tile(swizzle_bytes):
    """Offsets of the blocked layout before the swizzle: eight rows, one box, one k-step of 16."""
    k_tile = shared_tile((128, 64), 16, swizzle_bytes).layout
    found = descriptor(swizzle_bytes, "k", 128)
    assert 2 * k_tile(8, 0) == found.stride
    assert 2 * k_tile(0, 16) == (found.k_step if swizzle_bytes > 32 else 128 * 32)
    mn_tile = shared_tile((64, 128), 16, swizzle_bytes).layout  # (k, n), contiguous in n
    found = descriptor(swizzle_bytes, "mn", 64)
    assert 2 * mn_tile(0, swizzle_bytes // 2) == found.leading
    assert (2 * mn_tile(8, 0), 2 * mn_tile(16, 0)) == (found.stride, found.k_step)


def test_ldmatrix_feeds_mma():
    """x4 on a 16 × 16 tile gives A's registers; x2.trans on a (k, n) tile gives B's."""
    tile = np.arange(256).reshape(16, 16)
    quarters = np.stack([tile[r : r + 8, c : c + 8] for c in (0, 8) for r in (0, 8)], axis=-1)
    assert np.array_equal(emulate_registers(row("ldmatrix.x4"), quarters), gather(MMA.a, tile))
    b = np.arange(128).reshape(8, 16)  # (n, k)
    halves = np.stack([b.T[:8], b.T[8:]], axis=-1)
    assert np.array_equal(emulate_registers(row("ldmatrix.x2.trans"), halves), gather(MMA.b, b))


def test_a_lane_addresses_the_row_that_the_manual_says():
    rows = row("ldmatrix.x4").a.rows
    assert [rows(lane) for lane in (0, 7, 8, 31)] == [0, 7, 64, 199]


def test_stmatrix_writes_what_ldmatrix_read():
    tile = np.arange(256).reshape(8, 8, 4)
    for suffix in ("", ".trans"):
        held = emulate_registers(row(f"ldmatrix.x4{suffix}"), tile)
        assert np.array_equal(emulate_registers(row(f"stmatrix.x4{suffix}"), held), tile)


def test_emulation_takes_many_warps_at_once_and_rounds_once():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((3, 16, 16)), random.standard_normal((3, 8, 16))
    a, b = a.astype(np.float16), b.astype(np.float16)
    half = row("mma.m16n8k16.f16.f16")
    zero = np.zeros((3, 16, 8), np.float16)
    got = emulate_registers(half, gather(half.a, a), gather(half.b, b), gather(half.d, zero))
    exact = np.einsum("wmk,wnk->wmn", a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    assert got.shape == (3, 32, 4)
    assert got.dtype == np.float16
    assert np.array_equal(scatter(half.d, got), exact)


def test_register_tables_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        register_table(MMA.a)[0, 0] = 1


@pytest.mark.parametrize(
    ("box", "word"),
    [
        ((64, 64, "float16", 128), ""),
        ((64, 128, "float16", 128), "exceeds the swizzle span"),
        ((257, 64, "float16", 128), "at most 256"),
        ((64, 4, "float16", 0), "multiple of 16 bytes"),
    ],
)
def test_tma_boxes_have_the_limits_of_the_driver_api(box, word):
    assert (word in check_box(*box)) if word else check_box(*box) == ""


def test_tma_lands_with_its_barrier_in_the_async_proxy():
    load = tma_load(64, 64, "float16", 128)
    assert (load.completes, load.proxy, load.bytes) == (Completes.MBARRIER, "async", 8192)
    assert isinstance(load.d, Shared)
    assert (load.d.admits, load.d.align) == ((128,), 1024)


def test_members_of_families_are_found_by_name():
    assert row("wgmma.m64n40k16.f32.bf16.rs.mn") is wgmma(40, "bfloat16", "register", "k", "mn")
    assert row("tma.load.2d.32x64.bfloat16.s128") is tma_load(32, 64, "bfloat16", 128)
    for name in (
        "wgmma.m64n41k16.f32.f16.ss.k.k",
        "wgmma.m64n40k16.f32.f16.rs.k.k",
        "tma.load.2d.32x3.float16.s0",
    ):
        with pytest.raises(TileError, match="no instruction is called"):
            row(name)


def test_chips_have_the_limits_of_their_manuals():
    assert [chip(arch).shared_per_block for arch in ("sm_80", "sm_89", "sm_90a", "gfx942")] == [
        166912,
        101376,
        232448,
        65536,
    ]
    assert chip("sm_90a").has("wgmma")
    assert not chip("sm_90").has("wgmma")
    assert not chip("sm_80").has("tma")
    assert [c.arch for c in CHIPS if c.warp == 64] == ["gfx942"]
    with pytest.raises(TileError, match="no chip is called 'sm_70'"):
        chip("sm_70")


@pytest.mark.parametrize("arch", [c.arch for c in CHIPS])
def test_phases_serve_every_lane_once(arch):
    each = chip(arch)
    for banks in (each.reads, each.writes):
        for _, groups in banks.phases:
            assert sorted(itertools.chain(*groups)) == list(range(each.warp))
