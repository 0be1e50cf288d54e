"""A topology as SVG: external networks on top, then routers, then the other networks with what is on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TypeVar

from openstack_prep.pictures import svg
from openstack_prep.pictures.layers import BoxPosition, keep_apart
from openstack_prep.pictures.topology.elements import (
    Cluster,
    Interface,
    Server,
    Topology,
    TopologyFloatingIP,
    TopologyNetwork,
    TopologyPort,
    TopologyRouter,
    VirtualAddress,
)

# --- tile -------------------------------------------------------------------------------------


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

    return Tile(max(line.w for line in lines) + 2 * PAD, h, paint)


def grid(tiles: Sequence[Tile], columns: int, gap: float = PAD) -> Tile:
    """Return tiles in rows, all as wide as the widest one."""
    if not tiles:
        return Tile(0.0, 0.0, lambda x, y, w: "")
    widest = max(tile.w for tile in tiles)
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    heights = [max(tile.h for tile in row) for row in rows]

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
    tiles = [tile for tile in tiles if tile.h]

    def paint(x: float, y: float, w: float) -> str:
        parts = []
        for tile in tiles:
            parts.append(tile.paint(x, y, w))
            y += tile.h + gap
        return "".join(parts)

    height = sum(tile.h for tile in tiles) + gap * max(0, len(tiles) - 1)
    return Tile(max((tile.w for tile in tiles), default=0.0), height, paint)


def framed(inner: Tile, class_: str) -> Tile:
    """Return a tile with a frame around it."""

    def paint(x: float, y: float, w: float) -> str:
        return svg.box(x, y, w, inner.h + 2 * PAD, class_, round_=8) + inner.paint(x + PAD, y + PAD, w - 2 * PAD)

    return Tile(inner.w + 2 * PAD, inner.h + 2 * PAD, paint)


def words(content: str, class_: str = "", *, size: float = 12.0) -> Tile:
    """Return a line of text as a tile."""
    w = svg.width(content, size)
    return Tile(w, size + 4, lambda x, y, _: svg.text(x, y + size, content, class_, size=size))


# --- block ------------------------------------------------------------------------------------


HUES = ("blue", "orange", "teal", "pink", "olive", "violet", "brown")
M = TypeVar("M", Server, VirtualAddress)
BLOCK_BAR = 34.0
LEAST = 300.0
MOST = 30
"""Servers of a cluster that are drawn; the others are counted."""
UP = "\N{UPWARDS ARROW}"
FINE = ("ACTIVE", "")
FIRST = ("master", "server", "controlplane", "bootstrap")
"""Roles that are drawn before the others."""


@dataclass(frozen=True)
class Blocks:
    """The networks of a topology as tiles, by key; those outside only if something is on them."""

    topology: Topology
    hues: Mapping[str, str]

    @classmethod
    def of(cls, topology: Topology) -> Blocks:
        inner = [each.key for each in topology.networks if not each.external]
        hues = {key: HUES[index % len(HUES)] for index, key in enumerate(inner)}
        return cls(topology, defaultdict(lambda: "green", hues))

    def tiles(self) -> dict[str, Tile]:
        """Return a tile per network, in the order of the topology; the last one has what is on none of them."""
        known = {each.key for each in self.topology.networks}
        homes = self._homes(known)
        servers, virtual = defaultdict(list), defaultdict(list)
        for server in self.topology.servers:
            servers[homes[server.key]].append(server)
        for address in self.topology.virtual_addresses:
            virtual[address.network if address.network in known else ""].append(address)
        coming = defaultdict(list)
        for cluster in self.topology.clusters:
            if cluster.coming:
                coming[next((key for key in cluster.networks if key in known), "")].append(cluster)
        found = {}
        for network in self.topology.networks:
            key = network.key
            if not network.external or servers[key] or virtual[key] or coming[key]:
                found[key] = self._block(network, servers[key], virtual[key], coming[key])
        if servers[""] or virtual[""] or coming[""]:
            nowhere = TopologyNetwork(key="", name="not on a known network", exists=False)
            found[""] = self._block(nowhere, servers[""], virtual[""], coming[""])
        return found

    def _homes(self, known: AbstractSet[str]) -> dict[str, str]:
        """Return by server the network that it is drawn at: of its known networks that with most servers."""
        networks = {each.key: {port.network for port in each.ports} & known for each in self.topology.servers}
        counts = Counter(key for each in networks.values() for key in each)
        return {server: max(each, key=lambda key: (counts[key], key), default="") for server, each in networks.items()}

    def _block(
        self,
        network: TopologyNetwork,
        servers: Sequence[Server],
        virtual: Sequence[VirtualAddress],
        coming: Sequence[Cluster],
    ) -> Tile:
        known = {each.name: each for each in self.topology.clusters}
        names = {each.cluster for each in servers} | {each.cluster for each in virtual}
        names |= {each.name for each in coming}
        frames = [
            self._frame(known.get(name) or Cluster(name=name), _of(servers, name), _of(virtual, name), network.key)
            for name in sorted(names - {""})
        ]
        rest = self._members(_of(servers, ""), _of(virtual, ""), network.key, frozenset())
        return self._under_bar(network, column([*frames, rest]))

    def _under_bar(self, network: TopologyNetwork, inner: Tile) -> Tile:
        hue, coming = self.hues[network.key], "" if network.exists else " coming"
        ranges = [subnet.cidr for subnet in network.subnets]
        bar = [network.name, *ranges, *(["of another project"] if network.foreign and not network.external else [])]
        needed = svg.width(svg.cut(network.name, 32), 13) + sum(svg.width(each, 11) + 16 for each in bar[1:])
        ends = [_addresses_width(end) for router in self.topology.routers for end in router.interfaces_in(network.key)]
        w = max(LEAST, inner.w + 2 * PAD, needed + 2 * PAD, (len(ends) + 1) * max(ends, default=0.0))
        h = BLOCK_BAR + (inner.h + 2 * PAD if inner.h else 10)

        def paint(x: float, y: float, w: float) -> str:
            return svg.element(
                "g",
                svg.title(" ".join(bar)),
                svg.box(x + 3, y + BLOCK_BAR / 2, w - 6, h - BLOCK_BAR / 2, "panel", round_=8),
                svg.box(x, y, w, BLOCK_BAR, f"tinted{coming}", round_=8),
                svg.text(x + 12, y + 22, svg.cut(network.name, 32), "strong", size=13),
                svg.text(x + w - 12, y + 22, "   ".join(bar[1:]), "mono", size=11, anchor="end"),
                inner.paint(x + PAD, y + BLOCK_BAR + PAD, w - 2 * PAD),
                class_=hue,
            )

        return Tile(w, h, paint)

    def _frame(self, cluster: Cluster, servers: Sequence[Server], virtual: Sequence[VirtualAddress], here: str) -> Tile:
        """Return a cluster: its name, the addresses that all its nodes may use, and its members."""
        ports = [port for each in servers for port in each.ports if port.network == here]
        shared = _shared(ports) if len(ports) > 1 else frozenset()
        head = " \N{MIDDLE DOT} ".join(filter(None, (svg.cut(cluster.name, 60), cluster.product, _counts(servers))))
        rows = [words(head, "strong", size=12.5)]
        allowed = sorted(shared) if servers else list(cluster.pairs)
        if allowed:
            rows.append(words(f"all nodes may also use {', '.join(allowed)}", "soft", size=10.5))
        if cluster.coming and not servers:
            rows.append(words(f"to come: {cluster.coming}", "soft", size=11))
        rows.append(self._members(servers, virtual, here, shared))
        return framed(column(rows), "group" if servers else "group coming")

    def _members(
        self, servers: Sequence[Server], virtual: Sequence[VirtualAddress], here: str, shared: frozenset[str]
    ) -> Tile:
        across = 3 if len(servers) <= 9 else 4 if len(servers) <= 16 else 6
        roles: dict[str, list[Tile]] = defaultdict(list)
        for each in _by_role(servers)[:MOST]:
            roles[each.role].append(self._server(each, here, shared))
        rows = [list(map(self._virtual, virtual)), *roles.values()]
        widest = max((each.w for row in rows for each in row), default=0.0)
        grids = [grid([replace(tile, w=widest) for tile in row], across) for row in rows]
        left = len(servers) - MOST
        return column([*grids, *([words(f"and {left} more servers", "soft")] if left > 0 else [])])

    def _server(self, server: Server, here: str, shared: frozenset[str]) -> Tile:
        lines = [Line(server.name, "strong", most=26)]
        note = ", ".join(filter(None, (server.role, "" if server.status in FINE else server.status)))
        if note:
            lines.append(Line(note, "soft" if server.status in FINE else "hued red strong"))
        for port in server.ports:
            lines += self._ends(port, shared if port.network == here else frozenset())
        return card(lines, "node", name=f"server {server.name}: {server.status}")

    def _ends(self, port: TopologyPort, shared: frozenset[str]) -> Iterator[Line]:
        for address in port.addresses:
            yield Line(address, "mono", dot=self.hues[port.network], most=40)
        for address in port.floating_ips:
            yield Line(f"{UP} {address}", "mono hued green", most=40)
        for pair in (each for each in port.pairs if each not in shared):
            yield Line(f"+ {pair}", "mono soft", most=40)

    def _virtual(self, address: VirtualAddress) -> Tile:
        lines = [Line(address.name, "strong", most=26), Line("pool" if address.pool else "virtual address", "soft")]
        lines += (Line(each, "mono", dot=self.hues[address.network], most=40) for each in address.addresses)
        lines += (Line(f"{UP} {floating_ip}", "mono hued green", most=40) for floating_ip in address.floating_ips)
        return card(lines, "node" if address.exists else "node coming", name=address.name, round_=16)


def _of(members: Iterable[M], cluster: str) -> list[M]:
    return [member for member in members if member.cluster == cluster]


def _by_role(servers: Iterable[Server]) -> list[Server]:
    return sorted(servers, key=lambda each: (FIRST.index(each.role) if each.role in FIRST else len(FIRST), each.role))


def _shared(ports: Sequence[TopologyPort]) -> frozenset[str]:
    """Return the pairs that all ports have."""
    return reduce(frozenset.__and__, (frozenset(port.pairs) for port in ports))


def _counts(servers: Iterable[Server]) -> str:
    """Return how many nodes of each role there are, such as "3 server, 2 agent"."""
    counts = Counter(server.role or "node" for server in _by_role(servers))
    return ", ".join(f"{number} {role}{'' if number == 1 else 's'}" for role, number in counts.items())


# --- drawing ----------------------------------------------------------------------------------


MARGIN, GAP = 24.0, 26.0
PAGE = 1500.0
"""Width at which a further network begins a new row."""
OUTSIDE = "external network"
BAR = 30.0
LANE = 12.0
ROUTER = 46.0
LEGEND = " \N{MIDDLE DOT} ".join(
    (f"{UP} floating IP", "+ address that a port may use besides its own", "dashed: declared, does not exist yet")
)


@dataclass(frozen=True)
class Rows:
    """Where the networks are: their bars by key, the row of each, and the upper edge of each row."""

    bars: Mapping[str, BoxPosition]
    row: Mapping[str, int]
    tops: tuple[float, ...]
    parts: tuple[str, ...]
    width: float
    bottom: float


def draw(topology: Topology, *, embedded: bool = False) -> str:
    """Return the topology as SVG; see svg.picture."""
    tiles = Blocks.of(topology).tiles()
    slots = [Slot.of(router) for router in topology.routers]
    rows = _rows(tiles, max(PAGE, _slots_width(slots)))
    left = MARGIN + LANE * len(topology.routers) * (len(rows) > 1)
    outside = [network for network in topology.networks if network.external]
    unread = f"not readable by this user: {', '.join(topology.unread)}" if topology.unread else ""
    width = max(
        *(_row_width(tiles, row) for row in rows),
        _slots_width(slots),
        _external_width(outside, topology.floating_ips),
        *(svg.width(LEGEND, SMALL), svg.width(unread, 12)),
    )
    external = _external(outside, left, MARGIN + 40, width)
    heads = [(spot, _floating(topology.floating_ips, key, spot.w)) for key, spot in external.items()]
    above = max([head.h + 8 for _, head in heads if head.h], default=0.0)
    parts = [*_title(topology, left, width), *(head.paint(spot.x, spot.y, spot.w) for spot, head in heads)]
    external = {key: replace(spot, y=spot.y + above) for key, spot in external.items()}
    y = MARGIN + 40 + above
    parts += (_bar(network, external[network.key]) for network in outside)
    y += _gateways_height(topology.routers, external)
    placed = _place(rows, tiles, topology.routers, left, y + _routers_height(topology.routers))
    parts += _routers(topology.routers, slots, placed, external, y, (left, left + width))
    parts += placed.parts
    height = placed.bottom + MARGIN
    if unread:
        parts.append(svg.text(left, height, unread, "hued red"))
        height += MARGIN
    name = f"Networks of {topology.subject}"
    return svg.picture(name, left + width + MARGIN, height, parts, embedded=embedded)


def _title(topology: Topology, x: float, width: float) -> Iterator[str]:
    most = int(width / svg.width("n", 15))
    yield svg.text(x, MARGIN + 8, svg.cut(f"Networks of {topology.subject}", most), "strong", size=15)
    yield svg.text(x, MARGIN + 25, LEGEND, "soft", size=SMALL)


def _floating(floating_ips: Sequence[TopologyFloatingIP], network: str, width: float) -> Tile:
    """Return the floating IPs of a network, which stand on its bar."""
    tiles = [_floating_card(floating_ip) for floating_ip in floating_ips if floating_ip.network == network]
    across = max(1, int((width + 10) // (max((tile.w for tile in tiles), default=width) + 10)))
    return grid(tiles, across)


def _floating_card(floating_ip: TopologyFloatingIP) -> Tile:
    target = floating_ip.target or "not attached"
    lines = [Line(f"{UP} {floating_ip.address or 'next free address'}", "mono hued green strong", most=40)]
    lines.append(Line(f"{floating_ip.name}: {target}" if floating_ip.name else target, "soft", most=34))
    class_ = "node" if floating_ip.exists else "node coming"
    return card(lines, class_, name=f"{floating_ip.address} {target}", round_=12)


def _external_width(outside: Sequence[TopologyNetwork], floating_ips: Sequence[TopologyFloatingIP]) -> float:
    """Return the least width of all external networks, which are equally wide."""
    names = [svg.width(svg.cut(network.name, 40), 13) + svg.width(OUTSIDE, 11) + 40 for network in outside]
    cards = [_floating_card(floating_ip).w for floating_ip in floating_ips if outside]
    return len(outside) * (max([*names, *cards], default=0.0) + GAP)


def _external(outside: Sequence[TopologyNetwork], x: float, y: float, width: float) -> dict[str, BoxPosition]:
    share = (width - GAP * (len(outside) - 1)) / max(1, len(outside))
    return {each.key: BoxPosition(x + index * (share + GAP), y, share, BAR) for index, each in enumerate(outside)}


def _bar(network: TopologyNetwork, spot: BoxPosition) -> str:
    return svg.element(
        "g",
        svg.title(f"external network {network.name}"),
        svg.box(spot.x, spot.y, spot.w, spot.h, "tinted", round_=8),
        svg.text(spot.x + 12, spot.y + 20, svg.cut(network.name, 40), "strong", size=13),
        svg.text(spot.x + spot.w - 12, spot.y + 20, OUTSIDE, "soft", size=11, anchor="end"),
        class_="green",
    )


# --- rows of networks ---------------------------------------------------------------------


def _rows(tiles: Mapping[str, Tile], most: float) -> list[list[str]]:
    rows: list[list[str]] = [[]]
    for key in tiles:
        if rows[-1] and _row_width(tiles, [*rows[-1], key]) > most:
            rows.append([])
        rows[-1].append(key)
    return rows


def _row_width(tiles: Mapping[str, Tile], row: Sequence[str]) -> float:
    return sum(tiles[key].w for key in row) + GAP * max(0, len(row) - 1)


def _place(
    rows: Sequence[Sequence[str]], tiles: Mapping[str, Tile], routers: Sequence[TopologyRouter], left: float, y: float
) -> Rows:
    bars: dict[str, BoxPosition] = {}
    tops, parts, right = [], [], left
    for number, row in enumerate(rows):
        users = [router for router in routers if not {end.network for end in router.interfaces}.isdisjoint(row)]
        y += LANE * max(0, len(users) - 1) if number else 0  # a lane per router, above the row
        x = left
        tops.append(y)
        for key in row:
            bars[key] = BoxPosition(x, y, tiles[key].w, tiles[key].h)
            parts.append(tiles[key].paint(x, y, tiles[key].w))
            x += tiles[key].w + GAP
        right = max(right, x - GAP)
        y += max((tiles[key].h for key in row), default=0.0) + GAP + LANE
    row_of = {key: index for index, row in enumerate(rows) for key in row}
    return Rows(bars, row_of, tuple(tops), tuple(parts), right - left, y - GAP - LANE)


# --- routers ------------------------------------------------------------------------------


def _gateways_height(routers: Sequence[TopologyRouter], external: Mapping[str, BoxPosition]) -> float:
    """Return the height of external bars and of what is between them and the routers: a lane per line that may bend."""
    lanes = sum(1 for router in routers if router.gateway) - 1 if len(external) > 1 else 0
    return BAR + 44 + LANE * max(0, lanes) if external else 0.0


def _routers_height(routers: Sequence[TopologyRouter]) -> float:
    return ROUTER + 44 + LANE * len(routers) if routers else 0.0


@dataclass(frozen=True)
class Slot:
    """The room that a router needs on both sides of its middle: its box, and the addresses of its gateway."""

    before: float
    after: float

    @classmethod
    def of(cls, router: TopologyRouter) -> Slot:
        half = max(150.0, svg.width(svg.cut(router.name, 30), 12.5) + 40) / 2
        return cls(half, max(half, _addresses_width(router.gateway) if router.gateway else 0.0))


def _slots_width(slots: Sequence[Slot]) -> float:
    return sum(slot.before + slot.after + GAP for slot in slots)


def _addresses_width(end: Interface) -> float:
    """Return the width of the addresses right of a line, with room before and behind them."""
    return svg.width(", ".join(end.addresses), SMALL) + 14


def _routers(
    routers: Sequence[TopologyRouter],
    slots: Sequence[Slot],
    placed: Rows,
    external: Mapping[str, BoxPosition],
    y: float,
    edges: tuple[float, float],
) -> Iterator[str]:
    """Yield the routers with their lines, which end side by side where several routers share a network."""
    wanted = [_middle(each, placed, edges[0]) for each in routers]
    order = sorted(range(len(routers)), key=lambda index: wanted[index])
    centres = _centres([wanted[index] for index in order], [slots[index] for index in order], edges)
    ends = _ends(routers, placed)
    outer = _gateway_ends([routers[index] for index in order], centres, external)
    joining: dict[int, list[int]] = defaultdict(list)  # by row, the routers whose lines go there, the outermost first
    for index in reversed(order):
        for row in {placed.row[end.network] for end in routers[index].interfaces if end.network in placed.row}:
            joining[row].append(index)
    for lane, (index, x) in enumerate(zip(order, centres, strict=True)):
        router, half = routers[index], slots[index].before
        if router.gateway and lane in outer:
            yield from _gateway(router.gateway, x, y, *outer[lane])
        for end in router.interfaces:
            above = joining[placed.row.get(end.network, 0)]
            gutter = edges[0] - LANE * (lane + 1), LANE * above.index(index) if index in above else 0.0
            yield from _wire(end, ends.get((index, end.network)), (x, y + ROUTER), lane, placed, gutter)
        yield _router(router, BoxPosition(x - half, y, 2 * half, ROUTER))


def _centres(wanted: Sequence[float], slots: Sequence[Slot], edges: tuple[float, float]) -> list[float]:
    """Return the middles nearest to the wanted ones in this order, between the edges, which are far enough apart."""
    order = range(len(slots))

    def apart(one: int, other: int) -> float:
        return slots[one].after + GAP + slots[other].before

    found = keep_apart(order, wanted, [1.0] * len(order), apart)
    for index in order:
        least = found[index - 1] + apart(index - 1, index) if index else edges[0] + slots[0].before
        found[index] = max(found[index], least)
    for index in reversed(order):
        last = index == len(slots) - 1
        most = edges[1] - slots[-1].after if last else found[index + 1] - apart(index, index + 1)
        found[index] = min(found[index], most)
    return found


def _middle(router: TopologyRouter, placed: Rows, left: float) -> float:
    bars = [placed.bars[interface.network] for interface in router.interfaces if interface.network in placed.bars]
    return sum(bar.x + bar.w / 2 for bar in bars) / len(bars) if bars else left + 100


def _ends(routers: Sequence[TopologyRouter], placed: Rows) -> dict[tuple[int, str], float]:
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


def _router(router: TopologyRouter, spot: BoxPosition) -> str:
    coming = "" if router.exists else " coming"
    middle = spot.x + spot.w / 2
    return svg.element(
        "g",
        svg.title(f"router {router.name}"),
        svg.box(spot.x, spot.y, spot.w, spot.h, f"node{coming}", round_=ROUTER / 2),
        svg.text(middle, spot.y + 19, svg.cut(router.name, 30), "strong", size=12.5, anchor="middle"),
        svg.text(middle, spot.y + 34, "router", "soft", size=10.5, anchor="middle"),
    )


def _gateway_ends(
    routers: Sequence[TopologyRouter], centres: Sequence[float], external: Mapping[str, BoxPosition]
) -> dict[int, tuple[float, float, int]]:
    """Return by router where its line meets its external network, and in which lane it bends: side by side."""
    found: dict[int, tuple[float, float, int]] = {}
    for key, bar in external.items():
        users = [index for index, each in enumerate(routers) if each.gateway and each.gateway.network == key]
        least, most = bar.x + LANE, bar.x + bar.w - LANE * len(users)
        for index in users:
            end = max(least, min(centres[index], most))
            least, most = end + LANE, most + LANE
            near = [x for x in centres if 0 < abs(x - end) < LANE / 3]  # of a router whose own line goes up there
            found[index] = end + sum(LANE / 3 if x < end else -LANE / 3 for x in near), bar.y + BAR, 0
    bent = [index for index, (end, _, _) in sorted(found.items()) if end != centres[index]]
    return found | {index: (*found[index][:2], lane) for lane, index in enumerate(bent)}


def _gateway(gateway: Interface, x: float, y: float, end: float, bar: float, lane: int) -> Iterator[str]:
    bend = y - 22 - LANE * lane
    yield _line([(x, y), (x, bend), (end, bend), (end, bar)])
    yield svg.text(x + 7, y - 8, ", ".join(gateway.addresses), "mono soft halo", size=10.5)


def _wire(
    end: Interface,
    x_end: float | None,
    start: tuple[float, float],
    lane: int,
    placed: Rows,
    gutter: tuple[float, float],
) -> Iterator[str]:
    """Yield the line of a router to a network; to further rows it goes along the left margin.

    ``gutter`` is where: its place there, and how far above the row it turns besides the least.
    """
    x, y = start
    bar = placed.bars.get(end.network)
    if bar is None or x_end is None:
        return
    bus = y + 14 + LANE * lane
    points = [(x, y), (x, bus)]
    if placed.row[end.network]:
        turn = bar.y - 16 - gutter[1]
        points += [(gutter[0], bus), (gutter[0], turn), (x_end, turn)]
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
