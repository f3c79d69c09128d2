"""The view in a real JupyterLab: from a saved notebook with no kernel, and from a cell that has just run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lab_server import Server, python_with_lab, write_notebook
from recorded_traces import trace

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The installed JupyterLab, and the oldest that is promised.
VERSIONS = [None, pytest.param("4.2", marks=pytest.mark.network)]


# JupyterLab drops a cell that is run before its session is there.
WHEN_KERNEL_ANSWERS = """async () => {
  const { sessionContext } = jupyterapp.shell.currentWidget;
  await sessionContext.ready;
  await sessionContext.session.kernel.info;
}"""


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: version or "installed")
def server(request, tmp_path_factory):
    running = Server(python_with_lab(request.param), tmp_path_factory.mktemp("lab"))
    running.name = request.param or "installed"
    yield running
    running.close()


@pytest.fixture
def notebook(server, open_page):
    """Opens a notebook with the given cells and waits for its first cell."""

    def open_notebook(name, *cells):
        write_notebook(server.folder / f"{name}.ipynb", *cells)
        page = open_page()
        page.goto(server.address(f"{name}.ipynb"))
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        return page

    return open_notebook


def kernel_cell(payload) -> str:
    """The text of a cell that holds the kernel after an import."""
    return "import tilelab as tilelang\n\n" + "\n".join(payload.source.lines)


@pytest.fixture
def saved(notebook):
    """A saved notebook of three cells, the second of which holds the kernel and shows its trace."""
    payload = trace("matmul")
    cell = replace(payload, source=replace(payload.source, first_line=3, cell="cell-1", file="cell 1"))
    page = notebook("saved", ("x = 1", None), (kernel_cell(payload), shift(cell, 2)), ("y = 2", None))
    page.locator(".tl-view .tl-program .tl-row").first.wait_for()
    return page


def shift(payload, by):
    """The same trace with the kernel `by` lines further down in its file."""

    def moved(line):
        return line if line.source is None else replace(line, source=tuple(n + by for n in line.source))

    steps = tuple(replace(s, lines=tuple(map(moved, s.lines))) for s in payload.steps)
    return replace(
        payload, steps=steps, code=replace(payload.code, lines=tuple(map(moved, payload.code.lines)))
    )


def theme(page, name):
    """Change JupyterLab's theme and wait until it rules."""
    page.evaluate("name => jupyterapp.commands.execute('apputils:change-theme', { theme: name })", name)
    page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)


def test_a_saved_output_is_interactive_without_running_a_cell(saved, server, shot):
    assert saved.locator(".tl-pass").count() == 20
    assert saved.locator(".jp-RenderedHTMLCommon img").count() == 0, "the static form is not shown as well"
    saved.locator(".tl-pass", has_text="plan_pipeline").click()
    assert saved.locator(".tl-title h3").inner_text() == "8 plan_pipeline"
    shot(saved, f"lab-{server.name}-light")


def test_keys_act_on_the_view_and_not_on_the_notebook(saved):
    saved.locator(".tl-program").click()
    before = saved.locator(".jp-Cell.jp-mod-active").evaluate(
        "node => [...node.parentNode.children].indexOf(node)"
    )
    for key in ("j", "j", "u", "s"):
        saved.keyboard.press(key)
    assert saved.locator(".tl-title h3").inner_text() == "5 plan_grid"
    assert saved.locator(".tl-count").inner_text() == "12 of 20"
    after = saved.locator(".jp-Cell.jp-mod-active").evaluate(
        "node => [...node.parentNode.children].indexOf(node)"
    )
    assert after == before
    assert saved.locator(".jp-Dialog").count() == 0


def test_escape_gives_the_focus_back_to_the_notebook(saved):
    saved.locator(".tl-program").focus()
    saved.keyboard.press("j")
    saved.keyboard.press("Escape")
    assert saved.evaluate("!document.querySelector('.tl-view').contains(document.activeElement)")


def test_a_line_of_the_program_lights_the_line_of_the_cell(saved, server, shot):
    saved.locator(".tl-pass", has_text="lower_gemm").click()
    saved.locator(".tl-cell:last-child", has_text="T.ptx.mma").click()
    lit = saved.locator(".cm-line.tilelab-cell-line")
    lit.first.wait_for()
    assert [text.strip() for text in lit.all_inner_texts()] == ["T.gemm(A_shared, B_shared, C_local)"]
    shot(saved, f"lab-{server.name}-linked")
    saved.locator(".tl-program").focus()
    saved.keyboard.press("Escape")
    assert lit.count() == 0


def test_an_edited_cell_makes_the_view_stale(notebook):
    payload = trace("matmul")
    cell = replace(payload, source=replace(payload.source, cell="cell-0"))
    page = notebook("edited", (kernel_cell(payload).replace("T.clear(C_local)", "T.fill(C_local, 0)"), cell))
    page.locator(".tl-line").nth(13).click()
    assert "edited after this was compiled" in page.locator(".tl-stale").inner_text()
    assert page.locator(".tilelab-cell-line").count() == 0


@pytest.mark.parametrize("name", ["JupyterLab Dark", "JupyterLab Light"])
def test_the_theme_is_followed_and_legible(saved, server, violations, shot, name):
    theme(saved, "JupyterLab Light")
    light = saved.locator(".tl-view").evaluate("node => getComputedStyle(node).backgroundColor")
    theme(saved, name)
    saved.locator(".tl-line").nth(13).click()
    paper = saved.locator(".tl-view").evaluate("node => getComputedStyle(node).backgroundColor")
    assert (paper != light) == (name == "JupyterLab Dark")
    shot(saved, f"lab-{server.name}-{name.split()[1].lower()}")
    assert violations(saved) == []


def test_another_schema_version_shows_a_note_and_the_static_form(notebook, server, monkeypatch):
    old = replace(trace("matmul"), schema="tilelab.trace.v9")
    page = notebook("version", ("x = 1", old))
    note = page.locator(".tl-note")
    note.wait_for()
    assert "tilelab.trace.v9" in note.inner_text()
    page.locator(".tl-unread img").wait_for()
    assert page.locator(".tl-unread img").bounding_box()["width"] > 300


def test_a_cell_that_has_just_run_shows_the_view(notebook, shot):
    source = "\n".join(
        [
            "%load_ext tilelab_viz",
            "from tilelab_viz import display_data",
            "from tilelab_viz.views.passes import sample",
            "from IPython.display import display",
            "data, metadata = display_data(sample())",
            "display(data, metadata=metadata, raw=True)",
        ]
    )
    page = notebook("run", (source, None))
    page.evaluate(WHEN_KERNEL_ANSWERS)
    page.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    page.locator(".tl-view .tl-pass").first.wait_for(timeout=60_000)
    assert page.locator(".tl-pass").count() == 20
