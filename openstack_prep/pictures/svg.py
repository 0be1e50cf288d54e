"""Elements of a picture as SVG text: every text of others is escaped here, and only here.

A picture refers to nothing outside of itself. Widths are estimates, because the fonts of the reader are not known.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from importlib import resources

from openstack_prep.base.style import printable

WIDE = 0.66
"""Width of a letter of the monospaced fonts, and of nearly every letter of the others, per size."""


def safe(text: str) -> str:
    """Return a text for elements and quoted attributes, without control characters and marks of direction."""
    return escape(printable(text), quote=True)


def width(text: str, size: float) -> float:
    """Return the width that a text needs at most; East Asian letters are wide."""
    wide = sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in printable(text))
    return wide * size * WIDE


def cut(text: str, most: int) -> str:
    """Return a text of at most so many letters; its middle goes, because ends differ."""
    text = printable(text)
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def element(tag: str, *inner: str, **attributes: object) -> str:
    """Return an element; ``inner`` is SVG. A name such as stroke_width stands for stroke-width, class_ for class."""
    pairs = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    words = "".join(f' {name}="{safe(_number(value))}"' for name, value in pairs)
    content = "".join(inner)
    return f"<{tag}{words}>{content}</{tag}>" if content else f"<{tag}{words}/>"


def _number(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def text(x: float, y: float, content: str, class_: str = "", *, size: float = 12, anchor: str | None = None) -> str:
    """Return a line of text."""
    return element("text", safe(content), x=x, y=y, class_=class_ or None, font_size=size, text_anchor=anchor)


def box(x: float, y: float, w: float, h: float, class_: str, *, round_: float = 6) -> str:
    """Return a rectangle with rounded corners."""
    return element("rect", x=x, y=y, width=w, height=h, rx=round_, class_=class_)


def title(content: str) -> str:
    """Return what is shown while the pointer rests on the element around it."""
    return element("title", safe(content))


def picture(name: str, w: float, h: float, parts: Iterable[str], *, embedded: bool = False) -> str:
    """Return a whole picture; an ``embedded`` one has its style from the page around it."""
    style = "" if embedded else f"<style>{style_sheet()}</style>"
    return element(
        "svg",
        title(name),
        style,
        box(0, 0, w, h, "paper", round_=0),
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        class_="picture",
        role="img",
        viewBox=f"0 0 {_number(float(w))} {_number(float(h))}",
        width=float(w),
        height=float(h),
        aria_label=name,
    )


def style_sheet() -> str:
    """Return the colours of all pictures, for light and dark screens and for paper."""
    return resources.files(__package__).joinpath("picture.css").read_text()
