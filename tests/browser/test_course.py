"""The course's first notebook, opened in a real JupyterLab and run from top to bottom by a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lab_server import Server, python_with_lab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTEBOOK = Path(__file__).parent.parent.parent / "notebooks" / "01_first_kernel.ipynb"

RUN_ALL = """async () => {
  const { sessionContext, content } = jupyterapp.shell.currentWidget;
  await sessionContext.ready;
  await sessionContext.session.kernel.info;
  await jupyterapp.commands.execute('notebook:run-all-cells');
  return content.widgets
    .filter(cell => cell.model.type === 'code')
    .map(cell => ({
      count: cell.model.executionCount,
      outputs: cell.model.outputs.toJSON().map(o => [
        o.output_type, `${o.ename || ''}: ${o.evalue || ''}`, Object.keys(o.data || {}),
      ]),
    }));
}"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory, chromium):
    """Every code cell of the notebook after all have run, and the page."""
    server = Server(python_with_lab(None), tmp_path_factory.mktemp("course"))
    try:
        shutil.copy(NOTEBOOK, server.folder / NOTEBOOK.name)
        page = chromium.new_page()
        page.set_default_timeout(240_000)
        page.goto(server.address(NOTEBOOK.name))
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        yield page.evaluate(RUN_ALL), page
    finally:
        server.close()


def test_every_cell_runs_without_an_error(ran) -> None:
    cells, _ = ran
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    written = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(cells) == len(written)
    for number, cell in enumerate(cells):
        failed = [o for o in cell["outputs"] if o[0] == "error"]
        expected = "raises-exception" in written[number]["metadata"].get("tags", [])
        assert expected or not failed, f"code cell {number + 1}: {failed}"
        assert cell["count"], f"code cell {number + 1} did not run"


def test_the_trace_shows_itself_as_the_interactive_view(ran) -> None:
    cells, page = ran
    kinds = {kind for cell in cells for output in cell["outputs"] for kind in output[2]}
    assert "application/vnd.tilelab.trace.v1+json" in kinds
    assert page.locator(".tl-view .tl-passes, .tl-view .tl-program").count() > 0
