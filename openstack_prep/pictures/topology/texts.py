"""A topology as text for Mermaid and Graphviz: networks, and what is on them.

Sources: Mermaid 11, "Flowcharts" (subgraphs, shapes); Graphviz, "The DOT Language" (quoted strings, clusters).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.style import printable
from openstack_prep.pictures.graph import escape_dot, escape_mermaid
from openstack_prep.pictures.topology.elements import Cluster, Server, Topology, VirtualAddress


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
        for each in self.nodes:
            found[each.cluster].append(each)
        return found


def mermaid(topology: Topology) -> str:
    """Return a flowchart for Mermaid, as GitHub and GitLab show it in Markdown."""
    drawn, lines = _edges(topology), ["flowchart TB"]
    for index, (cluster, nodes) in enumerate(drawn.clusters.items()):
        texts = [f'{each.name}{each.mermaid[0]}"{_mermaid_lines(each.lines)}"{each.mermaid[1]}' for each in nodes]
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
        texts = [f'{each.name} [label="{_dot_lines(each.lines)}", {each.dot}]' for each in nodes]
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
    for each in topology.networks:
        cidrs = (one.cidr for one in each.subnets)
        nodes.append(Drawn(bars[each.key], (printable(each.name), *cidrs), ("([", "])"), "shape=oval, style=bold"))
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
