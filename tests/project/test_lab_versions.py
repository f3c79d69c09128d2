"""The built extension is found, enabled and served by the oldest and the newest JupyterLab."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

import start
from tests.project.lab_versions import NEWEST, VERSIONS, Server, cached_environment, serving
from tests.project.pins import ROOT

BUILT = ROOT / "visualizers" / "labextension" / "prebuilt"


@pytest.fixture(
    scope="module",
    params=[
        v if v == NEWEST else pytest.param(v, marks=[pytest.mark.network, pytest.mark.slow]) for v in VERSIONS
    ],
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("jupyterlab")
    folder = tmp_path_factory.mktemp(f"lab-{request.param}")
    try:
        python = cached_environment(request.param)
    except start.CannotStart as problem:
        pytest.skip(str(problem))
    with serving(python, folder) as running:
        assert running.version.startswith(f"{request.param}.")
        yield running


def test_jupyterlab_serves_its_page_with_the_extension_listed(server: Server) -> None:
    status, page = server.get("lab")
    assert status == 200
    found = re.search(
        r'<script id="jupyter-config-data" type="application/json">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    listed = {entry["name"]: entry for entry in json.loads(found[1])["federated_extensions"]}
    assert "tilelab" in listed
    assert listed["tilelab"]["mimeExtension"]


def test_the_extension_s_entry_is_served(server: Server) -> None:
    load = json.loads((BUILT / "package.json").read_text(encoding="utf-8"))["jupyterlab"]["_build"]["load"]
    status, text = server.get(f"lab/extensions/tilelab/{load}")
    assert status == 200
    assert text == (BUILT / load).read_text(encoding="utf-8")


def test_a_kernel_of_this_environment_is_offered(server: Server) -> None:
    status, answer = server.get("api/kernelspecs")
    assert status == 200
    assert "python3" in json.loads(answer)["kernelspecs"]
