"""How lines of plans and reports look to the person who reads them: colour, width, ids; plain by default."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

RED, GREEN, YELLOW, CYAN, DIM = "31", "32", "33", "36", "2"
PRUNABLE = "(-)"
"""Before what only ``--prune`` would delete."""
OF_MARK = {"+": GREEN, "~": YELLOW, "@": CYAN, "-/+": RED, "-": RED, PRUNABLE: DIM, "=": DIM, "!": RED, "?": YELLOW}
NARROW = 40
"""Columns that details need beside the names; with fewer they stand below them."""
LATER = " " * 6
"""Before further lines of an error, so that a name with a line end cannot look like a new message."""


def printable(text: str, keep: str = "") -> str:
    """Return a text with escapes in place of terminal codes and line ends: names come from others, too."""
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


def indented(text: str) -> str:
    """Return a text whose further lines are indented: a name with a line end cannot look like a new message."""
    return printable(text, "\n\t").replace("\n", "\n  ")


def first_of(names: Iterable[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more} more" if more > 0 else "")


_OWN_COLOR = re.compile("(\x1b\\[(?:0|2|31|32|33|36)m)")


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, each column as wide as its widest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()


def visible(text: str) -> str:
    """Return whole lines of output with escapes for all control characters but our own colours, and for marks that
    change the direction of writing.
    """
    return "".join(each if _OWN_COLOR.fullmatch(each) else printable(each, "\n\t") for each in _OWN_COLOR.split(text))


@dataclass(frozen=True)
class Style:
    """``width`` is that of the terminal; None: nothing is wrapped.  ``unchanged``: also show what does not change."""

    color: bool = False
    width: int | None = None
    ids: bool = False
    unchanged: bool = False

    @property
    def most(self) -> int:
        """How many characters of one value are shown: on a terminal, where lines are wrapped, mostly all of it."""
        return 60 if self.width is None else 400

    def paint(self, text: str, code: str) -> str:
        """Return a text in a colour."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text

    def line(self, symbol: str, name: str, details: str) -> str:
        """Return "  + KIND/NAME  details", wrapped below the details; only errors have further lines, indented."""
        name, details = printable(name), printable(details, "\n" if symbol == "!" else "").replace("\n", f"\n{LATER}")
        head = f"{symbol:>3} {name}"
        text = self.beside(head, details)
        code = OF_MARK.get(symbol)
        return text.replace(head.rstrip(), self.paint(head.rstrip(), code), 1) if code else text

    def column(self, names: Iterable[str]) -> int:
        """Return the width of a column of names, without those that leave no room for details beside them."""
        most = None if self.width is None else self.width - NARROW - len(LATER)
        return max((len(name) for name in names if most is None or len(name) <= most), default=0)

    def beside(self, head: str, details: str) -> str:
        """Return details after the name that they are about, or below it if they need more columns than are left."""
        text, indent = f"{head}  {details}".rstrip(), len(head) + 2
        if self.width is None or len(text) <= self.width or self.width - indent >= NARROW:
            return self.wrapped(text, indent)
        return "\n".join([head.rstrip(), self.wrapped(f"{LATER}{details}", len(LATER))])

    def wrapped(self, text: str, indent: int) -> str:
        """Return a text in lines that fit the terminal, broken between words only: an address stays whole."""
        if self.width is None or len(text) <= self.width:
            return text
        return textwrap.fill(
            text,
            self.width,
            subsequent_indent=" " * indent if self.width - indent >= NARROW else LATER,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            expand_tabs=False,
        )


PLAIN = Style()
