"""Virtual addresses of API and ingress: in the machines' subnet, unused, and different.

Source: OpenShift installer docs/user/openstack/customization.md and dual-stack.md; its validation
(installconfig/openstack/validation/platform.go, validateVIPs).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.raw import Raw
from openstack_prep.neutron.addresses import Address, addresses_of
from openstack_prep.openshift.check.network.topology import (
    blocks,
    listed,
    own_subnets,
    virtual_addresses,
)
from openstack_prep.openshift.check.scene import Scene
from openstack_prep.resources.network.allocation_pools import pools, pools_without

WHOSE = {"api_vips": "the API's", "ingress_vips": "ingress's", "DNS": "the cluster's DNS's"}


def vips(scene: Scene) -> Iterator[Diagnostic]:
    """Yield what is wrong with the virtual addresses, unless the user manages the load balancer."""
    if scene.cluster.load_balancer == "UserManaged":
        return
    addresses = virtual_addresses(scene)
    for (one, mine), (other, theirs) in combinations(addresses.items(), 2):
        if _given(scene, one) and _given(scene, other):  # the check of the file reports it
            continue
        for each in sorted(set(map(str, mine)) & set(map(str, theirs))):
            yield Diagnostic(
                code="vip.not-unique",
                where=_place(scene, other),
                what=f"{each} is both {WHOSE[one]} and {WHOSE[other]} virtual address",
                why="the second port cannot be created",
                fix=f"write another address in {scene.place(other) if other != 'DNS' else scene.place(one)}",
            )
    subnets = own_subnets(scene)
    known = [each for each in subnets if each["cidr"] in scene.cluster.machine_networks]
    if len(known) < len(scene.cluster.machines_subnets):  # another check reports the subnet
        return
    for of, address in _each(addresses):
        yield from _outside(scene, of, address, subnets)
    if len(subnets) == 1:
        yield from _in_pools(scene, addresses, subnets[0])
        yield from _taken(scene, addresses, subnets[0])
    elif len(subnets) > 1:
        for of, mine in addresses.items():
            yield from _port_of_two_stacks(scene, of, mine, subnets)


def _each(addresses: Mapping[str, Iterable[Address]]) -> Iterator[tuple[str, Address]]:
    return ((of, each) for of, mine in addresses.items() for each in mine)


def _given(scene: Scene, of: str) -> bool:
    return bool(getattr(scene.cluster, of, ()))


def _place(scene: Scene, of: str) -> str:
    """Return the field that a virtual address comes from: its own, or the network whose default it is."""
    return scene.place(of) if _given(scene, of) else scene.place("machine_networks")


def _describe(scene: Scene, of: str, address: Address) -> str:
    return f"{WHOSE[of]} {address}" + ("" if _given(scene, of) else " (the installer's default)")


def _outside(scene: Scene, of: str, address: Address, subnets: list[Raw]) -> Iterator[Diagnostic]:
    """Yield if a virtual address is not a usable host address of the machines' subnet."""
    cidrs = [each["cidr"] for each in subnets] or [scene.cluster.machine_networks[0]]
    block = next((each for each in map(ipaddress.ip_network, cidrs) if address in each), None)
    gateways = [each["gateway_ip"] for each in subnets] or [str(ipaddress.ip_network(cidrs[0]).network_address + 1)]
    if _given(scene, of) and not any(address in each for each in blocks(scene.cluster.machine_networks)):
        return  # the check of the file reports it
    if block is None:
        what = f"{_describe(scene, of, address)} is not in the machines' subnet {' or '.join(cidrs)}"
        why = "its port cannot be created there"
    elif str(address) in gateways:
        what, why = (
            f"{_describe(scene, of, address)} is the subnet's gateway",
            "its port cannot be created, or cuts off the whole subnet",
        )
    elif address.version == 4 and address in (block.network_address, block.broadcast_address):
        what, why = f"{_describe(scene, of, address)} is not a host address in {block}", "its port cannot be created"
    else:
        return
    named = scene.place(of) if of != "DNS" else scene.place("machine_networks")
    yield Diagnostic(
        code="vip.invalid",
        where=_place(scene, of),
        what=what,
        why=why,
        fix=f"write an address of {cidrs[0]} in {named}",
    )


def _in_pools(scene: Scene, addresses: dict[str, list[Address]], subnet: Raw) -> Iterator[Diagnostic]:
    every = [each for _, each in _each(addresses)]
    fix = scene.openstack("subnet", "set", *pools_without(subnet, every), subnet["id"])
    for of, each in _each(addresses):
        for first, last in pools(subnet):
            if first.version == each.version and int(first) <= int(each) <= int(last):
                yield Diagnostic(
                    code="vip.in-pool",
                    where=_place(scene, of),
                    what=f"{_describe(scene, of, each)} lies in the allocation pool {first}-{last} of {subnet['id']}",
                    why="Neutron may give it to another port first; the installer refuses it",
                    fix=fix,
                )


def _taken(scene: Scene, addresses: dict[str, list[Address]], subnet: Raw) -> Iterator[Diagnostic]:
    ports = listed(scene, "ports", network_id=subnet["network_id"])
    for of, each in _each(addresses):
        for port in ports:
            if each in addresses_of(port) and str(each) != subnet["gateway_ip"]:
                yield Diagnostic(
                    code="vip.in-use",
                    where=_place(scene, of),
                    what=f"{_describe(scene, of, each)} is in use by {_port(port)}",
                    why="the installer creates a port with that address itself, and cannot",
                    fix=scene.openstack("port", "delete", port["id"]) + "  # if nobody needs it; or name another",
                )


def _port(port: Raw) -> str:
    return " ".join(filter(None, ["port", port["name"], port["id"], port["device_owner"]]))


def _port_of_two_stacks(scene: Scene, of: str, mine: list[Address], subnets: list[Raw]) -> Iterator[Diagnostic]:
    """Yield unless a free port of the user's has both addresses."""
    ports = listed(scene, "ports", network_id=subnets[0]["network_id"])
    holders = [port for port in ports if set(mine) & set(addresses_of(port))]
    fitting = [port for port in holders if set(mine) <= set(addresses_of(port))]
    both = " and ".join(map(str, mine))
    if not fitting:
        yield Diagnostic(
            code="vip.no-port",
            where=_place(scene, of),
            what=f"no port has {both}" + "".join(f"; {_port(each)} has a part" for each in holders),
            why="with dual stack the installer creates no ports for the virtual addresses; they must exist",
            fix=_create_port(scene, of, mine, subnets),
        )
    for port in fitting:
        if port["device_owner"]:
            yield Diagnostic(
                code="vip.in-use",
                where=_place(scene, of),
                what=f"{both} are in use by {_port(port)}",
                why="a virtual address belongs to no machine: it moves among the control plane's",
                fix="name other addresses, and create a port with them",
            )


def _create_port(scene: Scene, of: str, mine: list[Address], subnets: list[Raw]) -> str:
    fixed = []
    for address in mine:
        here = next((each for each in subnets if address in ipaddress.ip_network(each["cidr"])), None)
        fixed += ["--fixed-ip", f"subnet={here['id'] if here else 'SUBNET'},ip-address={address}"]
    name = f"{scene.cluster.cluster_name}-{of.removesuffix('_vips')}-port"
    return scene.openstack("port", "create", "--network", subnets[0]["network_id"], *fixed, name)
