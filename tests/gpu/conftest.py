"""Everything in this folder needs a CUDA device: chosen with `-m gpu`, and failing, not skipped, without
one.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/gpu/" in item.path.as_posix():
            item.add_marker(pytest.mark.gpu)
