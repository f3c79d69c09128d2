"""`tilelab show FILE::NAME`: what every pass did to it, as a table, one pass in full, JSON or a page."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from tilelab.errors import TileError

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "show",
        help="what every pass did to a kernel",
        description="Shows what every pass did to a kernel, without running it.",
        epilog="Arguments come from --arg, else from EXAMPLE in the file (a dict of them) or from a line "
        "`Example: A=float16[512,1024] B=float16[1024,512]` in the kernel's docstring.",
        allow_abbrev=False,
    )
    parser.add_argument("kernel", metavar="FILE::NAME", help="a Python file and the kernel in it")
    parser.add_argument(
        "--target", default=None, help="llvm, cuda:sm_90a, hip:gfx942, …; default: this machine's"
    )
    parser.add_argument(
        "--pass", dest="step", metavar="PASS", help="show this pass in full: its reasons and its diff"
    )
    parser.add_argument("--code", action="store_true", help="print the generated code instead")
    parser.add_argument("--json", action="store_true", help="print the Trace as JSON instead")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page that opens offline")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="A=float16[512,1024], or block_M=64; repeat it",
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Trace the kernel and print what was asked for. A kernel that a pass refuses is shown up to there,
    status 2.
    """
    from tilelab.cli.arguments import check_needed, example_of, load_kernel, read_argument
    from tilelab.driver import trace

    given = dict(read_argument(text) for text in options.arg)
    # Standard output is for what was asked for; what the user's file prints goes beside it.
    with contextlib.redirect_stdout(sys.stderr):
        kernel, module = load_kernel(options.kernel)
        if not given:
            given = dict(example_of(kernel, module) or {})
        if not given:
            check_needed(kernel, options.kernel)
        try:
            found, failed = trace(kernel, target=options.target, **given), None
        except TileError as error:
            found, failed = getattr(error, "trace", None), error
            if found is None:
                raise
    _write(found, options)
    if failed is not None:
        print(failed, file=sys.stderr)
    return 0 if failed is None else 2


def _write(trace: Any, options: Namespace) -> None:
    from tilelab.cli.viewers import html_of, text_of, write_page

    if options.html is not None:
        write_page(options.html, html_of(trace))
        print(f"wrote {options.html}", file=sys.stderr)
    if options.json:
        print(json.dumps(trace.to_json()))
    elif options.code:
        if trace.code is None:
            raise TileError("TL406", "there is no code: the pipeline did not reach its end")
        print("\n".join(line.text for line in trace.code.lines))
    elif options.html is None or options.step:
        color = sys.stdout.isatty()
        width = shutil.get_terminal_size((100, 40)).columns if color else 160
        print(text_of(trace, options.step, color, width))
