"""A headless Chromium that may reach nothing but this machine, and the folder of what it takes pictures of.

Set TILELAB_SCREENSHOTS to a folder to keep the pictures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VISUALIZERS = HERE.parent.parent / "visualizers"
sys.path[:0] = [str(HERE), str(HERE.parent / "visualizers")]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:", "about:")


@pytest.fixture(scope="session")
def chromium() -> Iterator:
    """The browser, started once."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed (on Debian: apt-get install chromium)")
    with playwright.sync_playwright() as running:
        # A container's root may not use Chromium's own sandbox.
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watch:
    """What a page asked for and what went wrong in it."""

    def __init__(self) -> None:
        self.outside: list[str] = []
        self.errors: list[str] = []


@pytest.fixture
def open_page(chromium):
    """Opens pages; afterwards, a request that left this machine or an error in a page fails the test."""
    made = []

    def open_one(**options):
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_default_timeout(30_000)
        watch = Watch()

        def guard(route):
            if route.request.url.startswith(LOCAL):
                route.continue_()
            else:
                watch.outside.append(route.request.url)
                route.abort()

        context.route("**/*", guard)
        page = context.new_page()
        page.on("pageerror", lambda error: watch.errors.append(str(error)))
        made.append((context, watch))
        return page

    yield open_one
    for context, watch in made:
        context.close()
        assert watch.outside == []
        assert watch.errors == []


@pytest.fixture
def shot(tmp_path):
    """Takes a picture under a name."""
    folder = Path(os.environ.get("TILELAB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=folder / f"{name}.png")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which finds what a screen reader or weak eyes would stumble on."""
    script = VISUALIZERS / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, so there is no axe-core")
        subprocess.run(["npm", "ci"], cwd=VISUALIZERS, check=True, capture_output=True, timeout=600)
    return script.read_text(encoding="utf-8")


@pytest.fixture
def violations(axe):
    """The rules that the pass view in a page breaks, with the elements."""

    def check(page) -> list[tuple[str, list[str]]]:
        page.evaluate(axe)
        found = page.evaluate("() => axe.run('.tl-view')")
        return [(rule["id"], [node["html"][:160] for node in rule["nodes"]]) for rule in found["violations"]]

    return check
