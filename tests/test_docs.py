"""The documentation builds without network, its links lead somewhere, and every Python block in it runs."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tilelab import settings
from tilelab.errors import CODES

ROOT = Path(__file__).parent.parent
WRITTEN = [p for p in sorted((ROOT / "docs").rglob("*.md")) if "_site" not in p.parts] + [ROOT / "README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def script(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mistune")
    pytest.importorskip("nbconvert")
    place = tmp_path_factory.mktemp("site")
    assert script("build").build(place) == []
    return place


def python_of(page: Path) -> str:
    """The page's Python blocks as one script, each on the lines where it stands."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        body = block[1].rstrip("\n").split("\n")
        lines[first : first + len(body)] = body
    return "\n".join(lines)


@pytest.mark.parametrize(
    "page", [p for p in WRITTEN if "```python" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem
)
def test_every_python_block_runs(page: Path, tmp_path: Path) -> None:
    place = tmp_path / f"{page.stem.replace('-', '_')}_blocks.py"
    place.write_text(python_of(page), encoding="utf-8")
    runpy.run_path(str(place))


def test_every_link_leads_somewhere(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > 30


def test_a_broken_link_is_found(site: Path, tmp_path: Path) -> None:
    build = script("build")
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html">b</a><a href="#low">l</a><a href="#top">t</a>'
    )
    assert build.broken_links(tmp_path) == [
        "a.html: b.html leads nowhere",
        "a.html: #low has no such heading",
    ]


def test_pages_need_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text, page.name
        loaded = re.findall(r'<(?:img|link|iframe)[^>]*(?:src|href)="(https?:[^"]*)"', text)
        assert loaded == [], page.name


def test_the_reference_covers_what_there_is(site: Path) -> None:
    def page(name: str) -> str:
        return (site / "reference" / f"{name}.html").read_text(encoding="utf-8")

    errors, known, passes = page("errors"), page("settings"), page("passes")
    assert all(f'id="{code.code.lower()}"' in errors for code in CODES)
    assert all(setting.variable in known for setting in settings.SETTINGS)
    assert all(f'id="{name}"' in passes for name in ("insert_barriers", "lower_gemm_cpu", "insert_waits"))
    assert "T.gemm" in page("language")
    assert "mma.m16n8k16.f32.f16" in page("instructions_nvidia")
    assert "mfma.f32.32x32x8.f16" in page("instructions_amd")
    assert "tilelab explain" in page("cli")
    assert "H100" in page("chips") or "H200" in page("chips")


def test_generated_pages_are_not_stored() -> None:
    written = {p.relative_to(ROOT / "docs").as_posix() for p in WRITTEN if p.name != "README.md"}
    assert not written & set(script("reference_pages").pages())
