"""The cache keeps what was stored, refuses what is damaged, and two processes never see half of an entry."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tilelab.runtime import cache
from tilelab.settings import settings

PARTS = {"binary": bytes(range(256)) * 50, "meta": b'{"n": 1}', "empty": b""}
KEY = "ab" * 20


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with settings(cache=str(tmp_path / "kept")):
        yield tmp_path / "kept"


def entry(folder):
    (path,) = folder.rglob("*.tile")
    return path


def test_an_entry_comes_back_as_it_was(folder):
    assert cache.load(KEY).parts is None
    assert cache.store(KEY, PARTS) == ""
    assert cache.load(KEY).parts == PARTS
    assert cache.entries() == (1, entry(folder).stat().st_size)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_a_damaged_entry_is_never_trusted_and_goes_away(folder, damage):
    cache.store(KEY, PARTS)
    path = entry(folder)
    held = bytearray(path.read_bytes())
    if damage == "cut":
        del held[-100:]
    elif damage == "flip":
        held[len(held) // 2] ^= 1
    elif damage == "empty":
        held.clear()
    else:
        held[:] = b"\x00" * 300
    path.write_bytes(held)
    looked = cache.load(KEY)
    assert looked.parts is None
    assert "damaged" in looked.problem
    assert not path.exists()
    cache.store(KEY, PARTS)
    assert cache.load(KEY).parts == PARTS


def test_switched_off_nothing_is_written(tmp_path):
    with settings(cache="off"):
        assert cache.store(KEY, PARTS) == ""
        assert cache.load(KEY).parts is None
    assert not list(tmp_path.rglob("*"))


def test_a_folder_that_cannot_be_written_is_a_remark_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with settings(cache=str(tmp_path / "file")):
        assert "cannot be written" in cache.store(KEY, PARTS)
    assert [p.name for p in tmp_path.rglob("*")] == ["file"]


def test_a_write_that_fails_leaves_no_file(folder, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    assert "no space left" in cache.store(KEY, PARTS)
    assert not [p for p in folder.rglob("*") if p.is_file()]


def test_keys_differ_where_anything_differs():
    base = {"ir": "f", "target": "llvm", "alignment": 16}
    keys = [cache.key_of(base)] + [cache.key_of({**base, name: "other"}) for name in base]
    assert len(set(keys)) == 4
    assert cache.key_of(dict(reversed(base.items()))) == keys[0]


RACER = """
import sys
from tilelab.runtime import cache
key, mine = sys.argv[1], sys.argv[2].encode()
seen = 0
for round in range(150):
    assert cache.store(key, {"who": mine * 5000, "round": str(round).encode()}) == ""
    looked = cache.load(key)
    assert looked.problem == "", looked.problem
    if looked.parts is not None:
        who = looked.parts["who"]
        assert who in (b"a" * 5000, b"b" * 5000), "half of an entry"
        seen += 1
assert seen == 150, seen
"""


def test_two_processes_that_race_for_an_entry_see_all_of_it_or_nothing(folder):
    environment = {**os.environ, "TILELAB_CACHE": str(folder)}

    def race(who: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", RACER, KEY, who]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(race, ("a", "b")):
            assert done.returncode == 0, done.stderr
    assert len(list(folder.rglob("*"))) == 2  # one folder, one entry, no temporary file


def test_own_sources_are_part_of_every_key():
    assert len(cache.own_sources()) == 64
