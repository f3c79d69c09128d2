"""The generated pages of the reference: from docstrings, tables and example files to Markdown."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import tilelab
from tilelab import settings
from tilelab.cli.explain import example_file, read_example
from tilelab.errors import CODES
from tilelab.hardware import CHIPS, ROWS, Instruction
from tilelab.ir.tile_ops import OPS
from tilelab.passes.base import Pass

__all__ = ["PAGES", "pages"]

TARGETS = ("llvm", "cuda:sm_80", "hip:gfx942")
FAMILIES = {
    "1": "Reading the source", "2": "Tiles, layouts and instructions", "3": "Memory and synchronisation",
    "4": "Targets and tools", "5": "Running", "6": "Faults that emulation found",
}  # fmt: skip


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [list(head), *map(list, rows)]
    text = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    text.insert(1, "|" + " --- |" * len(lines[0]))
    return "\n".join(text)


def code(text: str, language: str = "") -> str:
    """A fenced block."""
    return f"```{language}\n{text.rstrip()}\n```"


def sentence(thing: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def signature(thing: Any) -> str:
    """The parameters, without annotations."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


# ---- passes


PASSES = """# Passes

A pipeline is a tuple of passes. The first word of a name is a promise: `check_` changes nothing, `plan_` only
decides, `lower_x` leaves no x, `insert_` only adds. The examples below are tests."""


def passes_page() -> str:
    """Each pipeline in order, then every pass with its Before and After."""
    out = [PASSES]
    known: dict[str, Pass] = {}
    for target in TARGETS:
        rows = []
        for number, step in enumerate(tilelab.pipeline(target), 1):
            known.setdefault(step.name, step)
            stage = step.gives if step.needs == step.gives else f"{step.needs} → {step.gives}"
            rows.append((number, f"[{step.name}](#{step.name})", stage, step.doc))
        out += [f"## Pipeline of {target}", table(("", "pass", "stage", "what it does"), rows)]
    for name, step in sorted(known.items()):
        text = inspect.cleandoc(sys.modules[step.run.__module__].__doc__ or "")
        out += [f"## {name}", _examples(text)]
    return "\n\n".join(out)


def _examples(text: str) -> str:
    """A pass's docstring with its Before and After as fenced blocks."""
    out: list[str] = []
    for part in re.split(r"(?m)^(?=\S)", text):
        head, _, rest = part.partition("\n")
        if re.match(r"(Before|After)\b.*:$", head):
            out += [f"**{head.rstrip(':')}**", code(inspect.cleandoc(rest), "text")]
        elif head.startswith("Refused"):
            found = head.partition(":")[2].strip()
            out.append(f"**Refused** with [{found}](errors.md#{found.lower()})")
        else:
            out.append(part.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(p for p in out if p))


# ---- hardware


INSTRUCTIONS = """One row describes an instruction to the choice of instructions, the printer, the emulator
and the costs. `d` is the destination; *done* says when the effect is there."""


def instructions_page(dialects: tuple[str, ...], title: str) -> Callable[[], str]:
    """A page for the rows that are written in these dialects."""

    def page() -> str:
        mine = [row for row in ROWS if row.dialect in dialects]
        out = [f"# Instructions: {title}", INSTRUCTIONS]
        head = ("row", "needs", "by", "d", "a", "b", "done", "cost")
        for family in dict.fromkeys(row.family for row in mine):
            rows = [row for row in mine if row.family == family]
            out += [f"## {family}", f"Source of the facts: {rows[0].source}."]
            out.append(table(head, map(_row, rows) if len(rows) < 40 else _families(rows)))
        return "\n\n".join(out)

    return page


def _families(rows: list[Instruction]) -> Iterable[tuple[str, ...]]:
    """Rows that differ in n alone as one line, with the smallest and the largest n."""
    alike: dict[str, list[Instruction]] = {}
    for row in rows:
        alike.setdefault(re.sub(r"n\d+k", "n…k", row.name), []).append(row)
    for name, members in alike.items():
        first, last = _row(members[0]), _row(members[-1])
        cells = [x if x == y else f"{x} to {y}" for x, y in zip(first, last, strict=True)]
        yield (f"`{name}` ({len(members)} rows)", *cells[1:])


def _row(row: Instruction) -> tuple[str, ...]:
    operands = [_operand(dict(row.operands).get(name)) for name in ("d", "a", "b")]
    cost = (
        f"{row.cost.flops} flops" if row.cost.flops else (f"{row.cost.bytes} bytes" if row.cost.bytes else "")
    )
    return (f"`{row.name}`", row.needs or "any", row.scope.name, *operands, row.completes.value, cost)


def _operand(operand: Any) -> str:
    if operand is None:
        return ""
    size = "×".join(map(str, operand.tile))
    return f"{operand.dtype} {size} {type(operand).__name__.lower()}"


def chips_page() -> str:
    """Limits of every chip."""
    head = ("name", "product", "multiprocessors", "warp", "threads a block", "registers a thread")
    head += ("shared a block", "clock", "memory", "source")
    rows = []
    for c in CHIPS:
        sizes = (c.multiprocessors, c.warp, c.threads_per_block, c.thread_registers)
        rates = (f"{c.clock / 1e9:.2f} GHz", f"{c.bandwidth / 1e12:.2f} TB/s")
        rows.append(
            (f"`{c.arch}`", c.product, *sizes, f"{c.shared_per_block / 1024:g} KiB", *rates, c.source)
        )
    return "\n\n".join(["# Chips", "The limits that passes and the emulator know.", table(head, rows)])


# ---- settings, errors, language


def settings_page() -> str:
    """Every setting with its variable."""
    rows = [
        (f"`{s.name}`", f"`{s.variable}`", s.kind.__name__, repr(s.default), s.doc) for s in settings.SETTINGS
    ]
    text = "Set one in the environment, or for a block: `with tilelab.settings(verify=True): …`."
    return "\n\n".join(["# Settings", text, table(("name", "variable", "type", "default", "meaning"), rows)])


ERRORS = """# Error codes

Every error has a code, and `tilelab explain CODE` prints what stands here. The marked line is where the error
points; each example is also a test, and `works()` runs the mended version."""


def errors_page() -> str:
    """Every code with its explanation, its failing example and the mended one."""
    out = [ERRORS, table(("code", "meaning"), ((f"[{c.code}](#{c.code.lower()})", c.title) for c in CODES))]
    for digit, family in FAMILIES.items():
        out.append(f"## {family}")
        for item in (c for c in CODES if c.code[2] == digit):
            place = example_file(item.code)
            if place is None:
                raise FileNotFoundError(f"{item.code} has no example")
            prose, text = read_example(place)
            out += [
                f"### {item.code}",
                f"*{item.title[0].upper()}{item.title[1:]}.*",
                prose,
                code(text, "py"),
            ]
    return "\n\n".join(out)


def language_page() -> str:
    """The names of tilelab.language."""
    module = importlib.import_module("tilelab.language")
    functions, types = [], []
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if isinstance(value, str):
            types.append(f"`T.{name}`")
        else:
            functions.append((f"`T.{name}`", f"`{signature(value) or '—'}`", sentence(value)))
    return "\n\n".join([
        "# The language",
        "`import tilelab.language as T`. Any other name is an error that says what to write instead.",
        table(("name", "parameters", "meaning"), functions), "## Element types", ", ".join(types) + ".",
    ])  # fmt: skip


def tile_ops_page() -> str:
    """The operations that the IR adds to TIR."""
    rows = []
    for op in OPS:
        operands = ", ".join(f"{o.name} ({o.access})" for o in op.operands) or "as the row says"
        keywords = ", ".join(f"`{k}`" for k in op.config)
        rows.append((f"`T.{op.name}`", operands, keywords, ", ".join(op.stages), op.doc))
    text = "What passes see: TIR with these calls. The stages are told in [the IR](../internals/ir.md)."
    head = ("operation", "operands", "keywords", "stages", "meaning")
    return "\n\n".join(["# Tile operations of the IR", text, table(head, rows)])


# ---- Python and the command line


def api_page() -> str:
    """The public names of the package."""
    out = [
        "# Python",
        "`import tilelab`. The names of `tilelab.language` have [a page of their own](language.md).",
    ]
    for name in tilelab.__all__:
        value = getattr(tilelab, name)
        if inspect.ismodule(value) and not callable(value):
            out += [f"## {name}", f"A module: {sentence(value)}"]
            continue
        if inspect.ismodule(value):
            value = getattr(
                importlib.import_module({"trace": "tilelab.driver"}.get(name, f"tilelab.{name}")), name
            )
        if not inspect.isclass(value):
            out += [f"## {name}", code(f"tilelab.{name}{signature(value)}", "text")]
        else:
            out.append(f"## {name}")
        out.append(inspect.getdoc(value) or "")
    return "\n\n".join(out)


def cli_page() -> str:
    """The help of the command and of each of its commands."""
    cli = importlib.import_module("tilelab.cli")
    parser = argparse.ArgumentParser(prog="tilelab", description=cli.__doc__)
    commands = parser.add_subparsers(metavar="COMMAND")
    for module in cli._COMMANDS:
        module.add(commands)
    out = ["# The command `tilelab`", code(_help(parser), "text")]
    for name, sub in commands.choices.items():
        out += [f"## tilelab {name}", code(_help(sub), "text")]
    return "\n\n".join(out)


def _help(parser: argparse.ArgumentParser) -> str:
    # A fixed width, so that the page does not depend on the terminal.
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=88)
    return parser.format_help()


PAGES: tuple[tuple[str, Callable[[], str]], ...] = (
    ("language", language_page),
    ("api", api_page),
    ("cli", cli_page),
    ("errors", errors_page),
    ("settings", settings_page),
    ("passes", passes_page),
    ("tile_ops", tile_ops_page),
    ("instructions_nvidia", instructions_page(("ptx", "c"), "NVIDIA")),
    ("instructions_amd", instructions_page(("hip",), "AMD")),
    ("instructions_cpu", instructions_page(("llvm",), "CPU")),
    ("chips", chips_page),
)


def pages() -> dict[str, str]:
    """Paths under docs/ and the Markdown of every generated page."""
    return {f"reference/{name}.md": make() + "\n" for name, make in PAGES}
