"""Flowcharts of the guides as pictures of the site: in Markdown they are for Mermaid, which GitHub and GitLab draw.

So the site needs no script from the internet. Read is what the guides use: boxes, arrows with labels, and subgraphs.
Source: Mermaid 11, "Flowcharts".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from openstack_prep.pictures import svg
from openstack_prep.pictures.layers import BoxPosition, Layout, lay_out

SIZE, LINE, PAD, MARGIN, FRAME = 12.5, 16.0, 10.0, 12.0, 16.0
WIDEST = 720.0
"""Of a picture on a page; a flowchart that would be wider goes downwards."""
_NODE = re.compile(r"(?P<id>\w+)\s*(?:\(?\[\"?(?P<text>.*?)\"?\]\)?)?\s*(?=$|&|--|-\.)")
_ARROW = re.compile(r"\s*(?P<line>-->|-\.->|---)\s*(?:\|(?P<label>[^|]*)\|)?\s*")


@dataclass
class Flowchart:
    """Boxes by id, and edges between indices of boxes."""

    to_left: bool
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    edges: list[tuple[int, int, str]] = field(default_factory=list)
    """From, to and the kind of line; a label is a box without a frame, between the two."""
    frames: list[tuple[str, list[int]]] = field(default_factory=list)

    def node(self, found: re.Match[str]) -> int:
        if found["id"] not in self.ids:
            self.add(found["id"], found["id"])
        index = self.ids.index(found["id"])
        if found["text"]:
            self.texts[index] = found["text"]
        return index

    def add(self, name: str, text: str) -> int:
        self.ids.append(name)
        self.texts.append(text)
        return len(self.ids) - 1

    @property
    def name(self) -> str:
        """What the picture shows, in words."""
        lines = (f"{self.lines(one)[0]} to {self.lines(other)[0]}" for one, other, _ in self.edges)
        return "Flowchart: " + ", ".join(lines)

    def lines(self, index: int) -> list[str]:
        decoded = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), self.texts[index])
        return decoded.split("\\n")


def read(text: str) -> Flowchart:
    """Return the flowchart of a block for Mermaid; raises ValueError for what is not read here."""
    first, *rest = filter(None, map(str.strip, text.splitlines()))
    if first not in ("flowchart LR", "flowchart RL"):
        raise ValueError(f"{first}: write flowchart LR or RL")
    found = Flowchart(first.endswith("RL"))
    open_frames: list[list[int]] = []
    for line in rest:
        if line == "end":
            open_frames.pop()
        elif subgraph := re.fullmatch(r"subgraph (\w+)(?:\[(.*)\])?", line):
            open_frames.append([])
            found.frames.append((subgraph[2] or subgraph[1], open_frames[-1]))
        else:
            boxes = _read_line(found, line)
            for frame in open_frames:
                frame += boxes
    return found


def _read_line(found: Flowchart, line: str) -> list[int]:
    """Add the boxes and edges of a line such as ``a & b -->|label| c[text] --> d``, and return its boxes."""
    boxes = list[int]()
    at, sources, arrow = 0, list[int](), None
    while at < len(line):
        targets = list[int]()
        while True:
            node = _NODE.match(line, at)
            if node is None:
                raise ValueError(f"{line[at:]}: write a box such as id[text]")
            targets.append(found.node(node))
            at = node.end()
            if line[at : at + 1] != "&":
                break
            at += 1 + len(line[at + 1 :]) - len(line[at + 1 :].lstrip())
        boxes += targets
        if arrow:
            _connect(found, sources, targets, arrow)
        sources, arrow = targets, _ARROW.match(line, at)
        if arrow is None:
            break
        at = arrow.end()
    if at < len(line) or arrow:
        raise ValueError(f"{line}: write boxes with arrows such as --> between them")
    return boxes


def _connect(found: Flowchart, sources: Sequence[int], targets: Sequence[int], arrow: re.Match[str]) -> None:
    if arrow["label"]:
        label = found.add("", arrow["label"])
        found.edges += [(each, label, "---") for each in sources]
        sources = [label]
    found.edges += [(one, other, arrow["line"]) for one in sources for other in targets]


def draw(chart: Flowchart) -> str:
    """Return a flowchart as SVG."""
    lines = [chart.lines(index) for index in range(len(chart.ids))]
    sizes = [(max(svg.width(each, SIZE) for each in text) + 2 * PAD, LINE * len(text) + PAD) for text in lines]
    pairs = [(one, other) if chart.to_left else (other, one) for one, other, _ in chart.edges]
    layout = lay_out(sizes, pairs)
    if down := layout.width > WIDEST:
        layout = _turn(lay_out([(height, width) for width, height in sizes], pairs))
    frames = [*_frames(chart, layout)]
    parts = [each for each, _ in frames]
    for (*_, line), pair in zip(chart.edges, pairs, strict=True):
        path = layout.paths[pair] if chart.to_left else layout.paths[pair][::-1]
        parts.append(_edge(path, line, down))
    parts += [_box(chart.ids[index], lines[index], spot, down) for index, spot in enumerate(layout.spots)]
    parts += [title for _, title in frames]  # a line may cross it
    edge = MARGIN + FRAME * 2 * bool(chart.frames)
    shift = svg.element("g", *parts, transform=f"translate({edge:g} {edge:g})")
    return svg.picture(chart.name, layout.width + 2 * edge, layout.height + 2 * edge, [shift])


def _turn(layout: Layout) -> Layout:
    """Return a layout with columns as rows."""
    spots = tuple(BoxPosition(each.y, each.x, each.h, each.w) for each in layout.spots)
    paths = {pair: tuple((y, x) for x, y in path) for pair, path in layout.paths.items()}
    return Layout(spots, paths, layout.height, layout.width)


def _box(name: str, lines: Sequence[str], spot: BoxPosition, down: bool) -> str:
    top = spot.middle - LINE * (len(lines) - 1) / 2 + SIZE / 3
    class_ = "" if name else "soft"
    texts = [
        svg.text(spot.x + spot.w / 2, top + LINE * index, each, class_, size=SIZE, anchor="middle")
        for index, each in enumerate(lines)
    ]
    if name:
        return svg.element("g", svg.box(spot.x, spot.y, spot.w, spot.h, "node"), *texts, class_="box")
    middle = spot.x + spot.w / 2
    through = f"M{middle:.1f} {spot.y:.1f}v{spot.h:.1f}" if down else f"M{spot.x:.1f} {spot.middle:.1f}h{spot.w:.1f}"
    wide, high = max(svg.width(each, SIZE) for each in lines) + PAD, LINE * len(lines) + PAD / 2
    gap = svg.box(middle - wide / 2, spot.middle - high / 2, wide, high, "paper", round_=0)
    return svg.element("g", svg.element("path", d=through, class_="edge"), gap, *texts, class_="box")


def _edge(path: Sequence[tuple[float, float]], line: str, down: bool) -> str:
    """Return a line along some points, with an arrow at the last one."""
    (x, y), *points = path
    words = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in points:
        bends = (x, (y + to_y) / 2, to_x, (y + to_y) / 2) if down else ((x + to_x) / 2, y, (x + to_x) / 2, to_y)
        words.append("C" + " ".join(f"{each:.1f}" for each in (*bends, to_x, to_y)))
        x, y = to_x, to_y
    back = -8 if path[0][down] < (x, y)[down] else 8
    sides = f"l-4 {back}h8z" if down else f"l{back} -4v8z"
    tip = "" if line == "---" else svg.element("path", d=f"M{x:.1f} {y:.1f}{sides}", class_="arrow")
    return svg.element("path", d="".join(words), class_="edge coming" if line == "-.->" else "edge") + tip


def _frames(chart: Flowchart, layout: Layout) -> Iterator[tuple[str, str]]:
    """Yield a frame around each subgraph and its title, the outer ones first."""
    for index, (title, members) in enumerate(chart.frames):
        spots = [layout.spots[each] for each in members]
        inner = any(set(other) < set(members) for _, other in chart.frames[index + 1 :])
        pad = FRAME * (2 if inner else 1)
        x, y = min(each.x for each in spots) - pad, min(each.y for each in spots) - pad - FRAME / 2
        right, bottom = max(each.x + each.w for each in spots) + pad, max(each.y + each.h for each in spots) + pad
        outer = any(set(members) < set(other) for _, other in chart.frames)
        frame = svg.box(x, y, right - x, bottom - y, "group" if outer else "panel")
        yield frame, svg.text(x + 8, y + SIZE + 2, title, "soft halo", size=11)
