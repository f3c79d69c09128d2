"""Every wrong argument ends in a TileError with its code, naming the argument, and leaves nothing in the
cache.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilelab
from tests.driver.kernels import add, annotated_add, jit, lazy_add, lazy_open, matmul, open_rows, scaled
from tilelab.errors import TileError
from tilelab.settings import settings

ONES = np.ones((8, 16), np.float32)


def refused(code, *words):
    """A context that wants a TileError with this code whose text has these words."""
    return pytest.raises(TileError, match=rf"(?s)error\[{code}\].*" + ".*".join(words))


@pytest.fixture(autouse=True)
def cache(tmp_path):
    with settings(cache=str(tmp_path / "cache")):
        yield
    assert not list(tmp_path.rglob("*.tile")), "a refused call left an entry in the cache"
    assert not [p for p in tmp_path.rglob("*") if p.is_file()], "a refused call left a file"


def test_a_missing_argument_is_named():
    with refused("TL501", "lacks the argument B"):
        jit(add)(ONES[0])


def test_too_many_arguments_are_counted():
    with refused("TL501", "takes 3 arguments, and 4 were given"):
        jit(add)(ONES[0], ONES[0], 32, 5)


def test_an_argument_that_is_not_there_is_named():
    with refused("TL501", "'blok'"):
        jit(add)(ONES[0], ONES[0], blok=32)


def test_an_argument_given_twice_is_named():
    with refused("TL501", "argument A", "twice"):
        jit(add)(ONES[0], A=ONES[0])


def test_a_wrong_rank_names_the_argument():
    with refused("TL502", "B has 1 axes"):
        jit(annotated_add)(ONES, ONES[0])


def test_a_wrong_dtype_names_the_argument():
    with refused("TL503", "B is float64"):
        jit(annotated_add)(ONES, ONES.astype(np.float64))


def test_sizes_that_contradict_name_both_arguments():
    with refused("TL502", "B", "has 15", "16 from axis 1 of A"):
        jit(annotated_add)(ONES, ONES[:, :15].copy())


def test_open_sizes_that_contradict_name_both_arguments():
    with refused("TL502", "axis 0 of B is 7", "M is 8", "axis 0 of A"):
        jit(open_rows)(ONES, ONES[:7])


def test_inner_sizes_of_a_matmul_that_differ_are_named():
    a, b = ONES.astype(np.float16), np.ones((15, 8), np.float16)
    with refused("TL502", "axis 0 of B has 15", "K is 16 from axis 1 of A"):
        jit(matmul)(a, b)


def test_elements_that_share_memory_are_refused():
    stretched = np.broadcast_to(np.ones(1, np.float32), (8,))
    with refused("TL505", "elements of A overlap"):
        jit(add)(stretched, ONES[0, :8])
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(20, dtype=np.float32), 4)
    with refused("TL505", "elements of A overlap"):
        jit(annotated_add)(windows, windows.copy())


def test_negative_strides_are_refused():
    with refused("TL505", "B has negative strides"):
        jit(add)(ONES[0], ONES[0][::-1])


def test_strides_that_split_elements_are_refused():
    packed = np.zeros(8, np.dtype([("x", np.float32), ("y", np.uint8)]))["x"]
    with refused("TL505", "A has strides of"):
        jit(add)(packed, ONES[0, :8])


def test_another_byte_order_is_refused():
    with refused("TL503", "A has the byte order"):
        jit(add)(ONES[0].astype(">f4"), ONES[0])


def test_another_device_is_named():
    torch = pytest.importorskip("torch")
    elsewhere = torch.empty(16, device="meta")
    with refused("TL504", "A is on meta"):
        jit(add)(elsewhere, elsewhere)


def test_tensors_of_two_devices_name_both():
    torch = pytest.importorskip("torch")
    with refused("TL504", "B is on meta"):
        jit(add)(torch.ones(16), torch.empty(16, device="meta"))


def test_a_sparse_tensor_is_refused():
    torch = pytest.importorskip("torch")
    with refused("TL505", "A is a sparse_coo tensor"):
        jit(add)(torch.ones(16).to_sparse(), torch.ones(16))


def test_a_number_where_a_tensor_is_wanted_is_refused():
    with refused("TL503", "the value is of type int, which has no shape", "A.shape"):
        jit(add)(3, ONES[0])


def test_a_tensor_where_a_number_is_wanted_is_refused():
    with refused("TL503", "factor is a tensor", "float32 number"):
        jit(scaled)(ONES[0], ONES[0])


def test_a_misspelt_pass_config_is_refused():
    with refused("TL405", "tl.disable_warp_specialised", "tl.disable_warp_specialized"):
        jit(add, pass_configs={"tl.disable_warp_specialised": True})


def test_a_misspelt_keyword_of_jit_is_refused():
    with refused("TL103", "'out_index'"):
        jit(add, out_index=-1)


def test_an_unknown_target_is_refused():
    with refused("TL401", "cuda:sm_75"):
        jit(add, target="cuda:sm_75")(ONES[0], ONES[0])


def test_an_output_index_that_is_not_there_is_refused():
    with refused("TL105", "out_idx=5"):
        tilelab.compile(lazy_add(8), out_idx=5, target="llvm")


def test_a_kernel_that_was_never_called_has_no_arguments_to_trace():
    with refused("TL406", "was not called yet"):
        tilelab.trace_of(jit(add))


class TestOfACompiledKernel:
    """These kernels are compiled before the wrong call, so their entries are not the wrong call's."""

    @pytest.fixture(autouse=True)
    def cache(self):
        with settings(cache="off"):
            yield

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            ((ONES[0, :8],), "TL501", ["lacks the argument B"]),
            ((ONES[0, :8],) * 4, "TL501", ["takes 2 arguments, and 4"]),
            ((ONES[0, :8], ONES[:8, :1].copy()), "TL502", ["B has 2 axes"]),
            ((ONES[0, :8], ONES[0, :9]), "TL502", ["axis 0 of B is 9", "compiled for 8"]),
            ((ONES[0, :8], ONES[0, :8].astype(np.int32)), "TL503", ["B is int32"]),
            ((ONES[0, :8], 3), "TL503", ["B is an int"]),
        ],
    )
    def test_its_signature_is_checked(self, arguments, code, words):
        kernel = jit(lazy_add, out_idx=-1)(8)
        with refused(code, *words):
            kernel(*arguments)

    def test_open_sizes_that_contradict_name_both(self):
        kernel = jit(lazy_open, out_idx=-1)(16)
        with refused("TL502", "axis 0 of B is 5", "N is 4", "axis 1 of A"):
            kernel(np.ones((3, 4), np.float32), np.ones((5, 16), np.float32))
