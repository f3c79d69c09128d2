"""The text twin of the pass view: what a terminal, a log, a screen reader or a language model reads.

Colours are ANSI codes, added only when asked for; each has a sign beside it that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import wrap
from unicodedata import east_asian_width

from tilelab.errors import TileError
from tilelab.trace.schema import TracePayload
from tilelab_viz.diff import Mark, unified
from tilelab_viz.entries import SIGNS, Entry, entries_of, summary

__all__ = ["plain_text", "terminal"]

PLAIN_LINES = 40
PLAIN_WIDTH = 100
_NAME_WIDTH = 22
_COLUMNS = f"{'no':>3}  {'pass':<{_NAME_WIDTH}} {'stage':<8} {'ms':>6}  {'status':<11} {'lines':>8}  reason"
# Blue and orange stay apart in the common forms of colour blindness; red and green do not.
_STYLE = {
    "+": "34",
    "-": "33",
    "@": "2",
    "bold": "1",
    "failed": "1;33",
    "changed": "34",
    "unchanged": "2",
    "skipped": "2",
}


def plain_text(payload: TracePayload) -> str:
    """At most 40 lines of at most 100 columns: the table of passes, and the head of the first diff."""
    entries = entries_of(payload)
    title = f"{payload.kernel} · {payload.target}: {summary(payload)}"
    lines = [title, _COLUMNS, *_short_table(entries)]
    shown = _first_diff(entries)
    room = PLAIN_LINES - len(lines) - 2
    if shown is not None and room >= 4:
        failed = shown.status == "failed"
        diff = (
            _about(shown, 0, False, PLAIN_WIDTH)[1:] if failed else list(_diff(shown, entries, color=False))
        )
        lines += ["", f"{_number(entries, shown)} {shown.name}:"]
        if len(diff) > room:
            diff = [*diff[: room - 1], f"… {len(diff) - room + 1} more lines"]
        lines += diff
    return "\n".join(_cut(line, PLAIN_WIDTH) for line in lines)


def terminal(
    payload: TracePayload, pass_name: str | None = None, color: bool = False, width: int = 100
) -> str:
    """The whole table of passes, or one pass in full: its reason, notes and diff.

    `pass_name` is a name from the table (the last pass of that name), its number, `source` or `code`; another
    one is a TileError that lists the nearest names. Lines are cut at `width` columns.
    """
    entries = entries_of(payload)
    title = _cut(f"{payload.kernel} · {payload.target}: {summary(payload)}", width)
    if pass_name is None:
        rows = [_paint(_table_row(i, entry), entry.status, color, width) for i, entry in enumerate(entries)]
        call = wrap(f"repeat with: {payload.call}", width, subsequent_indent="  ") if payload.call else []
        return "\n".join([title, _cut(_COLUMNS, width), *rows, *call])
    entry = _find(entries, pass_name)
    about = _about(entry, _number(entries, entry), color, width)
    return "\n".join([title, "", *about, "", *_diff(entry, entries, color, width)])


def _table_row(number: int, entry: Entry) -> str:
    time = "" if entry.milliseconds is None else f"{entry.milliseconds:.2f}"
    delta = f"+{entry.added} −{entry.removed}" if entry.status in ("changed", "code") else ""
    status = f"{SIGNS[entry.status]} {entry.status}"
    name = f"{_cut(entry.name, _NAME_WIDTH):<{_NAME_WIDTH}}"
    row = f"{number:>3}  {name} {entry.stage:<8} {time:>6}  {status:<11} {delta:>8}"
    return f"{row}  {_first_line(entry.reason)}".rstrip()


def _short_table(entries: tuple[Entry, ...]) -> list[str]:
    """The table, without its idle passes when it would not fit."""
    rows = list(enumerate(entries))
    if len(rows) <= 26:
        return [_table_row(i, entry) for i, entry in rows]
    busy = [(i, entry) for i, entry in rows if entry.status not in ("unchanged", "skipped")]
    kept = busy if len(busy) <= 26 else [*busy[:22], *busy[-4:]]
    text = [_table_row(i, entry) for i, entry in kept]
    return [*text, f"     … {len(rows) - len(kept)} more passes, most of them idle, are not shown here"]


def _first_diff(entries: tuple[Entry, ...]) -> Entry | None:
    """The first entry worth showing: a failed one, else the first that changed an existing program."""
    failed = [entry for entry in entries if entry.status == "failed"]
    changed = [e for e in entries if e.status == "changed" and any(not hunk.plain for hunk in e.hunks)]
    return next(iter([*failed, *changed]), None)


def _find(entries: tuple[Entry, ...], name: str) -> Entry:
    for i, entry in reversed(list(enumerate(entries))):
        if name in (entry.name, str(i)) or (name == entry.kind != "step"):
            return entry
    names = [entry.name for entry in entries]
    near = get_close_matches(name, names, 3, 0.5) or names
    raise TileError("TL406", f"no pass named {name!r} in this trace", help=f"one of: {', '.join(near)}")


def _about(entry: Entry, number: int, color: bool, width: int) -> list[str]:
    lines = [_paint(_table_row(number, entry).lstrip(), "bold", color, width)]
    texts = [text for text in (entry.doc, *entry.reason.splitlines()) if text]
    for note in entry.notes:
        where = f" (line {note.source})" if note.source else ""
        texts.append(f"  {note.kind.replace('_', ' ')}: {note.text}{where}")
    texts += [f"  rule {hit.rule}: {hit.before} → {hit.after}" for hit in entry.hits]
    for text in texts:
        indent = "    " if text.startswith("  ") else ""
        lines += [_cut(row, width) for row in wrap(text, width, subsequent_indent=indent)]
    return lines


def _diff(entry: Entry, entries: tuple[Entry, ...], color: bool, width: int = 10**6) -> Iterable[str]:
    if not entry.hunks or entry.base is None or all(hunk.plain for hunk in entry.hunks):
        yield from (_cut(f"  {line.text}", width) for line in entry.lines)
        return
    old = [line.text for line in entries[entry.base].lines]
    new = [line.text for line in entry.lines]
    for sign, row, text in unified(old, new):
        marks = () if row is None else row.old_marks if sign == "-" else row.new_marks
        line = f"@@ {text} @@" if sign == "@" else f"{sign} {text}"
        if color:
            yield _ansi(_cut(line, width), sign, tuple((a + 2, b + 2) for a, b in marks))
        else:
            yield _cut(line, width)


def _ansi(line: str, sign: str, marks: tuple[Mark, ...]) -> str:
    """Colours a diff line; the words that differ are underlined."""
    if sign not in _STYLE:
        return line
    out, at = [f"\x1b[{_STYLE[sign]}m"], 0
    for start, end in marks:
        out.append(f"{line[at:start]}\x1b[4m{line[start:end]}\x1b[24m")
        at = end
    return "".join([*out, line[at:], "\x1b[0m"])


def _paint(line: str, style: str, color: bool, width: int = 10**6) -> str:
    code = _STYLE.get(style)
    line = _cut(line, width)
    return f"\x1b[{code}m{line}\x1b[0m" if color and code else line


def _number(entries: tuple[Entry, ...], entry: Entry) -> int:
    return next(i for i, other in enumerate(entries) if other is entry)


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _cut(text: str, width: int) -> str:
    """The text, cut to that many terminal columns; Chinese characters and most emoji take two."""
    if len(text) * 2 <= width or _columns(text) <= width:
        return text
    room, kept = width - 1, 0
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept += 1
    return text[:kept] + "…"


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(1 + (east_asian_width(c) in "WF") for c in text)
