"""Every pass has a Before and an After in its docstring that hold, or a Before that it refuses; and its
name's promise.
"""

from __future__ import annotations

import itertools
import re
import sys
import textwrap

import pytest

from tests.kernels import CASES
from tests.test_meaning import PIPELINES, steps_of
from tilelab.errors import TileError
from tilelab.ir import build as b
from tilelab.ir.nodes import AllocBuffer, For, Region, TileCall, same_structure
from tilelab.ir.rewrite import collect
from tilelab.ir.statements import children, each_statement
from tilelab.ir.text import parse_function, print_node
from tilelab.ir.tile_ops import op_of
from tilelab.passes.base import Pass

PASSES = {p.name: p for pipeline in PIPELINES.values() for p in pipeline}
BLOCK = re.compile(r"^(Before|After|Refused)( \([^)\n]*\))?:([^\n]*)\n(?:\n((?:    [^\n]*\n|\n)+))?", re.M)


def module_text(step: Pass) -> str:
    """The docstring that describes the pass."""
    return sys.modules[step.run.__module__].__doc__ or ""


def tensors(text: str) -> str:
    """The parameters that an example mentions: A, B and C of 128 floats, or 64 along each of several axes."""
    made = []
    for name in "ABC":
        found = re.search(rf"\b{name}\[([^\]]*)\]", text)
        if found and f"{name} = T.alloc" not in text:
            rank = len(found[1].split(","))
            made.append(f'{name}: T.Buffer({(128,) if rank == 1 else (64,) * rank}, "float32")')
    return ", ".join(made)


def function(body: str, options: dict[str, str], stage: str, params: str):
    """An example's body as a function of one block; on GPUs `tx` is the thread."""
    attrs: dict[str, object] = {"tl.stage": stage}
    for key, value in options.items():
        attrs[f"tl.{key}"] = int(value) if value.isdigit() else value
    text = textwrap.dedent(body).strip()
    header = f"@T.prim_func\ndef main({params}):\n    T.func_attr({attrs})\n"
    if options["target"] == "llvm":
        return parse_function(header + textwrap.indent(text, " " * 4) + "\n")
    launch = f'    with T.launch_thread("threadIdx.x", {options["threads"]}) as tx:\n'
    return parse_function(header + launch + textwrap.indent(text, " " * 8) + "\n")


def options_of(text: str) -> dict[str, str]:
    """`(cuda:sm_80, threads=64)` as a dict; 32 threads on a GPU and one on a CPU unless it says otherwise."""
    found = {"target": "llvm"}
    for part in filter(None, (p.strip() for p in text.strip().strip("()").split(","))):
        key, _, value = part.partition("=")
        found |= {key: value} if value else {"target": key}
    return {"threads": "1" if found["target"] == "llvm" else "32", **found}


def examples():
    """(pass, Before, options, After or None, After's options, error code or None) of every docstring."""
    for step in PASSES.values():
        blocks = BLOCK.findall(module_text(step))
        for (kind, options, _, before), (second, more, code, after) in zip(
            blocks[::2], blocks[1::2], strict=True
        ):
            assert kind == "Before", f"{step.name}: {kind} where Before should stand"
            yield pytest.param(
                step, before, options_of(options), after if second == "After" else None, options_of(more),
                code.strip() or None, id=f"{step.name}-{len(before)}",
            )  # fmt: skip


@pytest.mark.parametrize(("step", "before", "options", "after", "more", "code"), list(examples()))
def test_the_example_in_the_docstring_holds(step: Pass, before, options, after, more, code) -> None:
    params = tensors(before + (after or ""))
    if step.name.endswith("_cpu"):
        options = {"cpu": "cpu-avx512", **options}
    f = function(before, options, step.needs, params)
    if code is not None:
        with pytest.raises(TileError) as caught:
            step.run(f)
        assert caught.value.code == code
        return
    got = b.with_stage(step.run(f), step.gives)
    want = function(after, {**options, **{k: v for k, v in more.items() if k not in ("threads", "target")}},
                    step.gives, params)  # fmt: skip
    assert body_of(got) == body_of(want)


def body_of(f) -> list[str]:
    """The function's lines without its attributes, which passes may add to."""
    return [line for line in print_node(f).splitlines() if "T.func_attr" not in line]


def test_every_pass_has_an_example_and_a_sentence() -> None:
    shown = {p.values[0].name for p in examples()}
    same_file = {p.name for p in PASSES.values() for q in PASSES.values()
                 if p.run is q.run and q.name in shown}  # fmt: skip
    assert sorted(set(PASSES) - shown - same_file) == []
    for step in PASSES.values():
        assert step.doc.endswith((".", ":")), f"{step.name}: {step.doc}"


# ---- what the first word of a name promises

LOWERED = {
    "lower_copy": "copy", "lower_gemm": "gemm", "lower_fill": "fill", "lower_reduce": "reduce",
    "lower_cumsum": "cumsum",
}  # fmt: skip


def shape_of(node: object) -> object:
    """A statement without its annotations and keywords: what a plan_ pass must leave alone."""
    if isinstance(node, TileCall):
        return (op_of(node).name, [print_node(a).splitlines()[-1] for a in node.args])
    if isinstance(node, For):
        return ("for", str(node.min), str(node.extent), int(node.kind))
    if isinstance(node, AllocBuffer):
        return ("alloc", str(node.buffer.name), [str(n) for n in node.buffer.shape], str(node.buffer.scope()))
    return (type(node).__name__, "" if children(node) else print_node(node).splitlines()[-1])


def skeleton(f) -> list[object]:
    return [shape_of(s) for s in each_statement(f.body)]


def pairs():
    for case in CASES:
        for target in case.targets:
            yield pytest.param(case, target, id=f"{case.name}-{target}")


@pytest.mark.parametrize(("case", "target"), list(pairs()))
def test_the_first_word_of_a_pass_is_kept(case, target) -> None:
    steps = steps_of(case, target)
    for (_, before), (name, after) in itertools.pairwise(steps):
        if name.startswith("check_"):
            assert after.same_as(before), f"{name} gave back another function"
        if name.startswith("plan_"):
            assert skeleton(after) == skeleton(before), f"{name} changed more than annotations"
        if name in LOWERED:
            left = [c for c in collect(after.body, TileCall) if op_of(c).name == LOWERED[name]]
            assert not left, f"{name} left {left}"
        if name in ("insert_barriers",):
            kept = [s for s in flat(after) if not (isinstance(s, TileCall) and op_of(s).name == "barrier")]
            assert len(kept) == len(flat(before)), f"{name} did more than insert"
            assert all(same_structure(x, y) for x, y in zip(kept, flat(before), strict=True))


def flat(f) -> list[object]:
    """The leaves in order, by structure."""
    return [s for s in each_statement(f.body) if not children(s)]


def test_regions_of_tile_operations_stay_inside_their_buffers() -> None:
    for case in CASES:
        parsed = case.build()
        for region in collect(parsed.func.body, Region):
            assert len(region.region) == len(region.source.shape)
