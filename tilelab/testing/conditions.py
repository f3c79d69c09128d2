"""Conditions of tests, and the entry that TileLang's test files use."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["main", "requires_cuda", "requires_hip", "requires_torch", "set_random_seed"]


def main() -> None:
    """Run the calling file's tests with pytest and leave with its status: `if __name__ == "__main__":
    main()`.
    """
    import pytest

    sys.exit(pytest.main([inspect.getsourcefile(sys._getframe(1)) or ""]))


def set_random_seed(seed: int = 42) -> None:
    """Seed Python's and NumPy's random numbers, and torch's where it is imported."""
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _skip_unless(
    condition: Callable[[], bool], reason: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not condition():
                import pytest

                pytest.skip(reason)
            return test(*args, **kwargs)

        return run

    return decorate


def _has_cuda() -> bool:
    from tilelab.errors import TileError
    from tilelab.runtime.cuda_driver import cuda

    try:
        return cuda() is not None
    except TileError:
        return False


def _has_hip() -> bool:
    from tilelab.runtime.hip_driver import hip

    return hip() is not None


requires_cuda = _skip_unless(_has_cuda, "needs an NVIDIA GPU")
requires_hip = _skip_unless(_has_hip, "needs an AMD GPU with ROCm")
requires_torch = _skip_unless(lambda: importlib.util.find_spec("torch") is not None, "needs torch")
