"""Virtual addresses of API and ingress: in the machines' subnet, of nobody else, and apart.

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
    """Yield what is wrong with the virtual addresses; a load balancer of the user's own is the user's business."""
    if scene.cluster.load_balancer == "UserManaged":
        return
    addresses = virtual_addresses(scene)
    for (one, mine), (other, theirs) in combinations(addresses.items(), 2):
        if _given(scene, one) and _given(scene, other):  # the file alone tells
            continue
        for each in sorted(set(map(str, mine)) & set(map(str, theirs))):
            yield Diagnostic(
                code="vip.not-unique",
                where=_place(scene, other),
                what=f"{each} is both {WHOSE[one]} and {WHOSE[other]} virtual address",
                why="the second port cannot be made",
                fix=f"write another address in {scene.place(other) if other != 'DNS' else scene.place(one)}",
            )
    subnets = own_subnets(scene)
    known = [each for each in subnets if each["cidr"] in scene.cluster.machine_networks]
    if len(known) < len(scene.cluster.machines_subnets):  # the first mistake is there, says another check
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
    """Return the field that a virtual address comes from: its own, or the network it is the default in."""
    return scene.place(of) if _given(scene, of) else scene.place("machine_networks")


def _told(scene: Scene, of: str, address: Address) -> str:
    return f"{WHOSE[of]} {address}" + ("" if _given(scene, of) else " (the installer's default)")


def _outside(scene: Scene, of: str, address: Address, subnets: list[Raw]) -> Iterator[Diagnostic]:
    """Yield when a virtual address cannot be one of the subnet that its port is made in."""
    cidrs = [each["cidr"] for each in subnets] or [scene.cluster.machine_networks[0]]
    block = next((each for each in map(ipaddress.ip_network, cidrs) if address in each), None)
    gateways = [each["gateway_ip"] for each in subnets] or [str(ipaddress.ip_network(cidrs[0]).network_address + 1)]
    if _given(scene, of) and not any(address in each for each in blocks(scene.cluster.machine_networks)):
        return  # the file alone tells
    if block is None:
        what = f"{_told(scene, of, address)} is not in the machines' subnet {' or '.join(cidrs)}"
        why = "its port cannot be made there"
    elif str(address) in gateways:
        what, why = f"{_told(scene, of, address)} is the subnet's gateway", "its port cannot be made, or cuts off all"
    elif address.version == 4 and address in (block.network_address, block.broadcast_address):
        what, why = f"{_told(scene, of, address)} is no host's address in {block}", "its port cannot be made"
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
                    what=f"{_told(scene, of, each)} lies in the allocation pool {first}-{last} of {subnet['id']}",
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
                    what=f"{_told(scene, of, each)} is in use by {_port(port)}",
                    why="the installer makes a port with that address itself, and cannot",
                    fix=scene.openstack("port", "delete", port["id"]) + "  # if nobody needs it; or name another",
                )


def _port(port: Raw) -> str:
    return " ".join(filter(None, ["port", port["name"], port["id"], port["device_owner"]]))


def _port_of_two_stacks(scene: Scene, of: str, mine: list[Address], subnets: list[Raw]) -> Iterator[Diagnostic]:
    """Yield unless one free port, made by the user, has both addresses."""
    ports = listed(scene, "ports", network_id=subnets[0]["network_id"])
    holders = [port for port in ports if set(mine) & set(addresses_of(port))]
    fitting = [port for port in holders if set(mine) <= set(addresses_of(port))]
    both = " and ".join(map(str, mine))
    if not fitting:
        yield Diagnostic(
            code="vip.no-port",
            where=_place(scene, of),
            what=f"no port has {both}" + "".join(f"; {_port(each)} has a part" for each in holders),
            why="with two stacks the installer makes no ports for the virtual addresses; they must be there",
            fix=_create_port(scene, of, mine, subnets),
        )
    for port in fitting:
        if port["device_owner"]:
            yield Diagnostic(
                code="vip.in-use",
                where=_place(scene, of),
                what=f"{both} are in use by {_port(port)}",
                why="a virtual address belongs to no machine: it moves among the control plane's",
                fix="name other addresses, and make a port of them",
            )


def _create_port(scene: Scene, of: str, mine: list[Address], subnets: list[Raw]) -> str:
    fixed = []
    for address in mine:
        here = next((each for each in subnets if address in ipaddress.ip_network(each["cidr"])), None)
        fixed += ["--fixed-ip", f"subnet={here['id'] if here else 'SUBNET'},ip-address={address}"]
    name = f"{scene.cluster.cluster_name}-{of.removesuffix('_vips')}-port"
    return scene.openstack("port", "create", "--network", subnets[0]["network_id"], *fixed, name)
