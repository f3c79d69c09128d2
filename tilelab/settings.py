"""Every setting of tilelab: its name, type, default and one sentence. Read from the environment or set in a
block.

    with settings(verify=True):
        ...
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileError

__all__ = ["SETTINGS", "Setting", "get", "settings", "unknown_variables"]


@dataclass(frozen=True)
class Setting:
    """A setting; `TILELAB_<NAME>` sets it from outside."""

    name: str
    kind: type
    default: Any
    doc: str

    @property
    def variable(self) -> str:
        return f"TILELAB_{self.name.upper()}"


SETTINGS: tuple[Setting, ...] = (
    Setting("target", str, "", "The target when none is given: llvm, cuda:sm_90a, hip:gfx942, ..."),
    Setting("verify", bool, False, "Check after each pass that the IR holds only what its stage allows."),
    Setting("until", str, "", "Stop the pipeline after the pass of this name (for debugging)."),
    Setting("trace", str, "", "Write the Trace of every compile into this folder as JSON."),
    Setting("emulate", bool, False, "Run GPU targets in the emulator even where the device is present."),
    Setting("cache", str, "", "Folder of the on-disk cache; 'off' keeps compiled kernels in memory only."),
    Setting("line_info", bool, False, "Print #line directives, by which profilers show the user's source."),
    Setting("disable_pipelining", bool, False, "Run pipelined loops one step after another."),
    Setting("threads", int, 0, "Threads that a CPU kernel may use; 0 means as many as there are cores."),
)  # fmt: skip
_BY_NAME = {s.name: s for s in SETTINGS}

_overrides: ContextVar[dict[str, Any]] = ContextVar("tilelab_settings", default={})  # noqa: B039 - never mutated


def get(name: str) -> Any:
    """The value in force: set in a block, else from the environment, else the default. Raises TL405."""
    setting = _known(name)
    if name in _overrides.get():
        return _overrides.get()[name]
    text = os.environ.get(setting.variable)
    return setting.default if text is None else _read(setting, text)


def _known(name: str) -> Setting:
    if name not in _BY_NAME:
        near = difflib.get_close_matches(name, _BY_NAME, 1)
        raise TileError(
            "TL405", f"no setting is called {name!r}", help=f"did you mean {near[0]!r}?" if near else
            "settings are " + ", ".join(_BY_NAME)
        )  # fmt: skip
    return _BY_NAME[name]


def _read(setting: Setting, text: str) -> Any:
    if setting.kind is bool:
        if text.lower() in ("1", "true", "on", "yes"):
            return True
        if text.lower() in ("0", "false", "off", "no", ""):
            return False
    elif setting.kind is int:
        if text.lstrip("-").isdigit():
            return int(text)
    else:
        return text
    raise TileError(
        "TL405", f"{setting.variable}={text!r} is not of type {setting.kind.__name__}", help=setting.doc
    )


@contextmanager
def settings(**values: Any) -> Generator[None, None, None]:
    """Use other values of the settings inside the block."""
    for name in values:
        _known(name)
    token = _overrides.set({**_overrides.get(), **values})
    try:
        yield
    finally:
        _overrides.reset(token)


# Variables that belong to programs around the compiler, not to it.
_OUTSIDE = ("TILELAB_TORCH_INDEX", "TILELAB_WHEELHOUSE")


def unknown_variables() -> list[str]:
    """Messages for `TILELAB_*` variables of the environment that are no settings, with the nearest name."""
    known = [s.variable for s in SETTINGS]
    out: list[str] = []
    for variable in sorted(os.environ):
        if variable.startswith("TILELAB_") and variable not in known and variable not in _OUTSIDE:
            near = difflib.get_close_matches(variable, known, 1)
            out.append(f"{variable} is not a setting" + (f"; did you mean {near[0]}?" if near else ""))
    return out
