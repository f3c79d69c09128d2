"""Every error code has an example that ends in it, on the marked line and with the marked words, and a
mended twin.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tilelab.cli import main
from tilelab.cli.explain import example_file, read_example
from tilelab.errors import CODES, TileError

FOLDER = Path(__file__).parent / "errors"
MARK = re.compile(r"  # error: (?P<code>TL\d{3}) (?P<words>.+)$")
CODE_NAMES = [code.code for code in CODES]


@dataclass(frozen=True)
class Expected:
    """What an example's mark says: the line's number, the code, and words of the message."""

    line: int
    code: str
    words: str


def expected(path: Path) -> Expected:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [(i, line, MARK.search(line)) for i, line in enumerate(lines, 1) if "# error:" in line]
    assert len(found) == 1, f"{path.name} has {len(found)} marks"
    number, _, match = found[0]
    assert match is not None, f"{path.name}:{number}: write `# error: TLNNN words`"
    return Expected(number, match["code"], match["words"])


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"error_examples_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def module_of(code: str) -> tuple[Path, ModuleType]:
    path = FOLDER / f"{code.lower()}.py"
    assert path.is_file(), f"{code} has no example: write {path.name}"
    if "import torch" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    return path, load(path)


def blamed_line(error: TileError, path: Path) -> int:
    """The line of the example that the error names; for errors of arguments and tools that of the call."""
    if error.places and error.places[0].file == "<str>":
        # IR that is written out in the example: its first line is the one that opens the string.
        lines = path.read_text(encoding="utf-8").splitlines()
        return lines.index('IR = """') + error.places[0].line
    if error.places and not error.places[0].file.startswith("<generated"):
        assert Path(error.places[0].file) == path, f"the error points into {error.places[0].file}"
        return error.places[0].line
    frames = traceback.extract_tb(error.__traceback__)
    return next(f.lineno or 0 for f in reversed(frames) if f.filename == str(path))


@pytest.mark.parametrize("code", CODE_NAMES)
def test_the_example_ends_in_its_error_on_the_marked_line(code: str) -> None:
    path, module = module_of(code)
    mark = expected(path)
    with pytest.raises(TileError) as caught:
        module.fails()
    error = caught.value
    assert error.code == code == mark.code
    assert mark.words in error.message
    assert blamed_line(error, path) == mark.line
    assert error.help, f"{code} does not say what to do: {error.message}"
    assert "Traceback" not in str(error)


@pytest.mark.parametrize("code", CODE_NAMES)
def test_the_mended_example_works(code: str) -> None:
    module_of(code)[1].works()


def test_no_example_is_left_over() -> None:
    assert sorted(p.stem.upper() for p in FOLDER.glob("tl*.py")) == sorted(CODE_NAMES)


def test_messages_are_one_line_without_a_full_stop() -> None:
    for code in CODES:
        assert not code.title.endswith(".")
        assert not code.advice.endswith(".")
        assert "\n" not in code.title + code.advice


@pytest.mark.parametrize("code", CODE_NAMES)
def test_explain_prints_the_explanation_and_the_example(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", code.lower()]) == 0
    said = capsys.readouterr().out
    place = example_file(code)
    assert place is not None
    prose, example = read_example(place)
    assert len(prose) > 80
    assert prose in said
    assert "# error: " + code in said
    assert example.splitlines()[-1].strip() in said
