"""The views of tilelab: what a notebook, a page, a picture and a terminal show of a compile.

`%load_ext tilelab_viz` in a notebook (or `tilelab_viz.install()`) makes a Trace show itself and adds
`%%tilelab`.
"""

from tilelab_viz.bundle import MIME, display_data, export_html, mime_bundle
from tilelab_viz.notebook import install, load_ipython_extension, unload_ipython_extension
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
