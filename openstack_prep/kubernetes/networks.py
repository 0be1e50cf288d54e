"""Addresses of pods and Services: drawn so that no two clusters, and nothing else, have the same.

Sources: kube-controller-manager (node-cidr-mask-size is 24 or 64; a cluster's network is at most 16 bits
larger), kube-apiserver (service-cluster-ip-range is at most 20 bits), RKE's and RKE2's defaults.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import Cidr
from openstack_prep.base.ranges import Net, Range
from openstack_prep.kubernetes.model import STRICT, Cluster

DEFAULT_RANGES = ("10.42.0.0/15", "10.44.0.0/14", "10.48.0.0/12", "10.64.0.0/10")
"""10.42.0.0 to 10.127.255.255: the first cluster gets what RKE and RKE2 would use by themselves."""
PREFIXES = {4: (16, 16), 6: (56, 112)}
"""Sizes of pods' and Services' networks by version of IP; RKE2 documents those of IPv6."""
NODE_PREFIX = {4: 24, 6: 64}
MOST_NODE_BITS = 16
MOST_SERVICE_BITS = 20
LEAST_SERVICE_BITS = 4
SPECIAL = {
    "0.0.0.0/8": "nobody's",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    "::/8": "reserved",
    "fe80::/10": "link-local",
    "ff00::/8": "multicast",
}
DNS = 10
"""Of the addresses of Services, the DNS has the tenth."""

Prefix = Annotated[int, Ge(1), Le(124)]


@dataclass(frozen=True, kw_only=True)
class ClusterNetworks:
    """Where the addresses of pods and Services are drawn from, in the order of the clusters."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    range: Cidr | None = None
    """Network to draw from; default: 10.42.0.0 to 10.127.255.255, which begins with what RKE itself uses."""
    cluster_prefix: Prefix | None = None
    """Size of a cluster's network of pods; default: 16, of IPv6 56."""
    service_prefix: Prefix | None = None
    """Size of a cluster's network of Services; default: 16, of IPv6 112."""

    @property
    def ranges(self) -> list[Net]:
        """The networks to draw from, lowest first."""
        return [ipaddress.ip_network(each) for each in ([self.range] if self.range else DEFAULT_RANGES)]

    @property
    def prefixes(self) -> tuple[int, int]:
        """Sizes of the networks of pods and of Services."""
        cluster, service = PREFIXES[self.ranges[0].version]
        return self.cluster_prefix or cluster, self.service_prefix or service


@dataclass(frozen=True, slots=True)
class Taken:
    """Addresses that are somebody's already, in any form of a range; ``place`` says whose, for people."""

    place: str
    addresses: str


@dataclass(frozen=True)
class _Used:
    """A range of addresses and whose it is; ``cluster`` is empty for what belongs to none."""

    range: Range
    shown: str
    place: str
    cluster: str = ""
    field: str = ""
    drawn: bool = False

    def __str__(self) -> str:
        if self.cluster:
            return f"{'drawn ' * self.drawn}{self.field} {self.shown} of {self.cluster}"
        return f"{self.shown} of {self.place}"


def draw(
    networks: ClusterNetworks, clusters: Mapping[str, Cluster], taken: Iterable[Taken] = ()
) -> dict[str, tuple[str, str]]:
    """Return by cluster the networks (CIDR) of its pods and of its Services.

    Each cluster, in the order given, keeps what it was given and gets the first free networks for the
    rest; what earlier clusters have and what is ``taken`` is passed over.  So a cluster that is added at
    the end moves no other.  One that is removed before it does, and so does what is taken later: a cluster
    that runs is better given its networks.  Raises SpecError when there is no room.
    """
    used, mistakes = _assigned(networks, clusters, list(taken))
    if mistakes:
        raise SpecError(mistakes)
    found = {(each.cluster, each.field): each.shown for each in used}
    return {name: (found[name, "cluster_cidr"], found[name, "service_cidr"]) for name in clusters}


def _assigned(
    networks: ClusterNetworks, clusters: Mapping[str, Cluster], taken: Sequence[Taken]
) -> tuple[list[_Used], list[Mistake]]:
    """Return what is in use, once everything has been drawn, and a mistake for each network that could not be."""
    used = [_Used(Range.read(each.addresses), each.addresses, each.place) for each in taken]
    mistakes: list[Mistake] = []
    for name, cluster in clusters.items():
        for field in ("cluster_cidr", "service_cidr"):  # what is given first, so that nothing is drawn over it
            if given := getattr(cluster, field):
                used.append(_Used(Range.read(given), given, name, name, field))
        for field, prefix in zip(("cluster_cidr", "service_cidr"), networks.prefixes, strict=True):
            if getattr(cluster, field):
                continue
            free = next(_free(networks.ranges, prefix, [each.range for each in used]), None)
            if free is None:
                mistakes.append(_no_room(networks, name, field, prefix, used))
            else:
                used.append(_Used(Range.of(free), str(free), name, name, field, drawn=True))
    return used, mistakes


def _free(ranges: Iterable[Net], prefix: int, used: Sequence[Range]) -> Iterator[Net]:
    """Yield the networks of a size that touch nothing used, lowest first."""
    for whole in ranges:
        if prefix < whole.prefixlen:
            continue
        size, start, end = 1 << (whole.max_prefixlen - prefix), int(whole[0]), int(whole[-1])
        held = sorted((int(each.first), int(each.last)) for each in used if each.version == whole.version)
        for first, last in [*held, (end + 1, end + 1)]:
            while start + size <= min(first, end + 1):
                yield type(whole)((start, prefix))
                start += size
            start = max(start, (last // size + 1) * size)


def _no_room(networks: ClusterNetworks, name: str, field: str, prefix: int, used: Sequence[_Used]) -> Mistake:
    ranges = networks.ranges
    count = sum(2 ** (prefix - each.prefixlen) for each in ranges if prefix >= each.prefixlen)
    inside = [each for each in used if any(each.range.overlap(Range.of(whole)) for whole in ranges)]
    ours = sum(bool(each.cluster) for each in inside)
    shown = networks.range or f"{ranges[0][0]}-{ranges[-1][-1]}"
    lying = f"networks of clusters in it: {ours}, of others: {len(inside) - ours}"
    what = f"{field}: no /{prefix} of {shown} is free: it has {count} of that size; {lying}"
    return Mistake(f"rke_cluster/{name}", what, "enlarge cluster_networks.range, or make its prefixes longer")


# --- what is wrong ------------------------------------------------------------------------


def mistakes(
    networks: ClusterNetworks,
    clusters: Mapping[str, Cluster],
    taken: Iterable[Taken] = (),
    nodes: Mapping[str, int] | None = None,
) -> list[Mistake]:
    """Return everything that is wrong with the networks of some clusters; ``nodes`` counts the nodes of each.

    ``where`` of a mistake is the key of a cluster, ``rke_cluster/NAME``.
    """
    used, found = _assigned(networks, clusters, list(taken))
    for one, other in combinations(used, 2):
        if other.cluster and (both := one.range.overlap(other.range)):  # what is taken is judged where it is declared
            later, earlier = (one, other) if one.cluster and other.drawn else (other, one)
            what = f"{later.field} {later.shown} overlaps {earlier}"
            what += f": both have {both}" if str(both) not in (str(one.range), str(other.range)) else ""
            found.append(Mistake(f"rke_cluster/{later.cluster}", what, "choose networks apart"))
    own = {(each.cluster, each.field): each.shown for each in used if each.cluster}
    for name, cluster in clusters.items():
        pods, services = own.get((name, "cluster_cidr")), own.get((name, "service_cidr"))
        completed = replace(cluster, cluster_cidr=pods, service_cidr=services)
        said = _of_one(completed, (nodes or {}).get(name, 1))
        found += [Mistake(f"rke_cluster/{name}", what, remedy) for what, remedy in said]
    return found


def _of_one(cluster: Cluster, nodes: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the networks of one cluster by themselves, and the remedy."""
    pods, services = (each and ipaddress.ip_network(each) for each in (cluster.cluster_cidr, cluster.service_cidr))
    if pods:
        yield from _unusable("cluster_cidr", pods)
        yield from _of_pods(pods, nodes)
    if services:
        yield from _unusable("service_cidr", services)
        yield from _of_services(services, cluster.cluster_dns)
    if pods and services and pods.version != services.version:
        yield f"cluster_cidr {pods} and service_cidr {services} are of two versions of IP", "give both of one"


def _unusable(field: str, network: Net) -> Iterator[tuple[str, str]]:
    for special, kind in SPECIAL.items():
        if Range.of(network).overlap(Range.read(special)):
            yield f"{field} {network} overlaps {special}, which is {kind}", "choose a private one such as 10.42.0.0/16"


def _of_pods(pods: Net, nodes: int) -> Iterator[tuple[str, str]]:
    each = NODE_PREFIX[pods.version]
    if pods.prefixlen > each:
        yield f"cluster_cidr {pods} is smaller than one node's share, a /{each}", "choose a larger network"
    elif (count := 2 ** (each - pods.prefixlen)) < nodes:
        yield f"cluster_cidr {pods} has shares of /{each} for {count} nodes, not {nodes}", "choose a larger network"
    elif each - pods.prefixlen > MOST_NODE_BITS:
        yield f"cluster_cidr {pods} is too large", f"Kubernetes takes /{each - MOST_NODE_BITS} at most"


def _of_services(services: Net, dns: str | None) -> Iterator[tuple[str, str]]:
    bits = services.max_prefixlen - services.prefixlen
    if bits > MOST_SERVICE_BITS:
        largest = services.max_prefixlen - MOST_SERVICE_BITS
        yield f"service_cidr {services} is too large", f"kube-apiserver takes /{largest} at most"
    elif bits < LEAST_SERVICE_BITS:
        smallest = services.max_prefixlen - LEAST_SERVICE_BITS
        yield f"service_cidr {services} has no tenth address for the DNS to spare", f"make it /{smallest} at least"
    if dns is None:
        return
    address = ipaddress.ip_address(dns)
    if address not in services:
        yield f"cluster_dns {dns} is not in service_cidr {services}", "leave it out: the tenth address"
    elif address in (services[0], services[1]) or (services.version == 4 and address == services[-1]):
        yield f"cluster_dns {dns} is no address of service_cidr {services} to be had", "leave it out: the tenth"


def dns_of(service_cidr: str) -> str:
    """Return the address of a cluster's DNS: the tenth of its Services."""
    return str(ipaddress.ip_network(service_cidr)[DNS])


def dns_said(cluster: Cluster) -> str | None:
    """Return the address of a cluster's DNS; None when it is the program's own, or there is no room for one."""
    with contextlib.suppress(ValueError, IndexError):  # what is wrong then, mistakes tells
        return cluster.cluster_dns or (cluster.service_cidr and dns_of(cluster.service_cidr))
    return None
