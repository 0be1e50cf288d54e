"""Virtual addresses of API and ingress: in the machines' subnet, unused, and different.

Source: OpenShift installer docs/user/openstack/customization.md, dual-stack.md and
deploy_single_stack_ipv6_cluster.md; its validation (installconfig/openstack/validation/platform.go, validateVIPs),
which ignores pools and ports where the user creates the ports.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.neutron.rules import Address, pools, pools_without
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import (
    blocks,
    listed,
    own_subnets,
    virtual_addresses,
)
from openstack_prep.openshift.install_config.rules.networks import user_creates_vip_ports
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import PortRecord, SubnetRecord

WHOSE = {"api_vips": "the API's", "ingress_vips": "ingress's", "DNS": "the cluster's DNS's"}


def vips(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the virtual addresses, unless the user manages the load balancer."""
    if context.cluster.load_balancer == "UserManaged":
        return
    addresses = virtual_addresses(context)
    for (one, mine), (other, theirs) in combinations(addresses.items(), 2):
        if _given(context, one) and _given(context, other):  # the check of the file reports it
            continue
        for each in sorted(set(map(str, mine)) & set(map(str, theirs))):
            yield documented(
                code="vip.not-unique",
                where=_place(context, other),
                what=f"{each} is both {WHOSE[one]} and {WHOSE[other]} virtual address",
                fix=f"write another address in {context.place(other) if other != 'DNS' else context.place(one)}",
            )
    subnets = own_subnets(context)
    known = [subnet for subnet in subnets if subnet.cidr in context.cluster.machine_networks]
    if len(known) < len(context.cluster.machines_subnets):  # another check reports the subnet
        return
    for of, address in _each(addresses):
        yield from _outside(context, of, address, subnets)
    if subnets and user_creates_vip_ports(context.cluster):
        for of, mine in addresses.items():
            yield from _port_of_user(context, of, mine, subnets)
    elif len(subnets) == 1:
        yield from _in_pools(context, addresses, subnets[0])
        yield from _taken(context, addresses, subnets[0])


def _each(addresses: Mapping[str, Iterable[Address]]) -> Iterator[tuple[str, Address]]:
    return ((of, each) for of, mine in addresses.items() for each in mine)


def _given(context: CheckContext, of: str) -> bool:
    return bool(getattr(context.cluster, of, ()))


def _place(context: CheckContext, of: str) -> str:
    """Return the field that a virtual address comes from: its own, or the network whose default it is."""
    return context.place(of) if _given(context, of) else context.place("machine_networks")


def _describe(context: CheckContext, of: str, address: Address) -> str:
    return f"{WHOSE[of]} {address}" + ("" if _given(context, of) else " (the installer's default)")


def _outside(context: CheckContext, of: str, address: Address, subnets: list[SubnetRecord]) -> Iterator[Diagnostic]:
    """Yield if a virtual address is not a usable host address of the machines' subnet."""
    cidrs = [subnet.cidr for subnet in subnets] or [context.cluster.machine_networks[0]]
    block = next((each for each in map(ipaddress.ip_network, cidrs) if address in each), None)
    gateways = [subnet.gateway_ip for subnet in subnets] or [str(ipaddress.ip_network(cidrs[0]).network_address + 1)]
    if _given(context, of) and not any(address in each for each in blocks(context.cluster.machine_networks)):
        return  # the check of the file reports it
    if block is None:
        what = f"{_describe(context, of, address)} is not in the machines' subnet {' or '.join(cidrs)}"
        why = "its port cannot be created there"
    elif str(address) in gateways:
        what, why = (
            f"{_describe(context, of, address)} is the subnet's gateway",
            "its port cannot be created, or cuts off the whole subnet",
        )
    elif address.version == 4 and address in (block.network_address, block.broadcast_address):
        what, why = f"{_describe(context, of, address)} is not a host address in {block}", "its port cannot be created"
    else:
        return
    named = context.place(of) if of != "DNS" else context.place("machine_networks")
    yield Diagnostic(
        code="vip.invalid",
        where=_place(context, of),
        what=what,
        why=why,
        fix=f"write an address of {cidrs[0]} in {named}",
    )


def _in_pools(context: CheckContext, addresses: dict[str, list[Address]], subnet: SubnetRecord) -> Iterator[Diagnostic]:
    every = [each for _, each in _each(addresses)]
    fix = context.openstack("subnet", "set", *pools_without(subnet, every), subnet.id)
    for of, each in _each(addresses):
        for pool in pools(subnet):
            if each in pool:
                yield documented(
                    code="vip.in-pool",
                    where=_place(context, of),
                    what=f"{_describe(context, of, each)} lies in the allocation pool {pool} of {subnet.id}",
                    fix=fix,
                )


def _taken(context: CheckContext, addresses: dict[str, list[Address]], subnet: SubnetRecord) -> Iterator[Diagnostic]:
    ports = listed(context, PortRecord, network_id=subnet.network_id)
    for of, each in _each(addresses):
        for port in ports:
            if each in port.addresses and str(each) != subnet.gateway_ip:
                other = f"write another address in {context.place(of) if of != 'DNS' else _place(context, of)}"
                # nobody can tell what a port of a machine or a router is needed for, and another project owns its ports
                deletable = not port.device_owner and port.project_id == context.cloud.project_id
                delete = f"{context.openstack('port', 'delete', port.id)}  # if nobody needs it; or {other}"
                yield documented(
                    code="vip.in-use",
                    where=_place(context, of),
                    what=f"{_describe(context, of, each)} is in use by {_port(port)}",
                    fix=delete if deletable else other,
                )


def _port(port: PortRecord) -> str:
    return " ".join(filter(None, ["port", port.name, port.id, port.device_owner]))


def _port_of_user(
    context: CheckContext, of: str, mine: list[Address], subnets: list[SubnetRecord]
) -> Iterator[Diagnostic]:
    """Yield unless a free port of the user's has the addresses, one per IP version."""
    ports = listed(context, PortRecord, network_id=subnets[0].network_id)
    holders = [port for port in ports if set(mine) & set(port.addresses)]
    fitting = [port for port in holders if set(mine) <= set(port.addresses)]
    wanted = " and ".join(map(str, mine))
    if not fitting:
        yield Diagnostic(
            code="vip.no-port",
            where=_place(context, of),
            what=f"no port has {wanted}" + "".join(f"; {_port(holder)} has a part" for holder in holders),
            why="with IPv6 the installer creates no ports for the virtual addresses; they must exist",
            fix=_create_port(context, of, mine, subnets),
        )
    for port in fitting:
        if port.device_owner:
            yield Diagnostic(
                code="vip.in-use",
                where=_place(context, of),
                what=f"{wanted}: in use by {_port(port)}",
                why="a virtual address belongs to no machine: it moves among the control plane's",
                fix=f"write other addresses in {context.place(of)}, and create a port with them",
            )


def _create_port(context: CheckContext, of: str, mine: list[Address], subnets: list[SubnetRecord]) -> str:
    fixed = []
    for address in mine:
        here = next((subnet for subnet in subnets if address in ipaddress.ip_network(subnet.cidr)), None)
        if here is None:
            return f"write an address of {' or '.join(subnet.cidr for subnet in subnets)} instead of {address} first"
        fixed += ["--fixed-ip", f"subnet={here.id},ip-address={address}"]
    name = f"{context.cluster.cluster_name}-{of.removesuffix('_vips')}-port"
    return context.openstack("port", "create", "--network", subnets[0].network_id, *fixed, name)
