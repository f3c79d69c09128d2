"""The still of the pass view: a strip with one box a pass, and the first diff, drawn with matplotlib.

The background is opaque, so that the picture reads the same on light and dark pages. Blue and orange (of the
Okabe-Ito palette) stay apart in the common forms of colour blindness; each box carries a sign as well.
"""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec
from typing import Any

from tilelab.trace.schema import TracePayload
from tilelab_viz.diff import Mark, unified
from tilelab_viz.entries import SIGNS, Entry, entries_of, summary

__all__ = ["WIDTH", "draw"]

WIDTH = 960
_SCALE = 2
_DPI = 100
_BOX, _GAP, _MARGIN = 108, 8, 20
_LINE = 16
_DIFF_LINES = 20
_COLUMNS = 124
_INK, _FAINT, _PAPER, _PANEL = "#1b1f24", "#59636e", "#ffffff", "#f4f6f8"
_FILL = {"source": "#ffffff", "code": "#ffffff", "changed": "#0072b2", "failed": "#d55e00"}
_TEXT = {"changed": "#ffffff", "failed": "#ffffff"}
_LINES = {"-": "#fbe6d8", "+": "#d9ebf7"}
_WORDS = {"-": "#f2b48c", "+": "#8fc3e8"}
_MONO, _SANS = "DejaVu Sans Mono", "DejaVu Sans"


def draw(payload: TracePayload) -> bytes | None:
    """The PNG, 960 CSS pixels wide at twice the resolution, at most about 80 KB; None without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    entries = entries_of(payload)
    shown = _shown(entries)
    diff = _diff_lines(entries, shown)
    per_row = (WIDTH - 2 * _MARGIN + _GAP) // (_BOX + _GAP)
    strip = _strip_entries(entries)
    rows = -(-len(strip) // per_row)
    strip_height = rows * 64
    height = 58 + strip_height + (44 + _LINE * len(diff) + 16 if diff else 8)
    fonts = [_SANS, *_wide_fonts()]
    with matplotlib.rc_context({"font.family": fonts, "text.hinting": "none"}), warnings.catch_warnings():
        # A character that no installed font has is drawn as a box, which says as much as the warning does.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH / _DPI, height / _DPI), dpi=_DPI * _SCALE, facecolor=_PAPER)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(height, 0)
        axes.axis("off")
        _write(axes, _MARGIN, 24, payload.kernel, 15, weight="bold")
        _write(axes, WIDTH - _MARGIN, 24, payload.target, 11, color=_FAINT, ha="right", family=_MONO)
        _write(axes, _MARGIN, 44, summary(payload), 9.5, color=_FAINT)
        for index, (number, entry) in enumerate(strip):
            x = _MARGIN + (index % per_row) * (_BOX + _GAP)
            _draw_box(axes, x, 60 + (index // per_row) * 64, number, entry)
        if diff and shown is not None:
            _draw_diff(axes, 60 + strip_height, shown, entries, diff)
        canvas.draw()
        return _encode(canvas)


def _wide_fonts() -> list[str]:
    """Installed fonts that have Chinese characters, for names and paths in that script."""
    from matplotlib.font_manager import fontManager

    known = {font.name for font in fontManager.ttflist}
    wanted = (
        "Noto Sans CJK TC",
        "Noto Sans CJK JP",
        "PingFang HK",
        "Microsoft JhengHei",
        "WenQuanYi Zen Hei",
    )
    return [name for name in wanted if name in known]


def _shown(entries: tuple[Entry, ...]) -> Entry | None:
    """The entry to draw large: the failed one, else the first that changed an existing program."""
    failed = [entry for entry in entries if entry.status == "failed"]
    if failed:
        return failed[0]
    changed = [e for e in entries if e.status == "changed" and any(not hunk.plain for hunk in e.hunks)]
    return changed[0] if changed else None


def _strip_entries(entries: tuple[Entry, ...]) -> list[tuple[int, Entry]]:
    """At most five rows of boxes: idle passes go first where there are more."""
    numbered = list(enumerate(entries))
    if len(numbered) <= 40:
        return numbered
    return [(i, e) for i, e in numbered if e.status not in ("unchanged", "skipped")][:40]


def _diff_lines(entries: tuple[Entry, ...], shown: Entry | None) -> list[tuple[str, str, tuple[Mark, ...]]]:
    if shown is None or shown.base is None:
        return []
    if shown.status == "failed":
        notes = [f"{note.text}{f' (line {note.source})' if note.source else ''}" for note in shown.notes]
        return [(" ", text, ()) for text in (*shown.reason.splitlines(), *notes)][:_DIFF_LINES]
    old = [line.text for line in entries[shown.base].lines]
    new = [line.text for line in shown.lines]
    lines: list[tuple[str, str, tuple[Mark, ...]]] = []
    for sign, row, text in unified(old, new):
        marks = () if row is None else row.old_marks if sign == "-" else row.new_marks
        lines.append((sign, text, marks))
    if len(lines) <= _DIFF_LINES:
        return lines
    rest = len(lines) - _DIFF_LINES + 1
    return [*lines[: _DIFF_LINES - 1], ("…", f"{rest} more lines", ())]


def _draw_box(axes: Any, x: float, y: float, number: int, entry: Entry) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill = _FILL.get(entry.status, _PANEL)
    ink = _TEXT.get(entry.status, _FAINT if entry.status in ("unchanged", "skipped") else _INK)
    style = "dashed" if entry.status == "skipped" else "solid"
    edge = fill if entry.status in ("changed", "failed") else "#c3cad1"
    shape = FancyBboxPatch(
        (x, y),
        _BOX,
        54,
        boxstyle="round,pad=0,rounding_size=5",
        facecolor=fill,
        edgecolor=edge,
        linestyle=style,
        lw=1,
    )
    axes.add_patch(shape)
    _write(axes, x + 7, y + 13, f"{number}", 7.5, color=ink)
    _write(axes, x + _BOX - 7, y + 13, SIGNS[entry.status], 8, color=ink, ha="right")
    room = 15 if entry.status == "changed" else 17
    name = entry.name if len(entry.name) <= room else entry.name[: room - 1] + "…"
    _write(
        axes, x + 7, y + 29, name, 7.6, color=ink, weight="bold" if entry.status == "changed" else "normal"
    )
    below = f"+{entry.added} −{entry.removed}" if entry.status in ("changed", "code") else entry.status
    _write(axes, x + 7, y + 45, below, 7.2, color=ink)


def _draw_diff(
    axes: Any,
    y: float,
    shown: Entry,
    entries: tuple[Entry, ...],
    lines: list[tuple[str, str, tuple[Mark, ...]]],
) -> None:
    from matplotlib.patches import Rectangle

    number = next(i for i, entry in enumerate(entries) if entry is shown)
    _write(axes, _MARGIN, y + 18, f"{number}  {shown.name}", 10.5, weight="bold")
    doc = shown.doc if len(shown.doc) <= 100 else shown.doc[:99] + "…"
    _write(axes, WIDTH - _MARGIN, y + 18, doc, 8.5, color=_FAINT, ha="right")
    top, left = y + 30, _MARGIN
    advance = (WIDTH - 2 * _MARGIN - 16) / _COLUMNS
    size = advance / 0.602 * 72 / _DPI
    advance = _advance(axes, size)
    axes.add_patch(
        Rectangle(
            (left, top),
            WIDTH - 2 * _MARGIN,
            _LINE * len(lines) + 8,
            facecolor=_PANEL,
            edgecolor="#d5dbe1",
            lw=1,
        )
    )
    for i, (sign, text, marks) in enumerate(lines):
        base = top + 4 + i * _LINE
        if sign in _LINES:
            axes.add_patch(
                Rectangle((left + 1, base), WIDTH - 2 * _MARGIN - 2, _LINE, facecolor=_LINES[sign], lw=0)
            )
        start = left + 8 + 2 * advance
        for first, last in marks:
            last = min(last, _COLUMNS - 2)
            if first < last:
                box = (start + first * advance, base + 1)
                axes.add_patch(
                    Rectangle(box, (last - first) * advance, _LINE - 2, facecolor=_WORDS[sign], lw=0)
                )
        faint = sign in ("@", "…")
        shown_text = f"{'⋯' if faint else sign} {text}"
        shown_text = shown_text if len(shown_text) <= _COLUMNS else shown_text[: _COLUMNS - 1] + "…"
        _write(axes, left + 8, base + 11.5, shown_text, size, color=_FAINT if faint else _INK, family=_MONO)


def _advance(axes: Any, size: float) -> float:
    """The width of one character as drawn, in the axes' units; it differs from the font's own figure."""
    probe = _write(axes, 0, 0, "M" * 100, size, family=_MONO)
    width = probe.get_window_extent().width / _SCALE / 100
    probe.remove()
    return width


def _write(axes: Any, x: float, y: float, text: str, size: float, color: str = _INK, **kw: Any) -> Any:
    # A dollar sign would switch matplotlib to mathematics.
    kw["family"] = [kw.get("family", _SANS), *_wide_fonts()]
    return axes.text(x, y, text, fontsize=size, color=color, va="baseline", parse_math=False, **kw)


def _encode(canvas: Any) -> bytes:
    """A palette PNG: a third of the full-colour size, with no visible loss for text on flat colours."""
    from PIL import Image

    image = Image.frombuffer("RGBA", canvas.get_width_height(physical=True), canvas.buffer_rgba()).convert(
        "RGB"
    )
    out = io.BytesIO()
    palette = image.quantize(24, dither=Image.Dither.NONE)
    palette.save(out, "PNG", optimize=True, dpi=(_DPI * _SCALE, _DPI * _SCALE))
    return out.getvalue()
