"""The command: what it prints, its statuses, and mistakes on the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import tilelab
from tilelab.cli import main
from tilelab.cli.arguments import load_kernel
from tilelab.cli.viewers import pass_table, viewer
from tilelab.errors import CODES

KERNEL = '''
import tilelab
import tilelab.language as T


@tilelab.jit
def add(A, B, block=32):
    """C = A + B.

    Example: A=float32[100] B=float32[100] block=16
    """
    (N,) = A.shape
    C = T.empty((N,), A.dtype)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C


@tilelab.jit
def forgetful(A):
    C = T.empty((32, 32), A.dtype)
    with T.Kernel(1, threads=32):
        tile = T.alloc_fragment((32, 32), "float32")
        T.copy(tile, C)
    return C


@tilelab.jit
def bare(Left, Right, block=32):
    with T.Kernel(1, threads=32):
        T.copy(Left, Right)


print("the file speaks")


@T.prim_func
def ready(A: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            A[i] = A[i] * 2.0


EXAMPLE = {"forgetful": {"A": "float32[32,32]"}}
not_a_kernel = 3
'''


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "kernels_to_show.py"
    place.write_text(KERNEL)
    return place


def said(capsys, *argv):
    status = main(list(map(str, argv)))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_show_prints_the_table_of_passes(capsys, file):
    status, out, _ = said(capsys, "show", f"{file}::add", "--target", "llvm")
    assert status == 0
    assert "lower_blocks_cpu" in out
    assert "changed" in out


def test_show_prints_one_pass_with_its_diff(capsys, file):
    if viewer("text") is None:
        pytest.skip("tilelab is on the path but not installed, so its viewers are not announced")
    status, out, _ = said(capsys, "show", f"{file}::add", "--target", "llvm", "--pass", "lower_parallel_cpu")
    assert status == 0
    assert "lower_parallel_cpu" in out
    assert "for i in" in out


def test_show_takes_arguments_from_the_line(capsys, file):
    shown = ("show", f"{file}::add", "--target", "llvm", "--json", "--arg", "A=float16[64]")
    status, out, _ = said(capsys, *shown, "--arg", "B=float16[64]")
    data = json.loads(out)
    assert status == 0
    assert data["schema"] == "tilelab.trace.v1"
    assert 'A: T.Buffer((64,), "float16")' in "\n".join(x["text"] for x in data["steps"][0]["lines"])
    assert "block=32" in data["call"]


def test_what_the_file_prints_goes_to_standard_error(capsys, file):
    _, out, err = said(capsys, "show", f"{file}::add", "--target", "llvm", "--json")
    assert json.loads(out)["kernel"] == "add"
    assert "the file speaks" in err


def test_an_unknown_pass_lists_the_passes_with_the_nearest_first(capsys, file):
    _, _, err = said(capsys, "show", f"{file}::add", "--target", "llvm", "--pass", "lower_blocks")
    listed = err.partition("passes: ")[2]
    assert listed.startswith("lower_blocks_cpu, ")
    assert "check_initialized" in listed


def test_a_page_in_a_missing_folder_is_one_error(capsys, file, tmp_path):
    if viewer("html") is None:
        pytest.skip("tilelab is on the path but not installed, so its viewers are not announced")
    place = tmp_path / "missing" / "page.html"
    status, _, err = said(capsys, "show", f"{file}::add", "--target", "llvm", "--html", place)
    assert status == 2
    assert f"the folder {place.parent} is missing" in err


def test_the_table_of_the_demo_numbers_passes_as_show_does(capsys, file):
    _, out, _ = said(capsys, "show", f"{file}::ready", "--target", "llvm")
    _, data, _ = said(capsys, "show", f"{file}::ready", "--target", "llvm", "--json")
    names = [step["name"] for step in json.loads(data)["steps"]]
    table = pass_table(tilelab.compile(load_kernel(f"{file}::ready")[0], target="llvm").trace.payload())
    for number, name in enumerate(names, 1):
        row = re.compile(rf"^ *{number}  {name} ", re.MULTILINE)
        assert row.search(table)
        assert row.search(out)


def test_show_takes_arguments_from_the_docstring_and_from_example(capsys, file):
    _, out, _ = said(capsys, "show", f"{file}::add", "--target", "llvm", "--json")
    assert "block=16" in json.loads(out)["call"]
    status, out, err = said(capsys, "show", f"{file}::forgetful", "--target", "cuda:sm_80")
    assert status == 2
    assert "check_initialized" in out
    assert "TL204" in err


def test_show_reads_a_prim_func(capsys, file):
    status, out, _ = said(capsys, "show", f"{file}::ready", "--target", "llvm")
    assert (status, "parse" in out) == (0, True)


def test_show_writes_a_page(capsys, file, tmp_path):
    pytest.importorskip("tilelab_viz")
    if viewer("html") is None:
        pytest.skip("tilelab is on the path but not installed, so its viewers are not announced")
    page = tmp_path / "page.html"
    status, _, _ = said(capsys, "show", f"{file}::add", "--target", "llvm", "--html", page)
    assert status == 0
    assert "lower_blocks_cpu" in page.read_text()
    assert "<script src=" not in page.read_text()


def test_show_prints_the_code(capsys, file):
    status, out, _ = said(capsys, "show", f"{file}::add", "--target", "cuda:sm_80", "--code")
    assert status == 0
    assert "__global__ void" in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["show", "nowhere.py::f"], ["TL406", "no file nowhere.py"]),
        (["show", "FILE::ad"], ["TL406", "no kernel 'ad'", "add"]),
        (["show", "FILE::not_a_kernel"], ["TL406", "not_a_kernel"]),
        (["show", "FILE"], ["TL406", "4 kernels"]),
        (["show", "FILE::add", "--arg", "A"], ["TL501", "NAME=VALUE"]),
        (["show", "FILE::add", "--arg", "A=float32[4]"], ["TL501", "lacks the argument B"]),
        (["show", "FILE::add", "--arg", "A=floot[4]", "--arg", "B=float32[4]"], ["TL112", "floot"]),
        (["show", "FILE::add", "--target", "sm_12"], ["TL401", "sm_12"]),
        (["show", "FILE::add", "--target", "llvm", "--pass", "lower_bloks"], ["TL406", "lower_bloks"]),
        (
            ["show", "FILE::add", "--target", "llvm", "--pass", "nosuch"],
            ["TL406", "lower_blocks_cpu", "parse"],
        ),
        (["show", "FILE::add", "--arg", "A=float16[4"], ["TL501", "A=float16[512,1024]"]),
        (["show", "FILE::add", "--arg", "A=float16(4,4)"], ["TL501", "dtype[shape]"]),
        (["show", "FILE::add", "--arg", "A=float16[4 4]"], ["TL501", "dtype[shape]"]),
        (["show", "FILE::add", "--arg", "A="], ["TL501", "NAME=VALUE"]),
        (["show", "FILE::bare"], ["TL501", "--arg Left=dtype[shape] --arg Right=dtype[shape]"]),
        (["explain", "TL999"], ["TL406", "no error code TL999", "TL2xx tiles, layouts and instructions"]),
    ],
)
def test_mistakes_end_in_an_error_with_status_two(capsys, file, argv, words):
    status, _, err = said(capsys, *[a.replace("FILE", str(file)) for a in argv])
    assert status == 2
    for word in words:
        assert word in err


@pytest.mark.parametrize("code", [c.code for c in CODES])
def test_every_code_is_explained(capsys, code):
    status, out, _ = said(capsys, "explain", code)
    assert status == 0
    assert out.startswith(f"{code}: ")


def test_explain_takes_a_bare_number_and_lists_all(capsys):
    assert said(capsys, "explain", "203")[1].startswith("TL203")
    assert all(c.code in said(capsys, "explain")[1] for c in CODES[:1])


def test_doctor_says_what_is_there_and_warns_of_misspelt_settings(capsys, monkeypatch):
    status, out, _ = said(capsys, "doctor")
    assert status == 0
    for word in ("apache-tvm", "llvm", "cuda", "hip", "cache", "JupyterLab", "viewers"):
        assert word in out
    monkeypatch.setenv("TILELAB_CASHE", "x")
    status, out, _ = said(capsys, "doctor")
    assert status == 1
    assert "did you mean TILELAB_CACHE" in out


def test_doctor_names_nvcc_and_how_this_checkout_is_installed(capsys, monkeypatch, tmp_path):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tilelab.runtime.hip_build.find_tool", lambda: None)
    _, out, _ = said(capsys, "doctor")
    assert f"nvcc in {nvcc}" in out
    assert "pip install -e '.[hip]'" in out


def test_a_misspelt_option_is_an_error(file):
    with pytest.raises(SystemExit) as left:
        main(["show", str(file), "--taget", "llvm"])
    assert left.value.code == 2


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "tilelab", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "demo" in done.stdout
