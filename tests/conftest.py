"""Which tests run where: GPU tests only when chosen, browser and network tests only where they can."""

from __future__ import annotations

import os
import shutil

import pytest

os.environ.setdefault("TILELAB_VERIFY", "1")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def has_browser() -> bool:
    return any(shutil.which(name) for name in BROWSERS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects GPU tests unless `-m` names them and skips browser tests where there is no browser."""
    if "gpu" not in config.option.markexpr:
        chosen = [item for item in items if "gpu" not in item.keywords]
        left_out = [item for item in items if "gpu" in item.keywords]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
    if not has_browser():
        reason = pytest.mark.skip(reason="no browser: install the package chromium")
        for item in items:
            if "browser" in item.keywords:
                item.add_marker(reason)


@pytest.fixture(autouse=True, scope="session")
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The suite reads and writes a fresh kernel cache, never the developer's."""
    os.environ["TILELAB_CACHE"] = str(tmp_path_factory.mktemp("tilelab-cache"))
