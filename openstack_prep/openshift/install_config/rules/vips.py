"""Rules of the installer for the virtual addresses of API and ingress.

Source: the OpenShift installer's validation (types/validation/installconfig.go: validateAPIAndIngressVIPs) and its
defaults (types/openstack/defaults/platform.go); ``releases`` names the releases of each rule.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from openstack_prep.base.errors import Mistake
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import InstallConfigFields

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
        if len({each.version for each in addresses}) < len(addresses):
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
    services = {ipaddress.ip_network(each).version for each in cluster.service_networks}
    first = ipaddress.ip_network(cluster.machine_networks[0]).version
    if len(services) == 2 and addresses[0].version != first and (len(addresses) == 1 or release in releases.ONE_ORDER):
        what = f"begins with {addresses[0]}, while machine_networks begin with IPv{first}"
        yield Mistake(name, what, f"write the IPv{first} address first")


def _inside(cluster: InstallConfigFields, release: int, given: dict[str, list[Address]]) -> Iterator[Mistake]:
    networks = [ipaddress.ip_network(each) for each in cluster.machine_networks]
    networks = networks if release in releases.VIPS_IN_ANY_NETWORK else networks[:1]
    for name, addresses in given.items():
        for each in addresses:
            if not any(each in network for network in networks):
                where = "machine_networks" if len(networks) == len(cluster.machine_networks) else f"{networks[0]}"
                yield Mistake(name, f"{each} is not in {where}", "choose an address in them")


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
