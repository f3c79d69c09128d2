"""What arguments say of themselves: strides that count, spans of memory, and sizes read off shapes."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.errors import TileError
from tilelab.language.specs import Parameter
from tilelab.runtime.arguments import as_numpy, contiguous_strides, flat_span, numpy_dtype, view_of
from tilelab.runtime.check import check_strides, evaluate, match_sizes
from tilelab.runtime.fingerprint import fingerprint

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4)),
        np.zeros((3, 1, 4))[:, :, :],
        np.zeros((0, 4)),
        np.zeros(()),
        np.zeros((1, 8))[:, ::1],
        np.zeros((5, 8))[2:3],
    ],
)
def test_axes_of_one_element_and_empty_tensors_count_as_contiguous(array):
    view = view_of("A", array)
    assert view.is_contiguous
    assert view.strides == contiguous_strides(array.shape)


def test_a_transposed_view_is_not_contiguous():
    view = view_of("A", np.zeros((3, 4)).T)
    assert not view.is_contiguous
    assert view.strides == (1, 4)
    assert view.span == 12


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "bool", "float8_e4m3fn"])
def test_torch_memory_is_seen_through_numpy(dtype):
    tensor = (torch.arange(12) % 2).to(getattr(torch, dtype)).view(3, 4)
    array = as_numpy(view_of("A", tensor))
    assert array.dtype == numpy_dtype(dtype)
    np.testing.assert_array_equal(array.astype(np.float64), tensor.double().numpy())
    array[0, 0] = 1
    assert float(tensor[0, 0].double()) == 1.0


def test_a_strided_view_spans_from_its_first_to_its_last_element():
    tensor = torch.arange(40, dtype=torch.float32).view(5, 8)[1:4, 2:6]
    view = view_of("A", tensor)
    span = flat_span(view)
    assert (span[0], span[-1], len(span)) == (10.0, 29.0, 20)
    np.testing.assert_array_equal(as_numpy(view), tensor.numpy())


@pytest.mark.parametrize(
    ("shape", "strides", "fits"),
    [
        ((4, 4), (4, 1), True),
        ((4, 4), (1, 4), True),
        ((4, 4), (8, 2), True),
        ((4, 4), (3, 1), False),
        ((4, 4), (0, 1), False),
        ((4, 1), (1, 0), True),
        ((2, 3, 4), (1, 2, 6), True),
        ((2, 2), (1, 1), False),
    ],
)
def test_only_elements_that_share_no_memory_pass(shape, strides, fits):
    array = np.lib.stride_tricks.as_strided(np.zeros(100, np.float32), shape, tuple(4 * s for s in strides))
    if fits:
        check_strides("A", view_of("A", array))
    else:
        with pytest.raises(TileError, match="elements of A overlap"):
            check_strides("A", view_of("A", array))


def test_sizes_are_read_off_whatever_argument_has_them():
    parameters = [
        Parameter("A", "tensor", "float32", ("M + 1", "K")),
        Parameter("B", "tensor", "float32", ("K", "M")),
        Parameter("n", "scalar", "int32"),
    ]
    views = {"A": view_of("A", np.zeros((4, 5), np.float32)), "B": view_of("B", np.zeros((5, 3), np.float32))}
    assert match_sizes("f", parameters, views) == {"K": 5, "M": 3}
    views["A"] = view_of("A", np.zeros((5, 5), np.float32))
    with pytest.raises(TileError, match=r"TL502.*axis 0 of A is 5, and M \+ 1 is 4"):
        match_sizes("f", parameters, views)


def test_strides_that_a_signature_fixes_are_checked():
    parameters = [Parameter("A", "tensor", "float32", (3, 4), ("S", 1))]
    assert match_sizes("f", parameters, {"A": view_of("A", np.zeros((3, 8), np.float32)[:, :4])}) == {"S": 8}
    with pytest.raises(TileError, match=r"TL505.*stride 1 of A is 2"):
        match_sizes("f", parameters, {"A": view_of("A", np.zeros((3, 8), np.float32)[:, ::2])})


@pytest.mark.parametrize(
    ("size", "value"), [(7, 7), ("M", 6), ("M // 4 + 1", 2), ("min(M, 4)", 4), ("T.max(M, 9)", 9)]
)
def test_sizes_are_numbers_or_expressions(size, value):
    assert evaluate(size, {"M": 6}) == value


def test_fingerprints_tell_apart_what_needs_another_kernel_and_nothing_else():
    a = torch.zeros(8, 8)
    assert fingerprint(a) == fingerprint(torch.ones(8, 8))
    different = [a.t().contiguous().t(), a[:7], a.double(), torch.zeros(65)[1:].view(8, 8), a.numpy()]
    assert all(fingerprint(d) != fingerprint(a) for d in different)
    assert fingerprint(3) == fingerprint(4)
    assert fingerprint(3, by_value=True) != fingerprint(4, by_value=True)
    assert fingerprint(1, by_value=True) != fingerprint(True, by_value=True)
    assert fingerprint(1.0, by_value=True) != fingerprint(1, by_value=True)
    hash(fingerprint([1, 2], by_value=True))
