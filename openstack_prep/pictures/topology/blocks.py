"""A network with what is on it: a bar, and below it the clusters, servers and virtual addresses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeVar

from openstack_prep.base.style import printable
from openstack_prep.pictures import svg
from openstack_prep.pictures.topology.model import Cluster, Network, Port, Server, Topology, VirtualAddress
from openstack_prep.pictures.topology.tiles import PAD, Line, Tile, card, column, framed, grid, words

HUES = ("blue", "orange", "teal", "pink", "olive", "violet", "brown")
M = TypeVar("M", Server, VirtualAddress)
BAR = 34.0
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
            nowhere = Network(key="", name="not on a known network", exists=False)
            found[""] = self._block(nowhere, servers[""], virtual[""], coming[""])
        return found

    def _homes(self, known: AbstractSet[str]) -> dict[str, str]:
        """Return by server the network that it is drawn at: of its known networks that with most servers."""
        networks = {each.key: {port.network for port in each.ports} & known for each in self.topology.servers}
        counts = Counter(key for each in networks.values() for key in each)
        return {server: max(each, key=lambda key: (counts[key], key), default="") for server, each in networks.items()}

    def _block(
        self,
        network: Network,
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

    def _under_bar(self, network: Network, inner: Tile) -> Tile:
        hue, coming = self.hues[network.key], "" if network.exists else " coming"
        ranges = [each.cidr for each in network.subnets]
        bar = [network.name, *ranges, *(["of another project"] if network.foreign and not network.external else [])]
        needed = svg.width(svg.cut(network.name, 32), 13) + sum(svg.width(each, 11) + 16 for each in bar[1:])
        w = max(LEAST, inner.w + 2 * PAD, needed + 2 * PAD)
        h = BAR + (inner.h + 2 * PAD if inner.h else 10)

        def paint(x: float, y: float, w: float) -> str:
            return svg.element(
                "g",
                svg.title(" ".join(bar)),
                svg.box(x + 3, y + BAR / 2, w - 6, h - BAR / 2, "panel", round_=8),
                svg.box(x, y, w, BAR, f"tinted{coming}", round_=8),
                svg.text(x + 12, y + 22, svg.cut(network.name, 32), "strong", size=13),
                svg.text(x + w - 12, y + 22, "   ".join(bar[1:]), "mono", size=11, anchor="end"),
                inner.paint(x + PAD, y + BAR + PAD, w - 2 * PAD),
                class_=hue,
            )

        return Tile(w, h, paint)

    def _frame(self, cluster: Cluster, servers: Sequence[Server], virtual: Sequence[VirtualAddress], here: str) -> Tile:
        """Return a cluster: its name, the addresses that all its nodes may use, and its members."""
        ports = [port for each in servers for port in each.ports if port.network == here]
        shared = _shared(ports) if len(ports) > 1 else frozenset()
        head = " \N{MIDDLE DOT} ".join(filter(None, (printable(cluster.name), cluster.product, _counts(servers))))
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
        grids = [grid([replace(each, w=widest) for each in row], across) for row in rows]
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

    def _ends(self, port: Port, shared: frozenset[str]) -> Iterator[Line]:
        for address in port.addresses:
            yield Line(address, "mono", dot=self.hues[port.network], most=40)
        for address in port.floating_ips:
            yield Line(f"{UP} {address}", "mono hued green", most=40)
        for pair in (each for each in port.pairs if each not in shared):
            yield Line(f"+ {pair}", "mono soft", most=40)

    def _virtual(self, address: VirtualAddress) -> Tile:
        lines = [Line(address.name, "strong", most=26), Line("pool" if address.pool else "virtual address", "soft")]
        lines += (Line(each, "mono", dot=self.hues[address.network], most=40) for each in address.addresses)
        lines += (Line(f"{UP} {each}", "mono hued green", most=40) for each in address.floating_ips)
        return card(lines, "node" if address.exists else "node coming", name=address.name, round_=16)


def _of(members: Iterable[M], cluster: str) -> list[M]:
    return [each for each in members if each.cluster == cluster]


def _by_role(servers: Iterable[Server]) -> list[Server]:
    return sorted(servers, key=lambda each: (FIRST.index(each.role) if each.role in FIRST else len(FIRST), each.role))


def _shared(ports: Sequence[Port]) -> frozenset[str]:
    """Return the pairs that all ports have."""
    return reduce(frozenset.__and__, (frozenset(each.pairs) for each in ports))


def _counts(servers: Iterable[Server]) -> str:
    """Return how many nodes of each role there are, such as "3 server, 2 agent"."""
    counts = Counter(each.role or "node" for each in _by_role(servers))
    return ", ".join(f"{number} {role}{'' if number == 1 else 's'}" for role, number in counts.items())
