"""The HTML that needs no script, style sheet or id, so that exports, untrusted notebooks and sanitisers keep
it.

Only inline styles are used, with colours that read on light and dark pages; every mark is also an <ins> or
<del> and every status also a word, so nothing is lost where styles are stripped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

from tilelab.trace.schema import Note, TracePayload
from tilelab_viz.diff import Mark, unified
from tilelab_viz.entries import SIGNS, Entry, entries_of, summary

__all__ = ["static_html"]

# The most characters that the diffs and listings may take; the picture and the table come first.
TEXT_LIMIT = 60_000
# The most lines of one pass.
PASS_LINES = 120

_PRE = (
    "font:12px/1.45 monospace;margin:4px 0 10px;padding:6px 8px;overflow-x:auto;"
    "border:1px solid rgba(128,128,128,.35)"
)
_CELL = "text-align:left;padding:1px 10px 1px 0;vertical-align:top"
_NUMBER = "text-align:right;padding:1px 10px 1px 0;vertical-align:top;white-space:nowrap"
_WORDS = {"-": ("del", "rgba(213,94,0,.42)"), "+": ("ins", "rgba(0,114,178,.42)")}
_LINES = {"-": "rgba(213,94,0,.14)", "+": "rgba(0,114,178,.14)"}


def static_html(payload: TracePayload, png: bytes | None) -> str:
    """Caption, picture, table of passes and, folded, each pass's diff by words.

    At most about 100 KB plus the picture, which is shown as a data address; `png` is None where no picture
    could be drawn.
    """
    entries = entries_of(payload)
    caption = (
        f"<strong>{escape(payload.kernel)}</strong> · {escape(payload.target)} · {escape(summary(payload))}"
    )
    parts = [
        "<div>",
        f"<p>{caption}</p>",
        _picture(png, escape(_picture_text(payload, entries))),
        _table(entries),
        *_details(entries),
        _about(payload),
        "</div>",
    ]
    return "\n".join(part for part in parts if part)


def _picture(png: bytes | None, alt: str) -> str:
    if png is None:
        return f"<p>{alt} (The picture needs matplotlib, which is not installed.)</p>"
    source = "data:image/png;base64," + base64.b64encode(png).decode()
    return f'<img alt="{alt}" width="960" style="max-width:100%;height:auto" src="{source}">'


def _picture_text(payload: TracePayload, entries: tuple[Entry, ...]) -> str:
    changed = ", ".join(entry.name for entry in entries if entry.status == "changed")
    return f"Passes of {payload.kernel} for {payload.target}: {summary(payload)}. Changed by: {changed}."


def _table(entries: tuple[Entry, ...]) -> str:
    head = "".join(
        f'<th style="{_CELL}">{t}</th>' for t in ("no", "pass", "stage", "ms", "status", "lines", "why")
    )
    rows = []
    for number, entry in enumerate(entries):
        time = "" if entry.milliseconds is None else f"{entry.milliseconds:.2f}"
        delta = f"+{entry.added} −{entry.removed}" if entry.status in ("changed", "code") else ""
        status = f"{SIGNS[entry.status]} {entry.status}"
        name = escape(entry.name)
        name = f"<strong>{name}</strong>" if entry.status in ("changed", "failed") else name
        cells = [(_NUMBER, str(number)), (_CELL, name), (_CELL, escape(entry.stage)), (_NUMBER, time)]
        cells += [(_CELL, status), (_NUMBER, delta), (_CELL, escape(entry.reason))]
        rows.append("<tr>" + "".join(f'<td style="{style}">{text}</td>' for style, text in cells) + "</tr>")
    body = "\n".join(rows)
    return f'<table style="border-collapse:collapse;font-size:12px"><tr>{head}</tr>\n{body}</table>'


def _details(entries: tuple[Entry, ...]) -> list[str]:
    """A <details> for the source, each pass that did something, and the code, until the limit is reached."""
    parts: list[str] = []
    size, left_out = 0, 0
    # The ends are what a reader looks for first, so they are given their room before the passes.
    wanted = [entries[0], *(e for e in entries[::-1] if e.kind == "code")]
    wanted += [e for e in entries if e.kind == "step" and (e.hunks or e.notes or e.status == "failed")]
    made: dict[int, str] = {}
    for entry in wanted:
        text = _one(entry, entries)
        if size + len(text) > TEXT_LIMIT:
            left_out += 1
            continue
        size += len(text)
        made[id(entry)] = text
    parts += [made[id(entry)] for entry in entries if id(entry) in made]
    if left_out:
        parts.append(f"<p>{left_out} longer diffs are left out of this static form.</p>")
    return parts


def _one(entry: Entry, entries: tuple[Entry, ...]) -> str:
    number = next(i for i, other in enumerate(entries) if other is entry)
    delta = f" +{entry.added} −{entry.removed}" if entry.status == "changed" else ""
    title = f"{number} {escape(entry.name)} · {SIGNS[entry.status]} {entry.status}{delta}"
    opened = " open" if entry.status == "failed" else ""
    parts = [f"<details{opened}><summary>{title}</summary>"]
    parts += [f"<p>{escape(text)}</p>" for text in (entry.doc, entry.reason) if text]
    if entry.notes:
        parts.append("<ul>" + "".join(f"<li>{_note(note)}</li>" for note in entry.notes) + "</ul>")
    lines = list(_body(entry, entries))
    more = len(lines) - PASS_LINES
    if more > 0:
        lines = [*lines[:PASS_LINES], f"… {more} more lines"]
    if lines:
        parts.append(f'<pre style="{_PRE}">' + "\n".join(lines) + "</pre>")
    parts.append("</details>")
    return "".join(parts)


def _note(note: Note) -> str:
    where = f" (line {note.source})" if note.source else ""
    return f"<strong>{escape(note.kind.replace('_', ' '))}</strong>: {escape(note.text)}{where}"


def _body(entry: Entry, entries: tuple[Entry, ...]) -> Iterable[str]:
    if entry.base is None or all(hunk.plain for hunk in entry.hunks):
        if entry.hunks or entry.kind != "step":
            yield from (escape(line.text, quote=False) for line in entry.lines)
        return
    old = [line.text for line in entries[entry.base].lines]
    new = [line.text for line in entry.lines]
    for sign, row, text in unified(old, new):
        if sign == "@":
            yield f"@@ {text} @@"
        elif sign == " ":
            yield f"  {escape(text, quote=False)}"
        else:
            marks = () if row is None else row.old_marks if sign == "-" else row.new_marks
            yield f'<span style="background:{_LINES[sign]}">{sign} {_words(text, marks, sign)}</span>'


def _words(text: str, marks: tuple[Mark, ...], sign: str) -> str:
    tag, color = _WORDS[sign]
    out, at = [], 0
    for start, end in marks:
        out.append(escape(text[at:start], quote=False))
        inner = escape(text[start:end], quote=False)
        out.append(f'<{tag} style="background:{color};text-decoration:none">{inner}</{tag}>')
        at = end
    return "".join([*out, escape(text[at:], quote=False)])


def _about(payload: TracePayload) -> str:
    call = f"<p>Repeat with <code>{escape(payload.call)}</code></p>" if payload.call else ""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(payload.versions.items()))
    return call + (f"<p>Made with {escape(versions)}.</p>" if versions else "")
