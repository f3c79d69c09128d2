"""`tilelab explain CODE`: what an error code means, with a kernel that ends in it and the mended one.

The examples stand with the tests in a checkout (`tests/errors/`), and in `tilelab/cli/errors/` of an
installed wheel.
"""

from __future__ import annotations

import ast
import difflib
import textwrap
from argparse import Namespace
from pathlib import Path
from typing import Any

import tilelab
from tilelab.errors import CODES, TileError

__all__ = ["add", "example_file", "read_example"]

_FAMILIES = {
    "1": "reading the source", "2": "tiles, layouts and instructions", "3": "memory and synchronisation",
    "4": "targets and tools", "5": "running", "6": "faults that emulation found",
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("explain", help="what an error code means", allow_abbrev=False)
    parser.add_argument("code", metavar="CODE", nargs="?", help="such as TL203; without one, all are listed")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Print the meaning of a code and its example, or the list of codes."""
    if options.code is None:
        for code in CODES:
            print(f"{code.code}  {code.title}")
        return 0
    wanted = options.code.upper()
    wanted = wanted if wanted.startswith("TL") else f"TL{wanted}"
    found = next((c for c in CODES if c.code == wanted), None)
    if found is None:
        families = "; ".join(f"TL{digit}xx {about}" for digit, about in _FAMILIES.items())
        near = difflib.get_close_matches(wanted, [c.code for c in CODES], 1, 0.75)
        question = f"did you mean {near[0]}? " if near else ""
        help = f"{question}tilelab explain lists all codes: {families}"
        raise TileError("TL406", f"there is no error code {options.code}", help=help)
    print(f"{found.code}: {found.title}\n({_FAMILIES[found.code[2]]})")
    place = example_file(found.code)
    if place is not None:
        prose, code = read_example(place)
        print(
            f"\n{prose}\n\nA kernel that ends in it, and the mended one:\n\n{textwrap.indent(code, '    ')}"
        )
    return 0


def example_file(code: str) -> Path | None:
    """The failing example of a code."""
    package = Path(tilelab.__file__).parent
    for folder in (package / "cli" / "errors", package.parent / "tests" / "errors"):
        if (place := folder / f"{code.lower()}.py").is_file():
            return place
    return None


def read_example(place: Path) -> tuple[str, str]:
    """The explanation in an example's docstring, and the code below it."""
    text = place.read_text(encoding="utf-8")
    tree = ast.parse(text)
    end = tree.body[0].end_lineno or 0
    return (ast.get_docstring(tree) or "").strip(), "\n".join(text.splitlines()[end:]).strip()
