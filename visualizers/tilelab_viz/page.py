"""A self-contained HTML page around a view: the static form, the view's data and the view's code inlined."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

__all__ = ["core_script", "page"]

# A page of its own follows the system's light or dark preference; inside JupyterLab its variables rule.
_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 12px 16px; max-width: 1500px;
  background: Canvas; color: CanvasText; }
.tl-columns { height: calc(100vh - 130px) !important; min-height: 420px; }
"""

# The page may load nothing: what it shows is in it.
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline' blob:; "
    "worker-src blob:"
)


def page(title: str, static: str, mime: str, data: dict[str, Any]) -> str:
    """The page's text; `static` stays in place until the script has drawn the view."""
    # "</" would end the script element, wherever it stands in the data.
    packed = json.dumps({"mime": mime, "data": data}).replace("</", "<\\/")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)} · tilelab</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<div data-tilelab-view></div>
<div data-tilelab-static>
{static}
</div>
</main>
<script type="application/json" data-tilelab-payload>{packed}</script>
<script>{core_script()}</script>
</body>
</html>
"""


@cache
def core_script() -> str:
    """The built JavaScript of the views; it starts itself where it finds a payload in the page."""
    text = files("tilelab_viz").joinpath("static").joinpath("tilelab-core.js").read_text(encoding="utf-8")
    return text.replace("</", "<\\/")
