"""Build the documentation: `python docs/build.py [FOLDER]` writes HTML into docs/_site and checks every link.

Pages are the Markdown files below docs/, the generated pages of `reference_pages.py`, and the notebooks. The
site needs no network and no script. The exit status is 1 when a link leads nowhere.
"""

from __future__ import annotations

import html
import importlib.util
import posixpath
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import mistune
import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SITE = DOCS / "_site"
# The order of the site; a folder lists its pages by their names, after its index.
SECTIONS = (
    ("Start", ("index.md",)),
    ("Tutorials", ("tutorials",)),
    ("How to", ("how-to",)),
    ("Reference", ("reference",)),
    ("Inside", ("internals",)),
    ("Decisions", ("decisions",)),
    ("Contribute", ("CONTRIBUTING.md",)),
)


@dataclass(frozen=True)
class Page:
    """A page: its place in the site, its title, and its Markdown; for a notebook its HTML as `body`."""

    path: str
    title: str
    text: str
    body: str = ""


def slug(text: str) -> str:
    """The anchor of a heading: lower case, words joined by hyphens; underscores stay."""
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def collect() -> list[Page]:
    """Every page, in the order of the sections."""
    texts = {p.relative_to(DOCS).as_posix(): p.read_text(encoding="utf-8") for p in sorted(DOCS.rglob("*.md"))
             if SITE not in p.parents}  # fmt: skip
    texts |= _generated()
    out = []
    for _, places in SECTIONS:
        for place in places:
            names = [place] if place in texts else [n for n in texts if n.startswith(f"{place}/")]
            names.sort(key=lambda n: (not n.endswith("index.md"), list(texts).index(n)))
            out += [Page(n[:-3] + ".html", _title(texts[n]), texts[n]) for n in names]
            out += _notebooks() if place == "tutorials" else []
    left = set(texts) - {p.path[:-5] + ".md" for p in out}
    if left:
        raise SystemExit(f"pages in no section: {sorted(left)}")
    return out


def _generated() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def _title(text: str) -> str:
    return next(line.lstrip("# ").replace("`", "") for line in text.splitlines() if line.startswith("# "))


def _notebooks() -> list[Page]:
    """The notebooks as they are stored, with their outputs."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="basic")
    out = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        body, _ = exporter.from_filename(str(path))
        body = re.sub(r'<a class="anchor-link".*?</a>', "", body)
        title = re.search(r"<h1[^>]*>(.*?)<", body)
        name = title[1].strip() if title else path.stem
        out.append(Page(f"tutorials/{path.stem}.html", name, "", f'<div class="notebook">{body}</div>'))
    return out


def render(page: Page, menu: list[Page]) -> str:
    """The page's HTML, with the menu beside it."""
    body = page.body or _markdown(page)
    up = "../" * page.path.count("/")
    links = []
    for name, places in SECTIONS:
        inside = [
            p for p in menu if any(p.path == f"{x[:-3]}.html" or p.path.startswith(f"{x}/") for x in places)
        ]
        items = "".join(
            f'<li><a href="{up}{p.path}"{" class=here" if p is page else ""}>{html.escape(p.title)}</a></li>'
            for p in inside
        )
        is_open = " open" if page in inside or name in ("Start", "Tutorials", "How to") else ""
        links.append(f"<details{is_open}><summary>{name}</summary><ul>{items}</ul></details>")
    template = (DOCS / "page.html").read_text(encoding="utf-8")
    parts = {"TITLE": html.escape(page.title), "UP": up, "MENU": "".join(links), "BODY": body}
    return re.sub(r"\{(TITLE|UP|MENU|BODY)\}", lambda m: parts[m[1]], template)


class Renderer(mistune.HTMLRenderer):
    """Headings with anchors, coloured code, and links that lead to pages instead of sources."""

    def heading(self, text: str, level: int, **_: Any) -> str:
        """A heading whose anchor is its text."""
        return f'<h{level} id="{slug(html.unescape(re.sub("<[^>]*>", "", text)))}">{text}</h{level}>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        """A block of code, coloured when its language is named."""
        if not info or info == "text":
            return f"<pre><code>{html.escape(code)}</code></pre>\n"
        return pygments.highlight(code, get_lexer_by_name(info), HtmlFormatter(cssclass="code"))

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """A link; Markdown files and notebooks are pages of the site."""
        if not re.match(r"\w+:", url):
            url = re.sub(r"(\.\./)+notebooks/(\w+)\.ipynb", r"\2.html", url.replace(".md", ".html"))
        return super().link(text, url, title)


def _markdown(page: Page) -> str:
    convert = mistune.create_markdown(renderer=Renderer(escape=False), plugins=["table", "strikethrough"])
    body = str(convert(page.text))
    return body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def broken_links(site: Path) -> list[str]:
    """Links of the site that lead to no file or to no anchor."""
    files = {p.relative_to(site).as_posix(): p.read_text(encoding="utf-8") for p in site.rglob("*.html")}
    anchors = {name: set(re.findall(r'\bid="([^"]*)"', text)) for name, text in files.items()}
    out = []
    for name, text in files.items():
        for raw in re.findall(r'(?:href|src)="([^"]*)"', text):
            target = unquote(html.unescape(raw))
            if re.match(r"[a-z][a-z0-9+.-]*:", target) or not target:
                continue
            path, _, anchor = target.partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if not (site / place).is_file():
                out.append(f"{name}: {target} leads nowhere")
            elif anchor and anchor not in anchors.get(place, ()):
                out.append(f"{name}: {target} has no such heading")
    return out


def build(site: Path) -> list[str]:
    """Write the site anew; gives the broken links."""
    shutil.rmtree(site, ignore_errors=True)
    menu = collect()
    for page in menu:
        place = site / page.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(render(page, menu), encoding="utf-8")
    shutil.copy(DOCS / "page.css", site / "page.css")
    return broken_links(site)


def main(arguments: list[str]) -> int:
    """Build into the folder given, docs/_site by default."""
    site = Path(arguments[0]) if arguments else SITE
    wrong: list[Any] = build(site)
    print(
        "\n".join(wrong)
        or f"{sum(1 for _ in site.rglob('*.html'))} pages in {site}; every link leads somewhere"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
