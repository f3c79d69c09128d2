"""Control flow: what Python runs and what becomes IR."""

from __future__ import annotations

import pytest

from tests.language.reading import lines, read, statements
from tilelab.errors import TileError
from tilelab.ir.nodes import ForKind


def test_a_loop_over_range_is_a_serial_loop_of_the_kernel(tmp_path):
    assert lines(read(tmp_path, "for i in range(4):\n    V[i] = i")) == [
        "for i in range(4):",
        '    V[i] = T.Cast("float32", i)',
    ]


def test_a_loop_over_a_list_is_run_by_python(tmp_path):
    assert lines(read(tmp_path, "for i in [3, 1]:\n    V[i] = 0")) == [
        "V[3] = T.float32(0.0)",
        "V[1] = T.float32(0.0)",
    ]


@pytest.mark.parametrize(
    ("loop", "kind"),
    [
        ("T.serial(4)", ForKind.SERIAL),
        ("T.Serial(0, 4)", ForKind.SERIAL),
        ("T.Pipelined(4, num_stages=2)", ForKind.SERIAL),
        ("T.Parallel(4)", ForKind.PARALLEL),
        ("T.unroll(4)", ForKind.UNROLLED),
        ("T.vectorized(4)", ForKind.VECTORIZED),
    ],
)
def test_each_loop_has_its_kind(tmp_path, loop, kind):
    found = statements(read(tmp_path, f"for i in {loop}:\n    V[i] = 1"))[0]
    assert found.kind == kind
    assert int(found.extent) == 4
    assert str(found.loop_var.name) == "i"


def test_a_nest_has_one_loop_for_each_extent(tmp_path):
    assert lines(read(tmp_path, "for i, j in T.Parallel(8, 4):\n    F[i, j] = 1.5")) == [
        "for i in T.parallel(8):",
        "    for j in T.parallel(4):",
        "        F[i, j] = T.float32(1.5)",
    ]
    assert lines(read(tmp_path, "for i, j in T.grid(2, 3):\n    F[i, j] = 1")) == [
        "for i, j in T.grid(2, 3):",
        "    F[i, j] = T.float32(1.0)",
    ]


def test_a_loop_keeps_its_start_and_counts_in_steps(tmp_path):
    assert lines(read(tmp_path, "for i in T.serial(2, 10):\n    V[i] = 1"))[0] == "for i in range(2, 10):"
    assert lines(read(tmp_path, "for i in range(2, 11, 3):\n    V[i] = 1")) == [
        "for i in range(3):",
        "    V[2 + i * 3] = T.float32(1.0)",
    ]


def test_a_branch_on_a_known_value_leaves_no_branch(tmp_path):
    assert lines(read(tmp_path, "if len([1]) == 1:\n    V[0] = 1\nelse:\n    V[1] = 1")) == [
        "V[0] = T.float32(1.0)"
    ]


def test_a_branch_on_a_value_of_the_kernel_has_both_sides(tmp_path):
    text = """
    if bx == 0:
        V[0] = 1
    elif bx > 1 and V[0] < 2.0:
        V[1] = 1
    else:
        V[2] = 1
    """
    assert lines(read(tmp_path, text)) == [
        "if bx == 0:",
        "    V[0] = T.float32(1.0)",
        "else:",
        "    if bx > 1 and V[0] < T.float32(2.0):",
        "        V[1] = T.float32(1.0)",
        "    else:",
        "        V[2] = T.float32(1.0)",
    ]


def test_while_break_and_continue_become_ir(tmp_path):
    text = """
    n = T.alloc_var("int32", init=5)
    while n > 0:
        n -= 1
        if n == 3:
            continue
        if n == 1:
            break
        V[n] = 1
    """
    assert lines(read(tmp_path, text)) == [
        "n: T.int32 = 5",
        "while n > 0:",
        "    n = n - 1",
        "    if n == 3:",
        "        continue",
        "    if n == 1:",
        "        break",
        "    V[n] = T.float32(1.0)",
    ]


def test_break_of_a_python_loop_ends_it(tmp_path):
    text = """
    for i in (0, 1, 2, 3):
        if i == 1:
            continue
        if i == 3:
            break
        V[i] = i
    else:
        V[9] = 9
    """
    assert lines(read(tmp_path, text)) == ["V[0] = T.float32(0.0)", "V[2] = T.float32(2.0)"]


def test_a_while_loop_on_known_values_is_run_by_python(tmp_path):
    text = """
    n = 4
    while n > 1:
        n = n // 2
        V[n] = n
    """
    assert lines(read(tmp_path, text)) == ["V[2] = T.float32(2.0)", "V[1] = T.float32(1.0)"]


def test_whole_number_names_stay_in_expressions_and_loads_get_names(tmp_path):
    text = """
    row = bx * 32 + 1
    x = B[row, 0]
    V[0] = x + x
    """
    assert lines(read(tmp_path, text)) == [
        "x: T.let[T.float32] = B[bx * 32 + 1, 0]",
        "V[0] = x + x",
    ]


def test_a_value_loaded_before_a_store_is_the_old_one(tmp_path):
    text = """
    old = V[0]
    V[0] = 7.0
    V[1] = old
    """
    assert lines(read(tmp_path, text)) == [
        "old: T.let[T.float32] = V[0]",
        "V[0] = T.float32(7.0)",
        "V[1] = old",
    ]


def test_assignment_to_a_variable_stores(tmp_path):
    text = """
    best = T.alloc_var("float32", init=0.0)
    for i in T.serial(4):
        best = T.max(best, V[i])
    y = best
    best = 1
    V[0] = y
    """
    assert lines(read(tmp_path, text)) == [
        "best: T.float32 = T.float32(0.0)",
        "for i in range(4):",
        "    best = T.max(best, V[i])",
        "y: T.let[T.float32] = best",
        "best = T.float32(1.0)",
        "V[0] = y",
    ]


def test_augmented_assignment_reads_and_writes_the_element(tmp_path):
    assert lines(read(tmp_path, "V[3] *= 2.0")) == ["V[3] = V[3] * T.float32(2.0)"]


def test_parts_of_tiles_are_filled_and_copied_by_assignment(tmp_path):
    assert lines(read(tmp_path, "F[0:8, :] = 0\nF[...] = S\nS[:, 8:16] = B[0:32, 0:8]")) == [
        "T.fill(F[0:8, 0:32], T.float32(0.0))",
        "T.copy(S[0:32, 0:32], F[0:32, 0:32])",
        "T.copy(B[0:32, 0:8], S[0:32, 8:16])",
    ]


def test_slices_and_negative_indices_become_regions(tmp_path):
    assert lines(read(tmp_path, "T.copy(A[bx * 8:bx * 8 + 8, -8:], S[-8:, 0:8])\nV[-1] = 0")) == [
        "T.copy(A[bx * 8:bx * 8 + 8, 56:64], S[24:32, 0:8])",
        "V[31] = T.float32(0.0)",
    ]


def test_an_element_takes_the_size_of_the_other_side(tmp_path):
    assert lines(read(tmp_path, "T.copy(A[bx, 4], V)\nT.copy(F, A[bx * 32, 0])\nT.copy(C[bx], C[0])")) == [
        "T.copy(A[bx, 4:36], V[0:32])",
        "T.copy(F[0:32, 0:32], A[bx * 32:bx * 32 + 32, 0:32])",
        "T.copy(C[bx], C[0])",
    ]


def test_closures_lambdas_and_comprehensions_see_the_names_of_the_kernel(tmp_path):
    text = """
    scale = 3
    double = lambda i: V[i] * 2.0
    tiles = [T.alloc_local((scale,), "float32") for _ in range(2)]
    for t in tiles:
        t[0] = double(scale)
    names = {t.name: t.shape for t in tiles}
    assert names == {"tiles": (3,), "tiles_1": (3,)}, f"{names}"
    """
    assert lines(read(tmp_path, text)) == [
        "tiles = T.alloc_local((3,))",
        "tiles_1 = T.alloc_local((3,))",
        "tiles[0] = V[3] * T.float32(2.0)",
        "tiles_1[0] = V[3] * T.float32(2.0)",
    ]


def test_python_objects_and_context_managers_work(tmp_path):
    text = """
    import contextlib
    from types import SimpleNamespace
    config = SimpleNamespace(n=2)
    config.n += 1
    with contextlib.nullcontext(5) as five:
        V[config.n] = five
    first, *rest = (1, 2, 3)
    del first
    V[rest[-1]] = len(rest)
    """
    assert lines(read(tmp_path, text)) == ["V[3] = T.float32(5.0)", "V[3] = T.float32(2.0)"]


def test_conditional_expressions_chains_and_membership(tmp_path):
    text = """
    V[0] = V[1] if 0 <= bx < 2 else V[2]
    if bx in (1, 3) or not V[0] > 1.0:
        V[3] = 1
    V[4] = min(V[0], V[1], 2.0) + abs(V[2]) + float(bx)
    """
    assert lines(read(tmp_path, text)) == [
        "V[0] = T.if_then_else(bx >= 0 and bx < 2, V[1], V[2])",
        "if bx == 1 or bx == 3 or not V[0] > T.float32(1.0):",
        "    V[3] = T.float32(1.0)",
        'V[4] = T.min(T.min(V[0], V[1]), T.float32(2.0)) + T.fabs(V[2]) + T.Cast("float32", bx)',
    ]


def test_a_symbolic_assertion_prints_from_the_device(tmp_path):
    assert lines(read(tmp_path, 'assert bx < 2, f"block {bx} of {1 + 1}"')) == [
        "if not bx < 2:",
        '    T.print(bx < 2, message="assertion failed: block bx of 2")',
    ]


def test_what_has_no_effect_is_listed(tmp_path):
    text = """
    T.copy(S, F, annotations={"x": 1})
    T.assume(bx < 2)
    """
    parsed = read(tmp_path, text)
    assert [entry.split(" (line")[0] for entry in parsed.ignored] == [
        "T.copy(annotations=…)",
        "T.assume(bx < 2)",
    ]
    assert list(parsed.func.attrs["tl.ignored"]) == list(parsed.ignored)


def test_the_index_of_an_inner_loop_hides_a_name_of_before(tmp_path):
    text = """
    for i in T.serial(2):
        first = C[i]
        for i, j in T.Parallel(4, 4):
            F[i, j] = first
        for i in T.Parallel(8):
            V[i] = 0
    """
    outer = statements(read(tmp_path, text))[0]
    first, nest, last = outer.body.seq
    assert first.value.indices[0].same_as(outer.loop_var)
    assert nest.body.body.indices[0].same_as(nest.loop_var)
    assert last.body.indices[0].same_as(last.loop_var)


def test_a_name_that_an_index_hid_is_gone_after_the_loop(tmp_path):
    with pytest.raises(TileError) as caught:
        read(tmp_path, "i = 5\nfor i in T.serial(4):\n    V[i] = 0\nV[i] = 1")
    assert caught.value.code == "TL108"
