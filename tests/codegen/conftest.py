"""`check_text`: a text against `# CHECK` lines, in order, as LLVM's FileCheck does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def check_text(tmp_path: Path) -> Callable[[str, str], None]:
    from filecheck.matcher import Matcher
    from filecheck.options import Options

    def check(text: str, checks: str) -> None:
        (tmp_path / "text").write_text(text)
        (tmp_path / "checks").write_text(checks)
        matcher = Matcher.from_opts(Options(str(tmp_path / "checks"), str(tmp_path / "text")))
        assert matcher.run() == 0, text

    return check
