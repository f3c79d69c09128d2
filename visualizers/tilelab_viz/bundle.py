"""The one MIME bundle of a view, and the one HTML page: data for our extension, and forms that need nothing.

`application/vnd.tilelab.trace.v1+json` is drawn by the JupyterLab extension; `text/html`, `image/png` and
`text/plain` are what other front ends, exports, sanitisers and terminals show.
"""

from __future__ import annotations

import base64
from typing import Any

from tilelab.trace.schema import TracePayload
from tilelab_viz.compact import encode
from tilelab_viz.page import page
from tilelab_viz.picture import WIDTH, draw
from tilelab_viz.static_html import static_html
from tilelab_viz.text import plain_text

__all__ = ["MIME", "display_data", "export_html", "mime_bundle"]

MIME = "application/vnd.tilelab.trace.v1+json"
# A saved notebook keeps the whole bundle; the packed data, the text and twice the picture stay under 300 KB.


def mime_bundle(payload: TracePayload) -> dict[str, Any]:
    """The bundle of a Trace: data, HTML without script, PNG in base64, text of at most 40 lines."""
    png = draw(payload)
    bundle = {
        MIME: encode(payload),
        "text/html": static_html(payload, png),
        "text/plain": plain_text(payload),
    }
    if png is not None:
        bundle["image/png"] = base64.b64encode(png).decode()
    return bundle


def display_data(payload: TracePayload) -> tuple[dict[str, Any], dict[str, Any]]:
    """The bundle and its metadata for Jupyter: the PNG is shown at half its pixels."""
    return mime_bundle(payload), {"image/png": {"width": WIDTH}}


def export_html(payload: TracePayload) -> str:
    """One self-contained page that opens offline, is interactive, and readable without JavaScript."""
    return page(
        f"{payload.kernel} · {payload.target}", static_html(payload, draw(payload)), MIME, encode(payload)
    )
