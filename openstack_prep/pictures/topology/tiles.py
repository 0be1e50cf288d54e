"""Parts of a drawing that know their size before they know their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from openstack_prep.pictures import svg

PAD = 10.0
LINE = 15.0
SMALL = 10.5


@dataclass(frozen=True)
class Tile:
    """A part of a drawing: ``paint`` returns it with its upper left corner at a place, at least as wide as it needs."""

    w: float
    h: float
    paint: Callable[[float, float, float], str]


@dataclass(frozen=True)
class Line:
    """A line of text in a box."""

    text: str
    class_: str = ""
    dot: str = ""
    """The colour of the dot in front of it; empty for none."""
    most: int = 30

    @property
    def w(self) -> float:
        return svg.width(svg.cut(self.text, self.most), SMALL) * 0.97 + (12 if self.dot else 0)

    def paint(self, x: float, y: float) -> str:
        shift = 12 if self.dot else 0
        dot = svg.element("circle", cx=x + 4, cy=y - 3.7, r=4, class_=f"filled {self.dot}") if self.dot else ""
        return dot + svg.text(x + shift, y, svg.cut(self.text, self.most), self.class_, size=SMALL)


def card(lines: Sequence[Line], class_: str, *, name: str, round_: float = 6.0) -> Tile:
    """Return a box with lines of text; ``name`` is shown while the pointer rests on it."""
    h = len(lines) * LINE + PAD

    def paint(x: float, y: float, w: float) -> str:
        rows = (each.paint(x + PAD, y + 15 + index * LINE) for index, each in enumerate(lines))
        return svg.element("g", svg.title(name), svg.box(x, y, w, h, class_, round_=round_), *rows)

    return Tile(max(each.w for each in lines) + 2 * PAD, h, paint)


def grid(tiles: Sequence[Tile], columns: int, gap: float = PAD) -> Tile:
    """Return tiles in rows, all as wide as the widest one."""
    if not tiles:
        return Tile(0.0, 0.0, lambda x, y, w: "")
    widest = max(each.w for each in tiles)
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    heights = [max(each.h for each in row) for row in rows]

    def paint(x: float, y: float, w: float) -> str:
        parts = []
        for row, height in zip(rows, heights, strict=True):
            parts += [each.paint(x + index * (widest + gap), y, widest) for index, each in enumerate(row)]
            y += height + gap
        return "".join(parts)

    across = min(columns, len(tiles))
    return Tile(across * widest + (across - 1) * gap, sum(heights) + gap * (len(rows) - 1), paint)


def column(tiles: Sequence[Tile], gap: float = PAD) -> Tile:
    """Return tiles below one another, all as wide as the whole, without empty ones."""
    tiles = [each for each in tiles if each.h]

    def paint(x: float, y: float, w: float) -> str:
        parts = []
        for each in tiles:
            parts.append(each.paint(x, y, w))
            y += each.h + gap
        return "".join(parts)

    height = sum(each.h for each in tiles) + gap * max(0, len(tiles) - 1)
    return Tile(max((each.w for each in tiles), default=0.0), height, paint)


def framed(inner: Tile, class_: str) -> Tile:
    """Return a tile with a frame around it."""

    def paint(x: float, y: float, w: float) -> str:
        return svg.box(x, y, w, inner.h + 2 * PAD, class_, round_=8) + inner.paint(x + PAD, y + PAD, w - 2 * PAD)

    return Tile(inner.w + 2 * PAD, inner.h + 2 * PAD, paint)


def words(content: str, class_: str = "", *, size: float = 12.0) -> Tile:
    """Return a line of text as a tile."""
    w = svg.width(content, size)
    return Tile(w, size + 4, lambda x, y, _: svg.text(x, y + size, content, class_, size=size))
