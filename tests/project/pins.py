"""pyproject.toml and constraints.txt, read for the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


def project() -> dict:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extras: Iterable[str]) -> list[Requirement]:
    """The requirements of tilelab with these extras."""
    table = project()
    lines = [*table["dependencies"], *(line for e in extras for line in table["optional-dependencies"][e])]
    return [Requirement(line) for line in lines]


def constraints() -> list[Requirement]:
    """The lines of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]
