"""The pass view of a Trace: what every pass of a compile did, as data for the browser and in static forms.

Run as a program it writes its own demo: `python -m tilelab_viz.views.passes [TRACE.json] > demo.html`, where
TRACE.json is what `tilelab show --json` writes; without it the trace of a matrix product is shown.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path

from tilelab.trace.schema import TracePayload, from_json
from tilelab_viz.bundle import export_html, mime_bundle
from tilelab_viz.text import terminal

__all__ = ["export_html", "main", "mime_bundle", "sample", "terminal"]


def sample() -> TracePayload:
    """A trace of a pipelined matrix product, written by hand in the compiler's form, for demos and tests."""
    return from_json(
        json.loads(files("tilelab_viz").joinpath("sample_matmul.json").read_text(encoding="utf-8"))
    )


def main(arguments: list[str]) -> int:
    """Write the page of the trace in the named file, or of the sample, to standard output."""
    payload = from_json(json.loads(Path(arguments[0]).read_text(encoding="utf-8"))) if arguments else sample()
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue]
    sys.stdout.write(export_html(payload))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
