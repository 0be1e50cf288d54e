"""Rules of the installer for networks and addresses.

Source: the OpenShift installer's validation (types/validation/installconfig.go,
types/openstack/validation/platform.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from itertools import combinations

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import is_address
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.machine_rules import ids
from openstack_prep.openshift.install_config.model import Cluster
from openstack_prep.openshift.install_config.releases import NEVER, TWO_STACKS_SINCE

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LISTS = ("machine_networks", "cluster_networks", "service_networks")


def _network_type(cluster: Cluster, release: int) -> Iterator[Mistake]:
    kind = cluster.network_type
    gone = releases.NETWORK_TYPES_GONE.get((kind or "").lower(), NEVER)
    if release >= gone:
        what = f"new clusters do not support {kind} since 4.{gone}"
        yield Mistake("network_type", what, "leave it out: OVNKubernetes")


def _networks(cluster: Cluster, release: int) -> Iterator[Mistake]:
    named = [(name, ipaddress.ip_network(each)) for name in LISTS for each in getattr(cluster, name)]
    for (name, one), (other_name, other) in combinations(named, 2):
        if one.version == other.version and one.overlaps(other):
            yield Mistake(name, f"{one} overlaps {other} of {other_name}", "choose networks that do not overlap")
    for name in LISTS[1:]:
        if families(cluster, name) != families(cluster, LISTS[0]):
            what = (
                f"{_named(families(cluster, name))}, while machine_networks are {_named(families(cluster, LISTS[0]))}"
            )
            yield Mistake(name, what, "use the same address families in all three")
    services = [ipaddress.ip_network(each).version for each in cluster.service_networks]
    if len(services) > len(set(services)):
        yield Mistake("service_networks", "the installer accepts one per address family", "keep one")
    for name, each in named:
        if name == "cluster_networks" and each.version == 4 and cluster.host_prefix < each.prefixlen:
            what = f"/{cluster.host_prefix} is larger than the whole network {each}"
            yield Mistake("host_prefix", what, f"set more than {each.prefixlen}")


def families(cluster: Cluster, name: str) -> frozenset[int]:
    return frozenset(ipaddress.ip_network(each).version for each in getattr(cluster, name))


def _named(versions: frozenset[int]) -> str:
    return " and ".join(f"IPv{each}" for each in sorted(versions))


def _ipv6(cluster: Cluster, release: int) -> Iterator[Mistake]:
    versions = families(cluster, "machine_networks")
    if 6 not in versions:
        return
    if release < TWO_STACKS_SINCE:
        what = (
            f"4.{release} does not support IPv6 on OpenStack; available since controlPlanePort in 4.{TWO_STACKS_SINCE}"
        )
        yield Mistake("machine_networks", what, f"keep to IPv4, or install 4.{TWO_STACKS_SINCE} or later")
        return
    if cluster.network_type not in (None, "OVNKubernetes"):
        yield Mistake("network_type", f"{cluster.network_type} does not support IPv6", "leave it out: OVNKubernetes")
    if not cluster.machines_subnets:
        what = "the installer does not create IPv6 subnets"
        yield Mistake("machines_subnets", what, "create the subnets, and list them here")
    for name in ("machines_subnets", "api_vips", "ingress_vips"):
        count = len(getattr(cluster, name))
        if len(versions) == 2 and count != 2 and (count or name != "machines_subnets"):
            yield Mistake(name, f"{_named(versions)} require two addresses, not {count}", "give one per family")


def _vips(cluster: Cluster, release: int) -> Iterator[Mistake]:
    networks = [ipaddress.ip_network(each) for each in cluster.machine_networks]
    own = cluster.load_balancer != "UserManaged"
    for name in ("api_vips", "ingress_vips"):
        addresses = [ipaddress.ip_address(each) for each in getattr(cluster, name)]
        versions = [each.version for each in addresses]
        if len(set(versions)) < len(versions):
            yield Mistake(name, "two addresses of the same family", "give one per family")
        for each in addresses:
            if own and not any(each in network for network in networks):
                yield Mistake(name, f"{each} is not in machine_networks", "choose an address in them")
    both = set(cluster.api_vips) & set(cluster.ingress_vips)
    if both and own:
        what = f"{', '.join(sorted(both))} is used by the API already"
        yield Mistake("ingress_vips", what, "choose a different address")


def _floating_ips(cluster: Cluster, release: int) -> Iterator[Mistake]:
    api, ingress = cluster.api_floating_ip, cluster.ingress_floating_ip
    for name, value in (("api_floating_ip", api), ("ingress_floating_ip", ingress)):
        if value and not cluster.external_network:
            yield Mistake(name, "requires an external network", "set external_network")
        if value and not is_address(value):
            yield Mistake(name, f"{value!r} is not an IP address", "write one such as 192.0.2.10")
    if api and api == ingress:
        yield Mistake("ingress_floating_ip", f"{api} is used by the API already", "choose a different address")


def _own_subnet(cluster: Cluster, release: int) -> Iterator[Mistake]:
    named = [("machines_subnets", each) for each in cluster.machines_subnets]
    named += [("machines_network", cluster.machines_network)] if cluster.machines_network else []
    for where, each in named:
        if bool(each.id) == bool(each.name):
            yield Mistake(where, f"has {'both an ID and' if each.id else 'neither an ID nor'} a name", "give one")
        elif each.name and release < TWO_STACKS_SINCE:
            what = f"4.{release} takes subnets by ID; by name since 4.{TWO_STACKS_SINCE}"
            yield Mistake(where, what, "give the ID")
        yield from ids(where, [each.id] if each.id else [])
    if cluster.machines_network and not cluster.machines_subnets:
        yield Mistake("machines_network", "requires its subnet", "set machines_subnets")
    if cluster.machines_subnets and cluster.external_dns:
        yield Mistake("external_dns", "does not apply to your own subnet", "leave it out")
    if len(cluster.machines_subnets) > len(families(cluster, "machine_networks")):
        yield Mistake("machines_subnets", "more than one subnet per address family", "give one per family")


NETWORK_RULES = (_network_type, _networks, _ipv6, _vips, _floating_ips, _own_subnet)
