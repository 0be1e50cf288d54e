"""A report as one HTML file, which needs no network: texts, a search, pictures and their style are in the file.

Whatever the texts are, the browser runs and shows nothing but the script and the style of this package: the policy of
the page names their digests. Source: W3C, "Content Security Policy Level 3" (hash-source, meta element).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib import resources

from openstack_prep.base.style import printable
from openstack_prep.pictures.svg import style_sheet
from openstack_prep.reports import files
from openstack_prep.version import __version__


@dataclass(frozen=True, kw_only=True)
class Item:
    """A line of a report, which can be opened if there is more to say."""

    kind: str
    """What it is, for its colour and the filters: an action, a status or a weight, such as create, failed, error."""
    sign: str
    name: str
    summary: str = ""
    rows: Sequence[tuple[str, ...]] = ()
    """Rows of a table: a label and a value, or a field with its values before and after."""
    code: str = ""
    """A command or an explanation, shown with a fixed width."""


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """A heading with items."""

    title: str
    items: Sequence[Item] = ()
    note: str = ""
    closed: bool = False
    """Whether it is at the end of the page, and its items are shown only when it is opened."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawing as embedded SVG of this package, or why there is none."""

    title: str
    svg: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report: what was done, how it ended, and the details."""

    title: str
    verdict: str
    good: bool
    facts: Sequence[tuple[str, str]] = ()
    sections: Sequence[PageSection] = ()
    pictures: Sequence[Picture] = ()
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def html(self) -> str:
        """Return the whole file."""
        style, script = _resource("report.css") + style_sheet(), _resource("report.js")
        policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
        policy += "; base-uri 'none'; form-action 'none'"
        head = [
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_text(self.title)}</title>",
            f"<style>{style}</style>",
        ]
        first, last = ([section for section in self.sections if section.closed is closed] for closed in (False, True))
        content = [*map(_section, first), *map(_picture, self.pictures), *map(_section, last)]
        body = [*self._header(), *self._search(), "<main>", *content, "</main>"]
        end = f"<footer>openstack-prep {_text(__version__)}</footer><script>{script}</script>"
        return "\n".join([files.MARK, '<html lang="en"><head>', *head, "</head><body>", *body, end, "</body></html>\n"])

    def _header(self) -> Iterator[str]:
        yield f"<header><h1>{_text(self.title)}</h1>"
        yield f'<p class="verdict {"good" if self.good else "bad"}">{_text(self.verdict)}</p><dl>'
        made = f"{self.made:%Y-%m-%d %H:%M} UTC"
        for label, value in (*self.facts, ("Created", made)):
            yield f"<div><dt>{_text(label)}</dt><dd>{_text(value)}</dd></div>"
        yield "</dl></header>"

    def _search(self) -> Iterator[str]:
        """Yield the search and a button per kind of item, which the script shows: without it they would do nothing."""
        items = [each for section in self.sections for each in section.items]
        signs: dict[str, list[str]] = {}
        for item in items:
            signs.setdefault(item.kind, []).append(item.sign)
        yield '<nav id="tools" aria-label="Search and filters" hidden>'
        yield '<input id="search" type="search" placeholder="Search" aria-label="Search">'
        for kind, found in signs.items():
            sign = found[0] if len(set(found)) == 1 else ""
            text, kept = f"{_text(sign)} {_text(kind)} <b>{len(found)}</b>", f'data-kind="{_word(kind)}"'
            yield f'<button type="button" class="chip {_word(kind)}" {kept} aria-pressed="true">{text}</button>'
        yield '<button type="button" id="open">Open all</button><button type="button" id="close">Close all</button>'
        yield '<output id="found" aria-live="polite"></output></nav>'


def _section(section: PageSection) -> str:
    note = f'<p class="note">{_lines(section.note)}</p>' if section.note else ""
    items = "\n".join(map(_item, section.items))
    head = f"<h2>{_text(section.title)} <b>{len(section.items)}</b></h2>"
    if section.closed:
        return f'<details class="group"><summary>{head}</summary>{note}{items}</details>'
    return f"<section>{head}{note}{items}</section>"


def _item(item: Item) -> str:
    kind = _word(item.kind)
    line = f'<span class="sign">{_text(item.sign)}</span><span class="name">{_text(item.name)}</span>'
    line += f'<span class="summary">{_text(item.summary)}</span>'
    if not item.rows and not item.code:
        return f'<div class="item {kind}" data-kind="{kind}">{line}</div>'
    return (
        f'<details class="item {kind}" data-kind="{kind}"><summary>{line}</summary><div class="more">'
        f"{_table(item.rows)}{f'<pre>{_lines(item.code)}</pre>' if item.code else ''}</div></details>"
    )


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    compared = any(len(row) > 2 for row in rows)
    head = (
        '<tr><th scope="col">field</th><th scope="col">before</th><th scope="col">after</th></tr>' if compared else ""
    )
    width = 3 if compared else 2
    lines = ("".join(_cell(value, index, width, row) for index, value in enumerate(row)) for row in rows)
    return f"<table>{head}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: str, index: int, width: int, row: Sequence[str]) -> str:
    span = width - len(row) + 1 if index == len(row) - 1 else 1
    tag, scope = ("td", "") if index else ("th", ' scope="row"')
    return f"<{tag}{scope}{f' colspan={chr(34)}{span}{chr(34)}' if span > 1 else ''}>{_lines(value)}</{tag}>"


def _picture(picture: Picture) -> str:
    note = f'<p class="note">{_lines(picture.note)}</p>' if picture.note else ""
    scrolled = f'class="drawing" role="region" aria-label="{_text(picture.title)}" tabindex="0"'
    drawn = f"<div {scrolled}>{picture.svg}</div>" if picture.svg else ""
    return f'<section class="drawn"><h2>{_text(picture.title)}</h2>{note}{drawn}</section>'


def _text(content: str) -> str:
    """Return a text of others for an element or a quoted attribute, without control characters."""
    return escape(printable(content), quote=True)


def _lines(content: str) -> str:
    """Return a text whose ends of lines are kept; the style sheet shows them."""
    return escape(printable(content, "\n"), quote=True)


def _word(kind: str) -> str:
    """Return a kind of item as a class."""
    return "".join(each if each.isalnum() else "-" for each in kind)


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text()


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
