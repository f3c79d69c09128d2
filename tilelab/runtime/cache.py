"""The cache on disk: one file an entry, named by the hash of what it depends on, written at once and verified
when read.

An entry is `tilelab-cache 1 <sha256 of the rest>`, a line of JSON with the parts' names and sizes, and the
parts. It is written to a temporary file beside its place and renamed, so another process sees all of it or
nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tilelab
from tilelab import settings

__all__ = ["Looked", "cache_folder", "entries", "key_of", "load", "own_sources", "store"]

_MAGIC = b"tilelab-cache 1 "
_SUFFIX = ".tile"


@dataclass(frozen=True)
class Looked:
    """What a look into the cache gave: the entry's parts or None, and why an entry that was there is not
    used.
    """

    parts: dict[str, bytes] | None
    problem: str = ""


def cache_folder() -> Path | None:
    """The folder of the setting `cache`, else the user's cache folder; None when the cache is off."""
    named = settings.get("cache")
    if named.lower() in ("off", "0", "none"):
        return None
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tilelab"


def key_of(parts: Mapping[str, object]) -> str:
    """The name of an entry: the hash of all that it depends on, as sorted JSON of plain values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


@cache
def own_sources() -> str:
    """The hash of tilelab's own Python files: a changed compiler never reads what another one wrote."""
    root = Path(tilelab.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _place(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}{_SUFFIX}"


def load(key: str) -> Looked:
    """The parts of an entry after their checksum was verified; a damaged entry is removed and named in
    `problem`.
    """
    folder = cache_folder()
    if folder is None:
        return Looked(None)
    path = _place(folder, key)
    try:
        held = path.read_bytes()
    except OSError:
        return Looked(None)
    parts = _read(held)
    if parts is not None:
        return Looked(parts)
    try:
        path.unlink()
    except OSError as error:
        return Looked(None, f"the cache entry {key} is damaged and cannot be removed: {error}")
    return Looked(None, f"the cache entry {key} was damaged and is built again")


def _read(held: bytes) -> dict[str, bytes] | None:
    head, _, rest = held.partition(b"\n")
    if head != _MAGIC + hashlib.sha256(rest).hexdigest().encode():
        return None
    listing, _, body = rest.partition(b"\n")
    parts, at = {}, 0
    for name, size in json.loads(listing):
        parts[name] = body[at : at + size]
        at += size
    return parts


def store(key: str, parts: Mapping[str, bytes]) -> str:
    """Write an entry; gives the reason when that was not possible, else nothing."""
    folder = cache_folder()
    if folder is None:
        return ""
    listing = json.dumps([(name, len(data)) for name, data in parts.items()]).encode()
    rest = listing + b"\n" + b"".join(parts.values())
    whole = _MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest
    path = _place(folder, key)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{key[:8]}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(whole)
        os.replace(temporary, path)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        return f"the cache in {folder} cannot be written: {error}"
    return ""


def entries() -> tuple[int, int]:
    """Entries in the cache, and their bytes together."""
    folder = cache_folder()
    files = list(folder.rglob(f"*{_SUFFIX}")) if folder is not None and folder.exists() else []
    return len(files), sum(f.stat().st_size for f in files)
