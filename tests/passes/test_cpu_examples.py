"""The Before/After pairs in the docstrings of the CPU's passes."""

from __future__ import annotations

import importlib
import re
from textwrap import dedent

import pytest

from tilelab.ir import build as b
from tilelab.ir.nodes import PrimFunc
from tilelab.ir.text import parse_body, print_node
from tilelab.pipelines.llvm import LLVM

OURS = [p for p in LLVM if p.name.endswith("_cpu")]
PAIR = re.compile(r"^Before(?: \((.*?)\))?:\n\n(.*?)^After:\n\n(.*)", re.MULTILINE | re.DOTALL)


def parsed(text: str, options: str) -> PrimFunc:
    """The example as a function of the tensors that it mentions."""
    params = []
    for name in "ABC":
        found = re.search(rf"\b{name}\[(.*?)\]", text)
        if found and f"{name} = T.alloc" not in text:
            rank = len(found[1].split(","))
            params.append(f'{name}: T.Buffer(({"64, " * rank}), "float32")')
    f = parse_body(dedent(text).strip("\n"), ", ".join(params)).with_attr(
        {"global_symbol": "main", "tl.target": "llvm"}
    )
    cpu = dict(part.strip().split("=") for part in options.split(",") if "=" in part).get("cpu", "cpu-avx512")
    return b.with_attrs(f, cpu=cpu, threads=1)


def body(f: PrimFunc) -> list[str]:
    return [line for line in print_node(f.without_attr("tl.cpu")).splitlines() if "T.func_attr" not in line]


@pytest.mark.parametrize("step", OURS, ids=lambda p: p.name)
def test_the_example_in_the_docstring_holds(step) -> None:
    doc = importlib.import_module(step.run.__module__).__doc__ or ""
    options, before, after = PAIR.search(doc).groups(default="")
    assert body(step.run(parsed(before, options))) == body(parsed(after, options))
