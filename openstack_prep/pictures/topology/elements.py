"""What a topology shows: plain data, whether it was read from a cloud or only declared in a spec.

A ``key`` is the id of what exists, and KIND/NAME of what a spec only declares (``exists`` is false).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address

from openstack_prep.base.raw import Values
from openstack_prep.base.style import printable
from openstack_prep.pictures.graph import escape_dot, escape_mermaid

# A topology as text for Mermaid and Graphviz: networks, and what is on them.
#
# Sources: Mermaid 11, "Flowcharts" (subgraphs, shapes); Graphviz, "The DOT Language" (quoted strings, clusters).


@dataclass(frozen=True)
class Drawn:
    """A node of the text: its id, its lines, its shape in both languages, and its cluster."""

    name: str
    lines: tuple[str, ...]
    mermaid: tuple[str, str]
    dot: str
    cluster: str = ""


@dataclass(frozen=True)
class Edges:
    """Nodes and edges, with the addresses of their ends."""

    nodes: tuple[Drawn, ...]
    edges: tuple[tuple[str, str, str], ...]

    @property
    def clusters(self) -> dict[str, list[Drawn]]:
        """The nodes by cluster; those of none under an empty name."""
        found: dict[str, list[Drawn]] = defaultdict(list)
        for node in self.nodes:
            found[node.cluster].append(node)
        return found


def mermaid(topology: Topology) -> str:
    """Return a flowchart for Mermaid, as GitHub and GitLab show it in Markdown."""
    drawn, lines = _edges(topology), ["flowchart TB"]
    for index, (cluster, nodes) in enumerate(drawn.clusters.items()):
        texts = [f'{node.name}{node.mermaid[0]}"{_mermaid_lines(node.lines)}"{node.mermaid[1]}' for node in nodes]
        if cluster:
            lines += [f'  subgraph c{index}["{escape_mermaid(cluster)}"]', *(f"    {each}" for each in texts), "  end"]
        else:
            lines += [f"  {each}" for each in texts]
    for one, other, text in drawn.edges:
        label = f'|"{escape_mermaid(text)}"|' if text else ""
        lines.append(f"  {one} ---{label} {other}")
    return "\n".join(lines)


def _mermaid_lines(lines: Sequence[str]) -> str:
    return "<br/>".join(map(escape_mermaid, lines))


def dot(topology: Topology) -> str:
    """Return a graph for Graphviz."""
    drawn, lines = _edges(topology), ["graph topology {", "  node [shape=box]"]
    for index, (cluster, nodes) in enumerate(drawn.clusters.items()):
        texts = [f'{node.name} [label="{_dot_lines(node.lines)}", {node.dot}]' for node in nodes]
        if cluster:
            inner = [f'label="{escape_dot(cluster)}"', *texts]
            lines += [f"  subgraph cluster_{index} {{", *(f"    {each}" for each in inner), "  }"]
        else:
            lines += [f"  {each}" for each in texts]
    for one, other, text in drawn.edges:
        label = f' [label="{escape_dot(text)}"]' if text else ""
        lines.append(f"  {one} -- {other}{label}")
    return "\n".join([*lines, "}"])


def _dot_lines(lines: Sequence[str]) -> str:
    return "\\n".join(map(escape_dot, lines))


def _edges(topology: Topology) -> Edges:
    bars = {each.key: f"n{index}" for index, each in enumerate(topology.networks)}
    nodes: list[Drawn] = []
    edges: list[tuple[str, str, str]] = []
    for network in topology.networks:
        cidrs = (one.cidr for one in network.subnets)
        nodes.append(
            Drawn(bars[network.key], (printable(network.name), *cidrs), ("([", "])"), "shape=oval, style=bold")
        )
    for index, router in enumerate(topology.routers):
        nodes.append(Drawn(f"r{index}", (printable(router.name),), ("{{", "}}"), "shape=diamond"))
        ends = [*([router.gateway] if router.gateway else []), *router.interfaces]
        edges += ((f"r{index}", bars[end.network], ", ".join(end.addresses)) for end in ends if end.network in bars)
    for index, server in enumerate(topology.servers):
        nodes.append(Drawn(f"s{index}", tuple(_server_lines(server)), ("[", "]"), "shape=box", server.cluster))
        known = (port for port in server.ports if port.network in bars)
        edges += ((bars[port.network], f"s{index}", ", ".join(port.addresses)) for port in known)
    for index, virtual in enumerate(topology.virtual_addresses):
        nodes.append(Drawn(f"v{index}", tuple(_virtual_lines(virtual)), ("(", ")"), "style=rounded", virtual.cluster))
        edges += ((bars[virtual.network], f"v{index}", ""),) if virtual.network in bars else ()
    for index, cluster in enumerate(each for each in topology.clusters if each.coming):
        coming = tuple(_coming_lines(cluster))
        nodes.append(Drawn(f"t{index}", coming, ("[", "]"), "shape=box, style=dashed", cluster.name))
        edges += ((bars[key], f"t{index}", "") for key in cluster.networks if key in bars)
    for index, floating in enumerate(topology.floating_ips):
        lines = (floating.address or "next free address", f"to {printable(floating.target)}" if floating.target else "")
        nodes.append(Drawn(f"f{index}", tuple(filter(None, lines)), ("[/", "/]"), "shape=cds"))
        edges += ((f"f{index}", bars[floating.network], ""),) if floating.network in bars else ()
    return Edges(tuple(nodes), tuple(edges))


def _server_lines(server: Server) -> Iterator[str]:
    yield printable(server.name)
    for port in server.ports:
        yield from (f"+ {pair}" for pair in port.pairs)


def _coming_lines(cluster: Cluster) -> Iterator[str]:
    yield f"to come: {printable(cluster.coming)}"
    yield from (f"+ {pair}" for pair in cluster.pairs)


def _virtual_lines(virtual: VirtualAddress) -> Iterator[str]:
    yield printable(virtual.name)
    yield from virtual.addresses


@dataclass(frozen=True, kw_only=True)
class TopologySubnet:
    """A range of addresses on a network."""

    name: str
    cidr: str
    exists: bool = True


@dataclass(frozen=True, kw_only=True)
class TopologyNetwork:
    """A network, drawn as a bar."""

    key: str
    name: str
    external: bool = False
    foreign: bool = False
    """Whether another project owns it."""
    subnets: tuple[TopologySubnet, ...] = ()
    exists: bool = True


@dataclass(frozen=True, kw_only=True)
class Interface:
    """An end of a router in a network."""

    network: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TopologyRouter:
    """A router, and the networks that it connects; the gateway is its end in an external network."""

    key: str
    name: str
    gateway: Interface | None = None
    interfaces: tuple[Interface, ...] = ()
    exists: bool = True

    def interfaces_in(self, network: str) -> list[Interface]:
        """Return its ends in a network."""
        return [interface for interface in self.interfaces if interface.network == network]


@dataclass(frozen=True, kw_only=True)
class TopologyPort:
    """An end of a server in a network: its addresses, and those that it may use besides."""

    network: str
    addresses: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    floating_ips: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server; ``cluster`` is the name of the cluster that it is a node of."""

    key: str
    name: str
    status: str = ""
    role: str = ""
    cluster: str = ""
    ports: tuple[TopologyPort, ...] = ()


@dataclass(frozen=True, kw_only=True)
class VirtualAddress:
    """Addresses that no server owns: of a port without a server, or of a pool that is reserved for a load balancer."""

    key: str
    name: str
    network: str
    addresses: tuple[str, ...] = ()
    """Addresses, and ranges such as 10.0.0.200-10.0.0.219."""
    floating_ips: tuple[str, ...] = ()
    pool: bool = False
    cluster: str = ""
    exists: bool = True


@dataclass(frozen=True, kw_only=True)
class TopologyFloatingIP:
    """An address of an external network; ``target`` is the server or virtual address that it leads to."""

    key: str
    address: str
    network: str
    name: str = ""
    target: str = ""
    exists: bool = True


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster; ``coming`` are nodes that a spec declares and that do not exist yet, in words."""

    name: str
    product: str = ""
    networks: tuple[str, ...] = ()
    """The networks that its nodes will be on; of existing nodes the servers say it."""
    coming: str = ""
    pairs: tuple[str, ...] = ()
    """Addresses that a spec declares for all its nodes."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The networks of a project and what is on them."""

    subject: str
    """What it shows, such as "project mesh"."""
    networks: tuple[TopologyNetwork, ...] = ()
    routers: tuple[TopologyRouter, ...] = ()
    servers: tuple[Server, ...] = ()
    virtual_addresses: tuple[VirtualAddress, ...] = ()
    floating_ips: tuple[TopologyFloatingIP, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    unread: tuple[str, ...] = ()
    """What these credentials may not read."""

    def data(self) -> Values:
        """Return it as plain data."""
        return asdict(self)

    def of_cluster(self, name: str) -> Topology:
        """Return one cluster's part: its nodes and addresses, and the networks and routers that they use."""
        servers = tuple(server for server in self.servers if server.cluster == name)
        virtual = tuple(
            virtual_address for virtual_address in self.virtual_addresses if virtual_address.cluster == name
        )
        used = {port.network for server in servers for port in server.ports} | {address.network for address in virtual}
        routers = tuple(router for router in self.routers if used & {end.network for end in router.interfaces})
        names = {server.name for server in servers} | {address.name for address in virtual}
        floating = tuple(floating_ip for floating_ip in self.floating_ips if floating_ip.target in names)
        used |= {router.gateway.network for router in routers if router.gateway} | {each.network for each in floating}
        return replace(
            self,
            networks=tuple(network for network in self.networks if network.key in used),
            routers=tuple(replace(router, interfaces=_within(router.interfaces, used)) for router in routers),
            servers=servers,
            virtual_addresses=virtual,
            floating_ips=floating,
            clusters=tuple(cluster for cluster in self.clusters if cluster.name == name),
        )


def _within(ends: Iterable[Interface], used: Collection[str]) -> tuple[Interface, ...]:
    return tuple(end for end in ends if end.network in used)


def in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses, networks and ranges in the order of their first address, without duplicates."""

    def place(text: str) -> tuple[int, int, str]:
        try:
            first = ip_address(text.partition("/")[0].partition("-")[0])
        except ValueError:
            return 0, 0, text
        return first.version, int(first), text

    return tuple(sorted(set(addresses), key=place))


def joined(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses with neighbours joined to ranges; networks and ranges among them stay as they are."""
    runs: list[list[str]] = []
    for each in in_order(addresses):
        if runs and _follows(each, runs[-1][-1]):
            runs[-1].append(each)
        else:
            runs.append([each])
    return tuple(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _follows(text: str, before: str) -> bool:
    """Whether both are single addresses, and the first is the next one after the other."""
    if any(sign in each for sign in "/-" for each in (text, before)):
        return False
    one, other = ip_address(text), ip_address(before)
    return one.version == other.version and int(one) == int(other) + 1
