"""Selections: the row that fits, its share for each warp, and a reason for every row not taken."""

from __future__ import annotations

import math

import pytest

from tilelab.errors import TileError
from tilelab.hardware import CHIPS, chip, select_copy, select_gemm
from tilelab.hardware.select import candidates


def gemm(arch, m, n, k, dtype="float16", accumulator="float32", **options):
    return select_gemm(chip(arch), m, n, k, dtype, dtype, accumulator, **options)


@pytest.mark.parametrize(
    ("arch", "name", "warps", "repeats"),
    [
        ("sm_80", "mma.m16n8k16.f32.f16", (2, 2), (4, 8, 2)),
        ("sm_90a", "wgmma.m64n128k16.f32.f16.ss.k.k", (1, 1), (2, 1, 2)),
        ("gfx942", "mfma.f32.32x32x8.f16", (2, 1), (2, 4, 4)),
    ],
)
def test_the_first_matmul_gets_each_chips_matrix_instruction(arch, name, warps, repeats):
    choice = gemm(arch, 128, 128, 32, threads=128)
    assert (choice.row.name, choice.warps, choice.repeats) == (name, warps, repeats)


@pytest.mark.parametrize("arch", [c.arch for c in CHIPS])
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "accumulator", "threads"),
    [
        (128, 128, 32, "float16", "float32", 128),
        (64, 96, 64, "bfloat16", "float32", 256),
        (16, 16, 16, "float16", "float16", 64),
        (60, 60, 7, "float32", "float32", 128),
        (1, 1, 1, "int8", "int32", 1),
    ],
)
def test_every_gemm_has_a_row_and_its_fragments_hold_the_tiles(arch, m, n, k, dtype, accumulator, threads):
    choice = gemm(arch, m, n, k, dtype, accumulator, threads=threads)
    assert choice.d.tile == (m, n)
    assert choice.d.threads == threads
    assert choice.d.threads * choice.d.values == m * n * choice.d.replication
    assert choice.d.replication == choice.replication
    # Owners exist for every axis position exactly when the whole tile is held.
    for source in ("thread", "value"):
        assert choice.d.place_digits(source) is not None
    if choice.row.family != "wgmma":
        assert (choice.a.tile, choice.b.tile) == ((m, k), (n, k))
        assert choice.a.threads == choice.b.threads == threads


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("arch", ["sm_80", "gfx942"])
def test_operands_of_one_element_of_d_are_in_the_same_thread(arch, threads):
    choice = gemm(arch, 64, 64, 32, threads=threads)
    atom = choice.row
    for thread in (0, 37, threads - 1):
        lane = thread % atom.scope.threads
        rows = {choice.d.coords(thread, v)[0] // atom.shape[0] for v in range(choice.d.values)}
        assert rows == {choice.a.coords(thread, v)[0] // atom.shape[0] for v in range(choice.a.values)}
        columns = {choice.d.coords(thread, v)[1] // atom.shape[1] for v in range(choice.d.values)}
        assert columns == {choice.b.coords(thread, v)[0] // atom.shape[1] for v in range(choice.b.values)}
        assert choice.d.coords(thread, 0)[0] % atom.shape[0] == atom.d.fragment.coords(lane, 0)[0]


def test_an_accumulator_of_rows_is_the_next_products_a_operand():
    """Softmax(Q·Kᵀ)·V: with warps along the rows only, P needs no shuffle between mma instructions."""
    scores = gemm("sm_80", 64, 64, 128, threads=128, policy="full_row")
    output = gemm("sm_80", 64, 128, 64, threads=128, policy="full_row", a_scope="local.fragment")
    assert scores.d.coalesce() == output.a.coalesce()
    hopper = gemm("sm_90a", 64, 64, 128, threads=128)
    second = gemm("sm_90a", 64, 128, 64, threads=128, a_scope="local.fragment", b_major="mn")
    assert second.row.name == "wgmma.m64n128k16.f32.f16.rs.mn"
    assert hopper.d.coalesce() == second.a.coalesce()


@pytest.mark.parametrize(
    ("policy", "warps"), [("square", (2, 2)), ("full_row", (4, 1)), ("full_col", (1, 4))]
)
def test_policies_share_out_the_warps(policy, warps):
    assert gemm("sm_80", 128, 128, 32, threads=128, policy=policy).warps == warps


def test_two_warpgroups_share_the_rows():
    choice = gemm("sm_90a", 128, 256, 64, threads=256)
    assert (choice.row.shape, choice.warps, choice.repeats) == ((64, 256, 16), (2, 1), (1, 1, 4))


def refusal(choice, name):
    return next(each.reason for each in choice.refusals if each.name.startswith(name))


def test_a_refused_wgmma_says_the_number_that_does_not_fit():
    assert refusal(gemm("sm_80", 64, 64, 16), "wgmma") == "sm_80 does not have it"
    assert refusal(gemm("sm_90a", 32, 64, 16), "wgmma") == "m = 32 is no multiple of 64"
    assert refusal(gemm("sm_90a", 64, 64, 16, threads=96), "wgmma").endswith("the kernel gives 96")
    assert refusal(gemm("sm_90a", 64, 64, 16, b_scope="local"), "wgmma").startswith("B must be in shared")
    assert refusal(gemm("sm_90a", 64, 64, 16, accumulator="float16"), "wgmma").startswith(
        "accumulates in float32"
    )
    assert refusal(gemm("sm_90a", 64, 64, 16, without=("wgmma",)), "wgmma") == "left out by the caller"


def test_every_row_of_the_chip_is_chosen_or_refused():
    for arch in ("cpu", "sm_80", "sm_90a", "gfx942"):
        choice = gemm(arch, 128, 128, 32)
        families = ("mma", "mfma", "vector", "fma")
        named = {choice.row.name, *(each.name for each in choice.refusals)}
        assert {each.name for each in candidates(chip(arch), *families)} <= named


def test_the_slower_row_is_refused_with_both_rates():
    choice = gemm("sm_90a", 128, 128, 32)
    assert refusal(choice, "mma.m16n8k16.f32.f16").startswith("2560 flops a cycle")


def test_too_small_a_tile_repeats_work_and_says_so():
    choice = gemm("sm_80", 16, 16, 16, threads=128)
    assert (choice.row.family, choice.warps, choice.replication) == ("mma", (1, 2), 2)


@pytest.mark.parametrize("change", [{"m": 0}, {"threads": -32}, {"policy": "diagonal"}])
def test_a_gemm_of_nothing_is_refused(change):
    sizes = {"m": 16, "n": 16, "k": 16, **change}
    with pytest.raises(TileError, match="no gemm of"):
        gemm("sm_80", **sizes)


def test_a_gemm_without_any_row_lists_what_was_tried():
    with pytest.raises(TileError) as caught:
        gemm("sm_80", 60, 60, 7, without=("fma",))
    assert caught.value.code == "TL203"
    assert len(caught.value.refusals) == 5


@pytest.mark.parametrize(
    ("arch", "source", "destination", "names"),
    [
        ("sm_80", "global", "shared", ["cp.async.16"]),
        ("sm_80", "shared.dyn", "local.fragment", ["ld.shared.b128"]),
        ("sm_90a", "local.fragment", "global", ["st.global.b128"]),
        ("gfx942", "global", "shared", ["global_load_dwordx4", "ds_write_b128"]),
        ("cpu", "global", "shared", ["vector.load.16", "vector.store.16"]),
        ("cpu-avx512", "global", "local", ["vector.load.64"]),
    ],
)
def test_copies_take_the_widest_row(arch, source, destination, names):
    choice = select_copy(chip(arch), source, destination, "float16", 32, 64, wants_async=True)
    assert [each.name for each in choice.rows] == names
    assert choice.vector * 16 == choice.bytes * 8


@pytest.mark.parametrize(
    ("dtype", "elements", "alignment", "width"),
    [
        ("float16", 8, 16, 16),
        ("float16", 8, 8, 8),
        ("float16", 6, 16, 4),
        ("float32", 3, 16, 4),
        ("float16", 1, 2, 2),
        ("int8", 1, 1, 1),
        ("uint4", 2, 1, 1),
    ],
)
def test_width_is_bounded_by_extent_and_alignment(dtype, elements, alignment, width):
    choice = select_copy(chip("sm_80"), "global", "local", dtype, elements, alignment)
    assert choice.bytes == width


def test_what_cp_async_cannot_move_goes_through_registers_and_says_why():
    choice = select_copy(chip("sm_80"), "global", "shared", "float16", 1, 2, wants_async=True)
    assert not choice.is_async
    assert [each.name for each in choice.rows] == ["ld.global.b16", "st.shared.b16"]
    assert refusal(choice, "cp.async.4") == "2 contiguous bytes are no multiple of 4"


def test_bounded_copies_take_buffer_instructions():
    choice = select_copy(chip("gfx942"), "global", "shared", "float16", 8, 16, bounded=True)
    assert [each.name for each in choice.rows] == ["buffer_load_dwordx4", "ds_write_b128"]


def test_half_a_byte_cannot_be_moved_alone():
    with pytest.raises(TileError, match="no instruction moves uint4"):
        select_copy(chip("sm_80"), "global", "local", "uint4", 1, 1)


def test_registers_bound_what_a_choice_may_hold():
    choice = gemm("sm_80", 128, 128, 32, threads=128)
    assert choice.d.values == math.prod((128, 128)) // 128
