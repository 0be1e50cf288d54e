"""Networks of pods and Services: allocation without overlaps, and checks.

Sources: Kubernetes 1.36, kube-controller-manager (node-cidr-mask-size is 24 or 64; a cluster's network of IPv6 has at
most 16 bits more; app/core.go, setNodeCIDRMaskSizes; pkg/controller/nodeipam, node_ipam_controller.go and
ipam/cidrset/cidr_set.go), kube-apiserver (app/options/validation.go: service-cluster-ip-range has at most 20 bits
before 1.34, where DisableAllocatorDualWrite became true; since then IPv6 has at most 64, by
pkg/registry/core/service/ipallocator/ipallocator.go; pkg/controlplane: at least 8 addresses), the defaults of RKE2 and
RKE.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, TypeAlias

from annotated_types import Ge, Le

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import GO_BOOLEANS, Cidr, Strict
from openstack_prep.base.ranges import Net, Range
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.kubernetes.versions import minor_of

DEFAULT_RANGES = ("10.42.0.0/15", "10.44.0.0/14", "10.48.0.0/12", "10.64.0.0/10")
"""10.42.0.0 to 10.127.255.255: the first cluster gets the default networks of RKE2 and RKE."""
PREFIXES = {4: (16, 16), 6: (56, 112)}
"""Default prefix lengths of the networks of pods and Services per IP version; RKE2 documents those of IPv6."""
NODE_PREFIX = {4: 24, 6: 64}
MOST_NODE_BITS = 16
MOST_SERVICE_BITS = 20
LARGE_SERVICES_SINCE = 34
"""N of the Kubernetes 1.N since which networks of Services may be larger; those of IPv6 have at most 64 bits."""
LEAST_SERVICE_BITS = 4
LEAST_BITS_WITH_DNS = 3
"""With an address of the DNS below the tenth, the network has only Kubernetes' own least size."""
NODE_SIZE = "node-cidr-mask-size"
"""The flag for the prefix length of each node's part of the network of pods; -ipv4 and -ipv6 follow for one version."""
SPECIAL = {
    "0.0.0.0/8": "unspecified",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    "::/8": "reserved",
    "fe80::/10": "link-local",
    "ff00::/8": "multicast",
}
DNS = 10
"""The cluster's DNS has the tenth address of the Services."""

Prefix = Annotated[int, Ge(1), Le(124)]


@dataclass(frozen=True, kw_only=True)
class ClusterNetworks(Strict):
    """The range from which networks of pods and Services are allocated, in the order of the clusters."""

    range: Cidr | None = None
    """Network to allocate from; default: 10.42.0.0 to 10.127.255.255, which begins with RKE2's and RKE's defaults."""
    cluster_prefix: Prefix | None = None
    """Prefix length of a cluster's network of pods; default: 16, for IPv6 56."""
    service_prefix: Prefix | None = None
    """Prefix length of a cluster's network of Services; default: 16, for IPv6 112."""

    @property
    def ranges(self) -> list[Net]:
        """The networks to allocate from, lowest first."""
        return [ipaddress.ip_network(each) for each in ([self.range] if self.range else DEFAULT_RANGES)]

    @property
    def prefixes(self) -> tuple[int, int]:
        """Prefix lengths of the networks of pods and of Services."""
        cluster, service = PREFIXES[self.ranges[0].version]
        return self.cluster_prefix or cluster, self.service_prefix or service


@dataclass(frozen=True, slots=True)
class Taken:
    """Addresses in use, in any form of a range; ``place`` names their user in messages."""

    place: str
    addresses: str


Finding: TypeAlias = tuple[str, str, str]
"""A field, what is wrong with it, and the fix."""


@dataclass(frozen=True)
class _Used:
    """A range of addresses and its user; ``cluster`` is empty when no cluster uses it."""

    range: Range
    shown: str
    place: str
    cluster: str = ""
    field: str = ""
    allocated: bool = False

    def __str__(self) -> str:
        if self.cluster:
            return f"{'allocated ' * self.allocated}{self.field} {self.shown} of {self.cluster}"
        return f"{self.shown} of {self.place}"


def allocate(
    networks: ClusterNetworks, clusters: Mapping[str, KubernetesCluster], taken: Iterable[Taken] = ()
) -> dict[str, tuple[str, str]]:
    """Return the networks (CIDR) of pods and of Services by cluster.

    Each cluster keeps the networks that it declares and gets the first free networks for the rest, in the order of
    the clusters.  Networks of earlier clusters and ``taken`` addresses are not free.  Adding a cluster at the end
    therefore does not move the others; removing an earlier cluster or taking addresses later may.  Declare the
    networks of a running cluster.  Raises SpecError when no network is free.
    """
    used, mistakes = _assigned(networks, clusters, list(taken))
    if mistakes:
        raise SpecError(mistakes)
    found = _of_clusters(used)
    return {name: (found[name, "cluster_cidr"], found[name, "service_cidr"]) for name in clusters}


def split(networks: str | None) -> list[str]:
    """Return the networks of a field: one, two in a dual-stack cluster, none without a value."""
    return networks.split(",") if networks else []


def _of_clusters(used: Iterable[_Used]) -> dict[tuple[str, str], str]:
    """Return the networks of clusters by name and field."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in used:
        if each.cluster:
            found.setdefault((each.cluster, each.field), []).append(each.shown)
    return {place: ",".join(shown) for place, shown in found.items()}


def _assigned(
    networks: ClusterNetworks, clusters: Mapping[str, KubernetesCluster], taken: Sequence[Taken]
) -> tuple[list[_Used], list[Mistake]]:
    """Return the ranges in use after allocation, and a mistake per network that could not be allocated."""
    used = [_Used(Range.read(each.addresses), each.addresses, each.place) for each in taken]
    mistakes: list[Mistake] = []
    for name, cluster in clusters.items():
        for field in ("cluster_cidr", "service_cidr"):  # declared networks first, so that none is allocated to others
            for given in split(getattr(cluster, field)):
                used.append(_Used(Range.read(given), given, name, name, field))
        for field, prefix in zip(("cluster_cidr", "service_cidr"), networks.prefixes, strict=True):
            if getattr(cluster, field):
                continue
            free = next(_free(networks.ranges, prefix, [each.range for each in used]), None)
            if free is None:
                mistakes.append(_no_room(networks, name, field, prefix, used))
            else:
                used.append(_Used(Range.of(free), str(free), name, name, field, allocated=True))
    return used, mistakes


def _free(ranges: Iterable[Net], prefix: int, used: Sequence[Range]) -> Iterator[Net]:
    """Yield the networks of a prefix length that overlap no used range, lowest first."""
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
    of_clusters = sum(bool(each.cluster) for each in inside)
    shown = networks.range or f"{ranges[0][0]}-{ranges[-1][-1]}"
    users = f"{of_clusters} networks of clusters, {len(inside) - of_clusters} of other resources"
    what = f"{field}: {shown} has no free /{prefix} ({count} in total; in use: {users})"
    fix = "enlarge cluster_networks.range, or use longer prefixes"
    return Mistake(_where(name), what, fix, code=ClusterCode.NETWORKS, field=field)


# --- checks -------------------------------------------------------------------------------


def mistakes(
    networks: ClusterNetworks,
    clusters: Mapping[str, KubernetesCluster],
    taken: Iterable[Taken] = (),
    nodes: Mapping[str, int | None] | None = None,
) -> list[Mistake]:
    """Return all mistakes in the networks of clusters.

    ``nodes`` is the number of nodes of each, or None for nodes whose parts of the network have another size than the
    default. ``where`` of a mistake is the key of a cluster, ``rke_cluster/NAME``, and ``field`` its field.
    """
    used, found = _assigned(networks, clusters, list(taken))
    for one, other in combinations(used, 2):
        if other.cluster and (
            both := one.range.overlap(other.range)
        ):  # overlaps of taken addresses are checked where those are declared
            later, earlier = (one, other) if one.cluster and other.allocated else (other, one)
            what = f"{later.field} {later.shown} overlaps {earlier}"
            what += f" in {both}" if str(both) not in (str(one.range), str(other.range)) else ""
            fix = "choose networks that do not overlap"
            where = _where(later.cluster)
            found.append(Mistake(where, what, fix, code=ClusterCode.NETWORKS, field=later.field))
    own = _of_clusters(used)
    for name, cluster in clusters.items():
        pods, services = own.get((name, "cluster_cidr")), own.get((name, "service_cidr"))
        with_networks = replace(cluster, cluster_cidr=pods, service_cidr=services)
        for field, what, fix in _check_cluster(with_networks, (nodes or {}).get(name, 1)):
            found.append(Mistake(_where(name), f"{field} {what}", fix, code=ClusterCode.NETWORKS, field=field))
    return found


def _where(cluster: str) -> str:
    return f"rke_cluster/{cluster}"


def _check_cluster(cluster: KubernetesCluster, nodes: int | None) -> Iterator[Finding]:
    """Yield the field, what is wrong with the networks of one cluster by themselves, and the fix."""
    fields = (cluster.cluster_cidr, cluster.service_cidr)
    pods, services = ([ipaddress.ip_network(each) for each in split(field)] for field in fields)
    for pod in pods:
        yield from _check_special("cluster_cidr", pod)
        yield from _check_pods(pod, nodes) if nodes is not None else ()
    for service in services:
        yield from _check_special("service_cidr", service)
        yield from _check_size(service, cluster)
    if services and cluster.cluster_dns:
        yield from _check_dns(services, cluster.cluster_dns)
    if pods and services and [pod.version for pod in pods] != [service.version for service in services]:
        what = f"{cluster.cluster_cidr} and service_cidr {cluster.service_cidr} have different IP versions"
        yield "cluster_cidr", what, "use one IP version for both, or both in the same order"


def _check_special(field: str, network: Net) -> Iterator[Finding]:
    for special, kind in SPECIAL.items():
        if Range.of(network).overlap(Range.read(special)):
            what = f"{network} overlaps {special}, which is {kind}"
            yield field, what, "choose a private network such as 10.42.0.0/16"


def _check_pods(pods: Net, nodes: int) -> Iterator[Finding]:
    per_node = NODE_PREFIX[pods.version]
    room, fix = 2 ** max(per_node - pods.prefixlen, 0), "choose a larger network"
    if pods.prefixlen > per_node:
        yield "cluster_cidr", f"{pods} is smaller than the /{per_node} of one node", fix
    elif room < nodes:
        what = f"{pods} has room for {room} nodes (a /{per_node} per node), and the cluster has {nodes}"
        yield "cluster_cidr", what, fix
    elif pods.version == 6 and per_node - pods.prefixlen > MOST_NODE_BITS:
        fix = f"choose a /{per_node - MOST_NODE_BITS} or smaller: Kubernetes supports no larger one"
        yield "cluster_cidr", f"{pods} is too large", fix


def _check_size(services: Net, cluster: KubernetesCluster) -> Iterator[Finding]:
    bits = services.max_prefixlen - services.prefixlen
    is_newer = cluster.distribution == "rke2" and (minor_of(cluster.kubernetes_version) or 1000) >= LARGE_SERVICES_SINCE
    most = services.max_prefixlen // 2 if services.version == 6 else bits
    most = most if is_newer else MOST_SERVICE_BITS
    least = LEAST_BITS_WITH_DNS if cluster.cluster_dns else LEAST_SERVICE_BITS
    if bits > most:
        fix = f"choose a /{services.max_prefixlen - most} or smaller: kube-apiserver supports no larger one"
        yield "service_cidr", f"{services} is too large", fix if is_newer else f"{fix} before 1.{LARGE_SERVICES_SINCE}"
    elif bits < least:
        fix = f"choose a /{services.max_prefixlen - least} or larger"
        what = "has fewer than 8 addresses" if cluster.cluster_dns else "has no tenth address for the cluster's DNS"
        yield "service_cidr", f"{services} {what}", fix


def node_size_findings(pods: Sequence[Net], flags: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the flags for the nodes' parts of the network with which kube-controller-manager stops; 0 is no value.

    ``flags`` are all flags of kube-controller-manager by their names.
    """
    sizes = {name: text for name, text in flags.items() if name.startswith(NODE_SIZE) and text != "0"}
    if GO_BOOLEANS.get(flags.get("allocate-node-cidrs", "true")) is False:
        return
    for name, text in sizes.items():
        version = int(name[-1]) if name.endswith(("-ipv4", "-ipv6")) else 0
        networks = [pod for pod in pods if version in (0, pod.version)]
        if not text.isdecimal():
            yield name, f"{text!r} is not a prefix length", "write a number such as 24"
        elif len(pods) > 1 and not version:
            yield name, "is for one IP version, and the pods have two", f"write {NODE_SIZE}-ipv4 and {NODE_SIZE}-ipv6"
        elif version and NODE_SIZE in sizes:
            yield name, f"cannot be combined with {NODE_SIZE}", "remove one of them"
        elif not networks:
            yield name, f"the pods have no network of IPv{version}", "remove it"
        for network in networks if text.isdecimal() else ():
            most = network.max_prefixlen if network.version == 4 else min(128, network.prefixlen + MOST_NODE_BITS)
            if not network.prefixlen <= int(text) <= most:
                yield name, f"{network} has no /{text} per node", f"write a number from {network.prefixlen} to {most}"


def _check_dns(services: Sequence[Net], dns: str) -> Iterator[Finding]:
    address, fix = ipaddress.ip_address(dns), "remove it to use the tenth address"
    network = next((service for service in services if address in service), None)
    if network is None:
        yield "cluster_dns", f"{dns} is not in service_cidr {', '.join(map(str, services))}", fix
    elif address in (network[0], network[1]) or (network.version == 4 and address == network[-1]):
        yield "cluster_dns", f"{dns} is a reserved address of service_cidr {network}", fix


def default_dns(service_cidr: str) -> str:
    """Return the address of a cluster's DNS: the tenth address of its Services, of each IP version."""
    return ",".join(str(ipaddress.ip_network(each)[DNS]) for each in split(service_cidr))


def dns_address(cluster: KubernetesCluster) -> str | None:
    """Return the address of a cluster's DNS; None for the distribution's default or a network that is too small."""
    with contextlib.suppress(ValueError, IndexError):  # mistakes() reports such networks
        return cluster.cluster_dns or (cluster.service_cidr and default_dns(cluster.service_cidr))
    return None
