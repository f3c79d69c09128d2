"""tilelab: a tile compiler whose every pass can be seen. `import tilelab as tilelang; import tilelab.language
as T`.

Public names are loaded when they are first used, so that importing the package loads neither TVM nor torch.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import tilelab.settings
import tilelab.trace
from tilelab.errors import InternalError, TileError
from tilelab.math import cdiv

if TYPE_CHECKING:
    from tilelab import language, layout, math, profiler, testing
    from tilelab.driver import JitFunction, Kernel, PassConfigKey, compile, jit, pipeline, trace_of
    from tilelab.runtime.profiler import Profiler, TensorSupplyType
    from tilelab.targets import Target

__version__ = "0.1.0"

__all__ = [
    "InternalError", "JitFunction", "Kernel", "PassConfigKey", "Profiler", "Target", "TensorSupplyType",
    "TileError", "analyze", "cdiv", "compile", "jit", "language", "layout", "math", "pipeline",
    "profiler", "settings", "testing", "trace", "trace_of",
]  # fmt: skip

_HOMES = {
    "JitFunction": "tilelab.driver", "Kernel": "tilelab.driver", "PassConfigKey": "tilelab.driver",
    "Profiler": "tilelab.runtime.profiler", "Target": "tilelab.targets",
    "TensorSupplyType": "tilelab.runtime.profiler", "compile": "tilelab.driver", "jit": "tilelab.driver",
    "pipeline": "tilelab.driver",
    "trace_of": "tilelab.driver",
}  # fmt: skip
_HOMES["JITKernel"] = "tilelab.driver"
_ALIASES = {"JITKernel": "Kernel"}  # TileLang's name
_MODULES = {
    "language": "tilelab.language",
    "layout": "tilelab.layout",
    "math": "tilelab.math",
    "profiler": "tilelab.profiler",
    "testing": "tilelab.testing",
}
_ABSENT = {
    "autotune": "time the configurations yourself: kernel.get_profiler().do_bench()",
    "autotuner": "time the configurations yourself: kernel.get_profiler().do_bench()",
    "carver": "write the configurations down yourself",
    "par_compile": "compile the kernels one after the other: tilelab.compile(kernel)",
}


class _Callable(ModuleType):
    """A module that can be called too: `tilelab.trace(kernel)`, `tilelab.analyze(kernel, a, b)`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        home, name = {
            "tilelab.analyze": ("tilelab.analyze", "analyze"),
            "tilelab.trace": ("tilelab.driver", "trace"),
            "tilelab.settings": ("tilelab.settings", "settings"),
        }[self.__name__]
        return getattr(importlib.import_module(home), name)(*args, **kwargs)


# By name: `analyze` stands above the driver, whose modules import this package.
for _module in (importlib.import_module("tilelab.analyze"), tilelab.settings, tilelab.trace):
    _module.__class__ = _Callable


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), _ALIASES.get(name, name))
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _ABSENT:
        raise TileError("TL102", f"tilelab.{name} is not in this version", help=_ABSENT[name])
    else:
        near = difflib.get_close_matches(name, __all__, 1)
        raise AttributeError(
            f"module 'tilelab' has no attribute {name!r}" + (f"; did you mean {near[0]}?" if near else "")
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _show_in_notebooks() -> None:
    """In IPython, let those whom the entry points `tilelab.display` name register how a Trace is shown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return
    from importlib.metadata import entry_points

    for point in entry_points(group="tilelab.display"):
        point.load()(shell)


_show_in_notebooks()
