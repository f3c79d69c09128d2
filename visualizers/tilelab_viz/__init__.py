"""The views of tilelab: what a notebook, a page, a picture and a terminal show of a compile.

In a notebook `import tilelab` makes a Trace show itself and adds `%%tilelab`; so does `%load_ext
tilelab_viz`. Everything but the hooks is loaded when it is first used: `import tilelab` calls `install`, and
stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tilelab_viz.notebook import install, load_ipython_extension, unload_ipython_extension

if TYPE_CHECKING:
    from tilelab_viz.bundle import MIME, display_data, export_html, mime_bundle
    from tilelab_viz.text import plain_text, terminal

__all__ = [
    "MIME",
    "display_data",
    "export_html",
    "install",
    "load_ipython_extension",
    "mime_bundle",
    "plain_text",
    "terminal",
    "unload_ipython_extension",
]

_HOMES = {
    "MIME": "tilelab_viz.bundle",
    "display_data": "tilelab_viz.bundle",
    "export_html": "tilelab_viz.bundle",
    "mime_bundle": "tilelab_viz.bundle",
    "plain_text": "tilelab_viz.text",
    "terminal": "tilelab_viz.text",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
