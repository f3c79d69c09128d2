"""The forms that need no extension: HTML, picture and text, also after export and after sanitisers."""

from __future__ import annotations

import base64
import json
import re
import struct
import unicodedata
from html.parser import HTMLParser

import pytest
from recorded_traces import trace

from tilelab.errors import TileError
from tilelab_viz import MIME, display_data, export_html, mime_bundle, plain_text, terminal
from tilelab_viz.entries import summary

nbformat = pytest.importorskip("nbformat", reason="nbformat comes with JupyterLab")
nbconvert = pytest.importorskip("nbconvert", reason="nbconvert comes with JupyterLab")


class Page(HTMLParser):
    """Collects tags, attributes, text and pictures; `sanitise` leaves out what GitHub's sanitiser drops."""

    def __init__(self, sanitise: bool = False) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.pictures: list[bytes] = []
        self.text = ""
        self.hidden = 0
        self.sanitise = sanitise

    def handle_starttag(self, tag, attrs):
        if self.sanitise and tag in ("style", "script", "svg"):
            self.hidden += 1
        if self.hidden:
            return
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        source = dict(attrs).get("src") or ""
        if tag == "img" and source.startswith("data:image/png;base64,"):
            self.pictures.append(base64.b64decode(source.partition(",")[2]))

    def handle_endtag(self, tag):
        if self.hidden and tag in ("style", "script", "svg"):
            self.hidden -= 1

    def handle_data(self, data):
        if not self.hidden:
            self.text += data


def read(html: str, sanitise: bool = False) -> Page:
    page = Page(sanitise)
    page.feed(html)
    return page


def notebook(payload):
    """A saved notebook with one cell that showed the trace."""
    data, metadata = display_data(payload)
    output = nbformat.v4.new_output("display_data", data=data, metadata=metadata)
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("trace", outputs=[output], execution_count=1)]
    )


def png_size(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_the_bundle_has_the_four_forms(payload):
    assert set(mime_bundle(payload)) == {MIME, "text/html", "image/png", "text/plain"}


def test_a_saved_notebook_grows_by_less_than_300_kilobytes(payload):
    empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("trace")])
    grown = len(nbformat.writes(notebook(payload)).encode()) - len(nbformat.writes(empty).encode())
    assert grown < 300_000
    assert len(json.dumps(mime_bundle(payload)[MIME]).encode()) < 2_000_000


def test_static_html_uses_only_what_sanitisers_keep(payload):
    page = read(mime_bundle(payload)["text/html"])
    assert not {"script", "style", "svg", "iframe", "object", "link"} & set(page.tags)
    assert not [name for name in page.attributes if name in ("id", "class") or name.startswith("on")]


def test_picture_and_numbers_survive_a_sanitiser(payload):
    html = mime_bundle(payload)["text/html"]
    page = read(re.sub(r'\s(style|id|class)="[^"]*"', "", html), sanitise=True)
    (picture,) = page.pictures
    width, height = png_size(picture)
    assert width == 1920
    assert height > 300
    assert summary(payload) in page.text
    for step in payload.steps:
        assert step.name in page.text
        assert step.reason in page.text
        if step.status == "changed" and step is not payload.steps[0]:
            assert f"+{step.added} −{step.removed}" in page.text


def test_word_level_marks_are_elements_and_not_colours_alone(matmul):
    html = mime_bundle(matmul)["text/html"]
    assert re.search(r"<del[^>]*>T\.ceildiv\(768, 128</del>", html)
    assert re.search(r"<ins[^>]*>6</ins>", html)


def test_markup_in_a_program_stays_text():
    html = mime_bundle(trace("chinese"))["text/html"]
    assert "不是標記" in html
    assert "<b>" not in html
    assert "</script>" not in html


def test_notes_carry_their_lines(matmul):
    text = read(mime_bundle(matmul)["text/html"]).text
    assert "wgmma.m64n128k16 needs sm_90a, the target is sm_80 (line 14)" in text


def test_a_failed_step_shows_its_error_open():
    html = mime_bundle(trace("failed"))["text/html"]
    assert "<details open><summary>10 plan_layouts" in html
    assert "TL202: two operations want different layouts of C_local" in read(html).text


def test_html_export_shows_text_and_picture(payload):
    body, _ = nbconvert.HTMLExporter(embed_images=True).from_notebook_node(notebook(payload))
    page = read(body)
    assert summary(payload) in page.text
    assert any(png_size(picture)[0] == 1920 for picture in page.pictures)


def test_markdown_export_has_the_picture(matmul):
    _, resources = nbconvert.MarkdownExporter().from_notebook_node(notebook(matmul))
    pictures = [data for name, data in resources["outputs"].items() if name.endswith(".png")]
    html = nbconvert.MarkdownExporter().from_notebook_node(notebook(matmul))[0]
    assert pictures or "data:image/png;base64," in html


def test_plain_text_fits_forty_lines_of_a_hundred_columns(payload):
    lines = plain_text(payload).splitlines()
    assert len(lines) <= 40
    assert max(map(columns, lines)) <= 100


def columns(text: str) -> int:
    """Terminal columns: wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def test_plain_text_has_the_table_and_the_head_of_a_diff(matmul):
    text = plain_text(matmul)
    assert "10 of 18 passes changed the program" in text
    assert re.search(r"^  8  plan_pipeline .*● changed .*\+17 −6", text, re.M)
    assert re.search(r"^  7  plan_roles .*– skipped .*sm_80 has no", text, re.M)
    assert "+     bx = T.launch_thread" in text


def test_terminal_shows_one_pass_with_its_notes(matmul):
    text = terminal(matmul, "plan_gemms")
    assert "decision: mma.m16n8k16.f32.f16, 2 × 2 warps" in text
    assert "refusal: wgmma.m64n128k16 needs sm_90a, the target is sm_80 (line 14)" in text
    assert terminal(matmul, "6") == text


def test_terminal_without_color_has_no_escape_codes(payload):
    assert "\x1b" not in terminal(payload)
    colored = terminal(payload, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == terminal(payload)


def test_terminal_lines_fit_the_width(payload):
    for width in (60, 80, 140):
        assert max(map(columns, terminal(payload, width=width).splitlines())) <= width
        for name in ("source", payload.steps[-1].name):
            plain = re.sub(r"\x1b\[[\d;]*m", "", terminal(payload, name, True, width))
            assert max(map(columns, plain.splitlines())) <= width


def test_a_misspelt_pass_gets_the_nearest_names(matmul):
    with pytest.raises(TileError) as caught:
        terminal(matmul, "plan_gems")
    assert caught.value.code == "TL406"
    assert "plan_gemms" in caught.value.help


def test_the_page_names_no_address_and_closes_no_script_early(payload):
    page = export_html(payload)
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert page.count("</script>") == 2
    assert summary(payload) in read(page).text
