"""The command `tilelab`: show, doctor, explain, demo. What a notebook draws, a terminal can read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tilelab.cli import demo, doctor, explain, show
from tilelab.errors import InternalError, TileError

__all__ = ["main"]

_COMMANDS = (show, doctor, explain, demo)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the status is 0 for success, 1 for a failed demo or check, 2 for a mistake, 3 for a
    fault of ours.
    """
    parser = argparse.ArgumentParser(prog="tilelab", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add(commands)
    options = parser.parse_args(argv)
    try:
        return int(options.run(options))
    except TileError as error:
        print(error, file=sys.stderr)
        return 2
    except InternalError as error:
        print(f"internal error: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        # The reader of our output has gone, as in `tilelab show … | head`.
        sys.stderr.close()
        return 0
