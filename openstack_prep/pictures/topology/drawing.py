"""A topology as SVG: external networks on top, then routers, then the other networks with what is on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from openstack_prep.pictures import svg
from openstack_prep.pictures.layers import Spot, keep_apart
from openstack_prep.pictures.topology.blocks import UP, Blocks
from openstack_prep.pictures.topology.model import FloatingIP, Interface, Network, Router, Topology
from openstack_prep.pictures.topology.tiles import Line, Tile, card, grid

MARGIN, GAP = 24.0, 26.0
PAGE = 1500.0
"""Width at which a further network begins a new row."""
BAR = 30.0
LANE = 12.0
ROUTER = 46.0
LEGEND = " \N{MIDDLE DOT} ".join(
    (f"{UP} floating IP", "+ address that a port may use besides its own", "dashed: declared, does not exist yet")
)


@dataclass(frozen=True)
class Rows:
    """Where the networks are: their bars by key, the row of each, and the upper edge of each row."""

    bars: Mapping[str, Spot]
    row: Mapping[str, int]
    tops: tuple[float, ...]
    parts: tuple[str, ...]
    width: float
    bottom: float


def draw(topology: Topology, *, embedded: bool = False) -> str:
    """Return the topology as SVG; see svg.picture."""
    tiles = Blocks.of(topology).tiles()
    rows = _rows(tiles)
    left = MARGIN + LANE * len(topology.routers) * (len(rows) > 1)
    width = max([_row_width(tiles, row) for row in rows] + [640.0])
    outside = [each for each in topology.networks if each.external]
    external = _external(outside, left, MARGIN + 40, width)
    heads = [(spot, _floating(topology.floating_ips, key, spot.w)) for key, spot in external.items()]
    above = max([head.h + 8 for _, head in heads if head.h], default=0.0)
    parts = [*_title(topology, left), *(head.paint(spot.x, spot.y, spot.w) for spot, head in heads)]
    external = {key: replace(spot, y=spot.y + above) for key, spot in external.items()}
    y = MARGIN + 40 + above
    parts += (_bar(each, external[each.key]) for each in outside)
    y += BAR + 44 if outside else 0
    placed = _place(rows, tiles, left, y + _routers_height(topology.routers))
    parts += _routers(topology.routers, placed, external, y, left)
    parts += placed.parts
    height = placed.bottom + MARGIN
    if topology.unread:
        parts.append(svg.text(left, height, f"not readable by this user: {', '.join(topology.unread)}", "hued red"))
        height += MARGIN
    name = f"Networks of {topology.subject}"
    return svg.picture(name, left + width + MARGIN, height, parts, embedded=embedded)


def _title(topology: Topology, x: float) -> Iterator[str]:
    yield svg.text(x, MARGIN + 8, f"Networks of {topology.subject}", "strong", size=15)
    yield svg.text(x, MARGIN + 25, LEGEND, "soft", size=10.5)


def _floating(floating_ips: Sequence[FloatingIP], network: str, width: float) -> Tile:
    """Return the floating IPs of a network, which stand on its bar."""
    tiles = []
    for each in (each for each in floating_ips if each.network == network):
        target = each.target or "not attached"
        lines = [Line(f"{UP} {each.address or 'next free address'}", "mono hued green strong", most=40)]
        lines.append(Line(f"{each.name}: {target}" if each.name else target, "soft", most=34))
        tiles.append(card(lines, "node" if each.exists else "node coming", name=f"{each.address} {target}", round_=12))
    across = max(1, int((width + 10) // (max((each.w for each in tiles), default=width) + 10)))
    return grid(tiles, across)


def _external(outside: Sequence[Network], x: float, y: float, width: float) -> dict[str, Spot]:
    share = (width - GAP * (len(outside) - 1)) / max(1, len(outside))
    return {each.key: Spot(x + index * (share + GAP), y, share, BAR) for index, each in enumerate(outside)}


def _bar(network: Network, spot: Spot) -> str:
    return svg.element(
        "g",
        svg.title(f"external network {network.name}"),
        svg.box(spot.x, spot.y, spot.w, spot.h, "tinted", round_=8),
        svg.text(spot.x + 12, spot.y + 20, svg.cut(network.name, 40), "strong", size=13),
        svg.text(spot.x + spot.w - 12, spot.y + 20, "external network", "soft", size=11, anchor="end"),
        class_="green",
    )


# --- rows of networks ---------------------------------------------------------------------


def _rows(tiles: Mapping[str, Tile]) -> list[list[str]]:
    rows: list[list[str]] = [[]]
    for key in tiles:
        if rows[-1] and _row_width(tiles, [*rows[-1], key]) > PAGE:
            rows.append([])
        rows[-1].append(key)
    return rows


def _row_width(tiles: Mapping[str, Tile], row: Sequence[str]) -> float:
    return sum(tiles[key].w for key in row) + GAP * max(0, len(row) - 1)


def _place(rows: Sequence[Sequence[str]], tiles: Mapping[str, Tile], left: float, y: float) -> Rows:
    bars: dict[str, Spot] = {}
    tops, parts, right = [], [], left
    for row in rows:
        x = left
        tops.append(y)
        for key in row:
            bars[key] = Spot(x, y, tiles[key].w, tiles[key].h)
            parts.append(tiles[key].paint(x, y, tiles[key].w))
            x += tiles[key].w + GAP
        right = max(right, x - GAP)
        y += max((tiles[key].h for key in row), default=0.0) + GAP + LANE
    number = {key: index for index, row in enumerate(rows) for key in row}
    return Rows(bars, number, tuple(tops), tuple(parts), right - left, y - GAP - LANE)


# --- routers ------------------------------------------------------------------------------


def _routers_height(routers: Sequence[Router]) -> float:
    return ROUTER + 44 + LANE * len(routers) if routers else 0.0


def _routers(
    routers: Sequence[Router], placed: Rows, external: Mapping[str, Spot], y: float, left: float
) -> Iterator[str]:
    """Yield the routers with their lines, which end side by side where several routers share a network."""
    widths = [max(150.0, svg.width(svg.cut(each.name, 30), 12.5) + 40) for each in routers]
    wanted = [_middle(each, placed, left) for each in routers]
    order = sorted(range(len(routers)), key=lambda index: wanted[index])
    apart = keep_apart(order, [wanted[index] for index in order], [1.0] * len(order), _half_widths(widths))
    centres = dict(zip(order, apart, strict=True))
    over = max(0.0, *(left + widths[index] / 2 - centre for index, centre in centres.items())) if centres else 0.0
    ends = _ends(routers, placed)
    for lane, index in enumerate(order):
        router, x = routers[index], centres[index] + over
        yield from _gateway(router, x, y, external)
        for end in router.interfaces:
            yield from _wire(end, ends.get((index, end.network)), x, y + ROUTER, lane, placed, left)
        yield _router(router, Spot(x - widths[index] / 2, y, widths[index], ROUTER))


def _half_widths(widths: Sequence[float]) -> Callable[[int, int], float]:
    return lambda one, other: (widths[one] + widths[other]) / 2 + 110  # room for the address of a gateway


def _middle(router: Router, placed: Rows, left: float) -> float:
    bars = [placed.bars[each.network] for each in router.interfaces if each.network in placed.bars]
    return sum(bar.x + bar.w / 2 for bar in bars) / len(bars) if bars else left + 100


def _ends(routers: Sequence[Router], placed: Rows) -> dict[tuple[int, str], float]:
    """Return where the line of each router meets each of its networks."""
    users: dict[str, list[int]] = defaultdict(list)
    for index, router in enumerate(routers):
        for end in router.interfaces:
            users[end.network].append(index)
    found = {}
    for key, bar in placed.bars.items():
        for place, index in enumerate(users[key]):
            found[index, key] = bar.x + bar.w * (place + 1) / (len(users[key]) + 1)
    return found


def _router(router: Router, spot: Spot) -> str:
    coming = "" if router.exists else " coming"
    middle = spot.x + spot.w / 2
    return svg.element(
        "g",
        svg.title(f"router {router.name}"),
        svg.box(spot.x, spot.y, spot.w, spot.h, f"node{coming}", round_=ROUTER / 2),
        svg.text(middle, spot.y + 19, svg.cut(router.name, 30), "strong", size=12.5, anchor="middle"),
        svg.text(middle, spot.y + 34, "router", "soft", size=10.5, anchor="middle"),
    )


def _gateway(router: Router, x: float, y: float, external: Mapping[str, Spot]) -> Iterator[str]:
    bar = external.get(router.gateway.network) if router.gateway else None
    if bar is None or router.gateway is None:
        return
    end = min(max(x, bar.x + 12), bar.x + bar.w - 12)
    yield _line([(x, y), (x, y - 22), (end, y - 22), (end, bar.y + BAR)])
    yield svg.text(x + 7, y - 8, ", ".join(router.gateway.addresses), "mono soft halo", size=10.5)


def _wire(
    end: Interface, x_end: float | None, x: float, y: float, lane: int, placed: Rows, left: float
) -> Iterator[str]:
    """Yield the line of a router to a network; to further rows it goes along the left margin."""
    bar = placed.bars.get(end.network)
    if bar is None or x_end is None:
        return
    bus = y + 14 + LANE * lane
    points = [(x, y), (x, bus)]
    if placed.row[end.network]:
        gutter = left - LANE * (lane + 1)
        points += [(gutter, bus), (gutter, bar.y - 16), (x_end, bar.y - 16)]
    else:
        points += [(x_end, bus)]
    yield _line([*points, (x_end, bar.y)])
    yield svg.text(x_end + 7, bar.y - 6, ", ".join(end.addresses), "mono soft halo", size=10.5)


def _line(points: Sequence[tuple[float, float]]) -> str:
    """Return a line with rounded corners."""
    kept = [points[0], *(now for before, now in pairwise(points) if now != before)]
    words_ = [f"M{kept[0][0]:.1f} {kept[0][1]:.1f}"]
    for before, corner, after in zip(kept, kept[1:], kept[2:], strict=False):
        start, stop = _towards(corner, before), _towards(corner, after)
        words_.append(f"L{start[0]:.1f} {start[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {stop[0]:.1f} {stop[1]:.1f}")
    return svg.element("path", d="".join([*words_, f"L{kept[-1][0]:.1f} {kept[-1][1]:.1f}"]), class_="wire")


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the point near a corner from which it is rounded, on the way to another point."""
    across, down = other[0] - corner[0], other[1] - corner[1]
    length = max(abs(across), abs(down)) or 1.0
    part = min(8.0, length / 2) / length
    return corner[0] + across * part, corner[1] + down * part
