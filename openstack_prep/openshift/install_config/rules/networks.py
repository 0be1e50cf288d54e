"""Rules of the installer for networks.

Source: the OpenShift installer's validation (types/validation/installconfig.go, types/openstack/validation/platform.go,
installconfig/openstack/validation/platform.go); ``releases`` names the releases of each rule.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import is_address
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.document import HOST_PREFIX_IPV6, default_network_type, has_previews
from openstack_prep.openshift.install_config.model import InstallConfigFields
from openstack_prep.openshift.install_config.releases import NEVER
from openstack_prep.openshift.install_config.rules.machines import ids

# --- rules of the installer for the virtual addresses of API and ingress ---
#
# Source: the OpenShift installer's validation (types/validation/installconfig.go: validateAPIAndIngressVIPs) and its
# defaults (types/openstack/defaults/platform.go); ``releases`` names the releases of each rule.


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
DEFAULTS = {"api_vips": 5, "ingress_vips": 7}
"""The address in the first machine network that the installer takes for a missing one."""
FIRST_WITH_DEFAULTS = 5


def _vips(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    given = {name: [ipaddress.ip_address(each) for each in getattr(cluster, name)] for name in DEFAULTS}
    balanced = cluster.load_balancer == "UserManaged"
    if balanced and release in releases.VIPS_WITH_BALANCER:
        for name, addresses in given.items():
            if not addresses:
                what = "is missing; a load balancer of your own has no default address"
                yield Mistake(name, what, "give the address of the load balancer")
    elif release >= FIRST_WITH_DEFAULTS:
        yield from _without_room(cluster, given)
    for name, addresses in given.items():
        if len({address.version for address in addresses}) < len(addresses):
            yield Mistake(name, "two addresses of the same family", "give one per family")
        elif addresses:
            yield from _family(cluster, release, name, addresses)
    if not (balanced and release in releases.VIPS_ELSEWHERE):
        yield from _inside(cluster, release, given)
        yield from _different(cluster, given)


def _without_room(cluster: InstallConfigFields, given: dict[str, list[Address]]) -> Iterator[Mistake]:
    """Yield the virtual addresses that the first machine network has no room for."""
    network = ipaddress.ip_network(cluster.machine_networks[0])
    for name, number in DEFAULTS.items():
        if not given[name] and number >= network.num_addresses:
            what = f"is missing; {network} has no address {number}, the default"
            yield Mistake(name, what, "give an address, or choose a larger machine network")


def _family(cluster: InstallConfigFields, release: int, name: str, addresses: Sequence[Address]) -> Iterator[Mistake]:
    """Yield addresses of two stacks that begin with another family than the networks."""
    services = {ipaddress.ip_network(service_network).version for service_network in cluster.service_networks}
    first = ipaddress.ip_network(cluster.machine_networks[0]).version
    if len(services) == 2 and addresses[0].version != first and (len(addresses) == 1 or release in releases.ONE_ORDER):
        what = f"begins with {addresses[0]}, while machine_networks begin with IPv{first}"
        yield Mistake(name, what, f"write the IPv{first} address first")


def _inside(cluster: InstallConfigFields, release: int, given: dict[str, list[Address]]) -> Iterator[Mistake]:
    networks = [ipaddress.ip_network(machine_network) for machine_network in cluster.machine_networks]
    networks = networks if release in releases.VIPS_IN_ANY_NETWORK else networks[:1]
    for name, addresses in given.items():
        for address in addresses:
            if not any(address in network for network in networks):
                where = "machine_networks" if len(networks) == len(cluster.machine_networks) else f"{networks[0]}"
                yield Mistake(name, f"{address} is not in {where}", "choose an address in them")


def _different(cluster: InstallConfigFields, given: dict[str, list[Address]]) -> Iterator[Mistake]:
    """Yield addresses of the ingress routers that the API has, given or by default."""
    network = ipaddress.ip_network(cluster.machine_networks[0])
    found = {name: set(addresses) for name, addresses in given.items()}
    for name, number in DEFAULTS.items():
        if not given[name] and number < network.num_addresses:
            found[name] = {network.network_address + number}
    both = found["api_vips"] & found["ingress_vips"]
    if both:
        shown = ", ".join(sorted(map(str, both)))
        whose = "the API" if given["ingress_vips"] else "the ingress routers by default"
        where = "ingress_vips" if given["ingress_vips"] else "api_vips"
        yield Mistake(where, f"{shown} is used by {whose} already", "choose a different address")


VIP_RULES = (_vips,)


# --- networks ------------------------------------------------------------------------------


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LISTS = ("machine_networks", "cluster_networks", "service_networks")
LONGEST_SERVICES = {4: 12, 6: 108}
OVN = "ovnkubernetes"


def _network_type(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    kind = cluster.network_type
    gone = releases.NETWORK_TYPES_GONE.get((kind or "").lower(), NEVER)
    if release >= gone:
        what = f"new clusters do not support {kind} since {releases.name(gone)}"
        yield Mistake("network_type", what, "leave it out: OVNKubernetes")


def _networks(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    named = [(name, ipaddress.ip_network(each)) for name in LISTS for each in getattr(cluster, name)]
    for (name, one), (other_name, other) in combinations(named, 2):
        if one.version == other.version and one.overlaps(other):
            yield Mistake(name, f"{one} overlaps {other} of {other_name}", "choose networks that do not overlap")
    for name, each in named:
        if each.network_address.is_unspecified:
            yield Mistake(name, f"{each} is not a network of addresses", "choose a private network")
    yield from _same_families(cluster)
    yield from _lengths(cluster, release)


def _same_families(cluster: InstallConfigFields) -> Iterator[Mistake]:
    """Yield networks of other families than the services'; machines may have one more."""
    services, machines = families(cluster, "service_networks"), families(cluster, "machine_networks")
    if len(cluster.service_networks) > len(services):
        yield Mistake("service_networks", "the installer accepts one per address family", "keep one")
    for name in ("service_networks", "cluster_networks"):
        here = families(cluster, name)
        if not here <= machines:
            what = f"{_named(here)}, while machine_networks are {_named(machines)}"
            yield Mistake(name, what, "use the same address families in all three")
    if families(cluster, "cluster_networks") != services:
        what = f"{_named(families(cluster, 'cluster_networks'))}, while service_networks are {_named(services)}"
        yield Mistake("cluster_networks", what, "use the same address families in all three")


def _lengths(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    for network in map(ipaddress.ip_network, cluster.cluster_networks):
        if network.version == 4 and cluster.host_prefix < network.prefixlen:
            what = f"/{cluster.host_prefix} is larger than the whole network {network}"
            yield Mistake("host_prefix", what, f"set more than {network.prefixlen}")
        elif network.version == 6 and network.prefixlen > HOST_PREFIX_IPV6:
            what = f"{network} has no room for the /{HOST_PREFIX_IPV6} of a machine"
            yield Mistake("cluster_networks", what, "choose a larger network, such as fd01::/48")
    for each in map(ipaddress.ip_network, cluster.service_networks):
        if release in releases.SERVICE_LENGTHS and each.prefixlen < LONGEST_SERVICES[each.version]:
            what = f"{each} is larger than the largest that is supported, /{LONGEST_SERVICES[each.version]}"
            yield Mistake("service_networks", what, f"choose /{ {4: 16, 6: 112}[each.version] }")


def _ovn(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    """Yield networks that overlap those inside OVN-Kubernetes."""
    kind, join = cluster.network_type or default_network_type(cluster.release), cluster.ovn_join_subnet
    if join is not None:
        yield from _join_subnet(cluster, join, kind)
    if kind.lower() != OVN or release not in releases.OVN_SUBNETS:
        return
    inner = [ipaddress.ip_network(each) for each in releases.OVN_OWN[1 if join else 0 :]]
    for name in LISTS:
        for each in map(ipaddress.ip_network, getattr(cluster, name)):
            for own in inner:
                if own.version == each.version and own.overlaps(each):
                    movable = str(own) == releases.OVN_OWN[0]
                    fix = "choose another network" + (", or set ovn_join_subnet" if movable else "")
                    yield Mistake(name, f"{each} overlaps {own}, which OVN-Kubernetes uses inside", fix)


def _join_subnet(cluster: InstallConfigFields, join: str, kind: str) -> Iterator[Mistake]:
    network = ipaddress.ip_network(join)
    if kind.lower() != OVN:
        yield Mistake("ovn_join_subnet", f"{kind} has no such network", "leave it out")
    if network.version == 6 or network.network_address.is_unspecified:
        yield Mistake("ovn_join_subnet", f"{join} is not an IPv4 network", "write one such as 100.68.0.0/16")
        return
    for name in LISTS:
        for each in getattr(cluster, name):
            other = ipaddress.ip_network(each)
            if other.version == 4 and network.overlaps(other):
                yield Mistake("ovn_join_subnet", f"{join} overlaps {each} of {name}", "choose another network")
    pods = [each for each in map(ipaddress.ip_network, cluster.cluster_networks) if each.version == 4]
    machines = sum(2 ** max(0, cluster.host_prefix - pod.prefixlen) for pod in pods)
    if machines >= network.num_addresses - 3:  # gateway, network and broadcast
        what = f"{join} has no room for the {machines} machines that cluster_networks have room for"
        yield Mistake("ovn_join_subnet", what, "choose a larger network, such as 100.68.0.0/16")


def families(cluster: InstallConfigFields, name: str) -> frozenset[int]:
    return frozenset(ipaddress.ip_network(each).version for each in getattr(cluster, name))


def _named(versions: frozenset[int]) -> str:
    return " and ".join(f"IPv{version}" for version in sorted(versions))


def _ipv6(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    versions = families(cluster, "machine_networks")
    if 6 not in versions:
        return
    if not has_two_stacks(cluster, release):
        since = releases.name(releases.TWO_STACKS.since)
        what = f"{releases.name(release)} does not support IPv6 on OpenStack; available since {since}"
        yield Mistake("machine_networks", what, f"keep to IPv4, or install {since} or later")
        return
    if len(versions) == 1 and release not in releases.IPV6_ALONE:
        since = releases.name(releases.IPV6_ALONE.since)
        what = f"{releases.name(release)} does not support IPv6 alone on OpenStack; available since {since}"
        yield Mistake("machine_networks", what, f"add a network of IPv4, or install {since} or later")
    if (cluster.network_type or "").lower() in releases.NETWORK_TYPES_GONE:
        yield Mistake("network_type", f"{cluster.network_type} does not support IPv6", "leave it out: OVNKubernetes")
    if not cluster.machines_subnets:
        what = "the installer does not create IPv6 subnets"
        yield Mistake("machines_subnets", what, "create the subnets, and list them here")
    elif len(cluster.machines_subnets) < len(versions):
        what = f"{_named(versions)} require two subnets, not {len(cluster.machines_subnets)}"
        yield Mistake("machines_subnets", what, "give one per family")
    if len(cluster.machine_networks) == 1 and cluster.external_network and release in releases.IPV6_STAYS_INSIDE:
        what = "a cluster with IPv6 alone has no external network"
        yield Mistake("external_network", what, "leave it out, and the floating IPs too")


def user_creates_vip_ports(cluster: InstallConfigFields) -> bool:
    """Whether the user, and not the installer, creates the ports of the virtual addresses.

    Sources: OpenShift installer docs/user/openstack/dual-stack.md and, since 4.18, deploy_single_stack_ipv6_cluster.md.
    """
    return 6 in families(cluster, "machine_networks")


def has_two_stacks(cluster: InstallConfigFields, release: int) -> bool:
    """Whether a release knows controlPlanePort, as a preview or without."""
    return release in releases.TWO_STACKS or (release == releases.TWO_STACKS.since - 1 and has_previews(cluster))


def _order(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    """Yield lists of two families that begin with the wrong one."""
    lists = {name: getattr(cluster, name) for name in LISTS if len(families(cluster, name)) == 2}
    if "service_networks" not in lists:
        return
    if release not in releases.IPV6_FIRST:
        wanted = 4
    elif release in releases.ONE_ORDER:
        wanted = ipaddress.ip_network(cluster.machine_networks[0]).version
    else:
        return
    yield from _begins_with(lists, wanted)


def _begins_with(lists: Mapping[str, Sequence[str]], version: int) -> Iterator[Mistake]:
    for name, networks in lists.items():
        if ipaddress.ip_network(networks[0]).version != version:
            yield Mistake(name, f"begins with {networks[0]}", f"write the IPv{version} network first")


def _ipv4_first(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    """Yield lists of two families that begin with IPv6 (validateNetworkingIPVersion: other platforms allow it)."""
    yield from _begins_with({name: getattr(cluster, name) for name in LISTS if len(families(cluster, name)) == 2}, 4)


def _floating_ips(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    api, ingress = cluster.api_floating_ip, cluster.ingress_floating_ip
    for name, value in (("api_floating_ip", api), ("ingress_floating_ip", ingress)):
        if value and not cluster.external_network:
            yield Mistake(name, "requires an external network", "set external_network")
        if value and not is_address(value):
            yield Mistake(name, f"{value!r} is not an IP address", "write one such as 192.0.2.10")
    if api and api == ingress:
        yield Mistake("ingress_floating_ip", f"{api} is used by the API already", "choose a different address")


def _own_subnet(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    named = [("machines_subnets", machines_subnet) for machines_subnet in cluster.machines_subnets]
    named += [("machines_network", cluster.machines_network)] if cluster.machines_network else []
    for where, each in named:
        if not each.id and not each.name:
            yield Mistake(where, "has neither an ID nor a name", "give one")
        elif each.name and not has_two_stacks(cluster, release):
            since = releases.name(releases.TWO_STACKS.since)
            what = f"{releases.name(release)} takes subnets by ID; by name since {since}"
            yield Mistake(where, what, "give the ID")
        yield from ids(where, [each.id] if each.id else [])
    if cluster.machines_network and not cluster.machines_subnets:
        yield Mistake("machines_network", "requires its subnet", "set machines_subnets")
    if cluster.machines_subnets and cluster.external_dns:
        yield Mistake("external_dns", "does not apply to your own subnet", "leave it out")
    if len(cluster.machines_subnets) > len(families(cluster, "machine_networks")):
        yield Mistake("machines_subnets", "more than one subnet per address family", "give one per family")
    elif len({each.id or each.name for each in cluster.machines_subnets}) < len(cluster.machines_subnets):
        what = "names the same subnet twice"  # CLOUD platform.go, validateControlPlanePort: a subnet has one family
        yield Mistake("machines_subnets", what, "give one per family")


_OF_ANY_PLATFORM = (_network_type, _networks, _ovn)
NETWORK_RULES_WITHOUT_CLOUD = (*_OF_ANY_PLATFORM, _ipv4_first)
NETWORK_RULES = (
    *_OF_ANY_PLATFORM,
    _ipv6,
    _order,
    *VIP_RULES,
    _floating_ips,
    _own_subnet,
)
