"""A subnet of the user's own for the machines: what the installer and the machines require of it.

Source: OpenShift installer docs/user/openstack/customization.md, "Custom Subnets", and dual-stack.md;
Networking API v2.0, "Routers" and "Allowed address pairs".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.clusters import installer_names as naming
from openstack_prep.neutron.rules import pools, pools_beside, pools_without
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.networks import overlaps, port_security, suggest_network
from openstack_prep.openshift.check.network.topology import (
    external_network,
    listed,
    machines,
    matches,
    own_subnets,
    references,
    router_interfaces,
    virtual_addresses,
)
from openstack_prep.openshift.install_config import ResourceReference
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    NetworkRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
)

LEAST_MTU = 1380  # IPv6's own 1280 and 100 that OVN-Kubernetes adds


def own_subnet(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the user's own subnets and their network."""
    where = context.place("machines_subnets")
    for reference in references(context):
        found = matches(context, SubnetRecord, reference)
        name = _shown(reference)
        if len(found) != 1:
            ids = ", ".join(each.id for each in found)
            yield documented(
                code="subnet.ambiguous" if found else "subnet.missing",
                where=where,
                what=f"{len(found)} subnets are called {name}: {ids}" if found else f"there is no subnet {name}",
                fix=context.openstack("subnet", "list", "--long") + "  # and write the id of the one you mean",
            )
    subnets = own_subnets(context)
    for subnet in subnets:
        yield from _subnet(context, where, subnet)
        yield from _routers_out(context, where, subnet)
        yield from _around(context, where, subnet)
        yield from _room(context, where, subnet)
    if subnets:
        yield from _network(context, where, subnets)


def _subnet(context: CheckContext, where: str, subnet: SubnetRecord) -> Iterator[Diagnostic]:
    cidr, subnet_id = subnet.cidr, subnet.id
    if cidr not in context.cluster.machine_networks:
        given = ", ".join(context.cluster.machine_networks)
        yield Diagnostic(
            code="machine-network.not-subnet",
            where=context.place("machine_networks"),
            what=f"{given} is not {cidr}, the network of subnet {subnet_id}",
            why="the installer refuses any other; security group rules and virtual addresses follow from it",
            fix=f"write {cidr}",
        )
    if subnet.ip_version == 4 and not subnet.enable_dhcp:
        yield documented(
            code="subnet.no-dhcp",
            where=where,
            what=f"DHCP is off on subnet {subnet_id}",
            fix=context.openstack("subnet", "set", "--dhcp", subnet_id) + "  # unless it has a DHCP server of its own",
        )
    if not subnet.dns_nameservers:
        yield Diagnostic(
            code="subnet.no-dns-server",
            where=where,
            what=f"subnet {subnet_id} names no DNS servers",
            why="unless the cloud's DHCP offers DNS servers, machines resolve no names and pull no images",
            fix=f"name one: {context.openstack('subnet', 'set', '--dns-nameserver', 'ADDRESS', subnet_id)}",
            status=DiagnosticStatus.WARNING,
        )


def _routers_out(context: CheckContext, where: str, subnet: SubnetRecord) -> Iterator[Diagnostic]:
    """Yield if no router connects the subnet to the external network."""
    subnet_id, mine = subnet.id, subnet.project_id == context.cloud.project_id
    interfaces = [
        port
        for port in router_interfaces(context, subnet.network_id)
        if subnet_id in [fixed_ip.subnet_id for fixed_ip in port.fixed_ips]
    ]
    if not subnet.gateway_ip:
        gateway = ipaddress.ip_network(subnet.cidr).network_address + 1
        apart = pools_without(subnet, [gateway])
        yield Diagnostic(
            code="subnet.no-gateway",
            where=where,
            what=f"subnet {subnet_id} has no gateway",
            why="machines have no default route: they reach neither OpenStack nor a registry",
            fix=context.openstack("subnet", "set", *apart, "--gateway", str(gateway), subnet_id)
            + "  # ask first who else has machines there: they get this default route, too",
        )
    external = external_network(context)
    if external is None:
        return
    if not interfaces:
        yield Diagnostic(
            code="router.missing",
            where=where,
            what=f"no router has an interface in subnet {subnet_id}"
            + ("" if mine else ", as far as these credentials show"),
            why=f"floating IPs of {external.name!r} cannot be attached to ports there",
            fix=_add_router(context, external, subnet_id),
            status=DiagnosticStatus.ERROR if mine else DiagnosticStatus.WARNING,
        )
    for router in _routers(context, interfaces):
        beyond = router.gateway_network_id
        if beyond != external.id:
            has = f"has its gateway on network {beyond}" if beyond else "has no external gateway"
            yield Diagnostic(
                code="router.other-gateway" if beyond else "router.no-gateway",
                where=where,
                what=f"router {router.name} {router.id} of subnet {subnet_id} {has}",
                why=f"floating IPs of {external.name!r} cannot be attached to ports there",
                fix=_set_gateway(context, external, router, subnet),
            )
        elif router.enable_snat is False:
            yield Diagnostic(
                code="router.no-snat",
                where=where,
                what=f"router {router.name} {router.id} of subnet {subnet_id} has enable_snat: false",
                why="machines reach no registry outside, unless routes there lead back to their subnet",
                # without enable_snat Neutron sets its default (29.0.0, db/l3_gwmode_db.py, _get_enable_snat)
                fix=_set_gateway(context, external, router, subnet),
                status=DiagnosticStatus.WARNING,
            )


def _set_gateway(context: CheckContext, external: NetworkRecord, router: RouterRecord, subnet: SubnetRecord) -> str:
    """Return the command that sets a router's gateway, with what else has its way out by it."""
    command = context.openstack("router", "set", "--external-gateway", external.id, router.id)
    ports = (port for port in listed(context, PortRecord, device_id=router.id) if port.device_owner in INTERFACES)
    others = sorted({port.network_id for port in ports} - {subnet.network_id})
    if not router.gateway_network_id or not others:
        return command
    return f"{command}  # ask first who uses network {', '.join(others)}: its way out changes, too"


def _add_router(context: CheckContext, external: NetworkRecord, subnet_id: str) -> str:
    """Return the command that gives a subnet a router of this project with a gateway on the external network."""
    mine = listed(context, RouterRecord, project_id=context.cloud.project_id)
    free = (router for router in mine if not any(naming.infra_ids(router.tags)))  # a cluster deletes its own
    gates = [router.id for router in free if router.gateway_network_id == external.id]
    name = gates[0] if gates else f"{context.cluster.cluster_name}-{subnet_id[:8]}"
    create = [] if gates else [context.openstack("router", "create", "--external-gateway", external.id, name)]
    return " && ".join([*create, context.openstack("router", "add", "subnet", name, subnet_id)])


def _routers(context: CheckContext, interfaces: list[PortRecord]) -> list[RouterRecord]:
    """Return the routers of interfaces, as far as these credentials see them."""
    return [router for port in interfaces for router in listed(context, RouterRecord, id=port.device_id)]


def _around(context: CheckContext, where: str, subnet: SubnetRecord) -> Iterator[Diagnostic]:
    """Yield networks that machines will no longer reach because pods or services have the same addresses."""
    routers = _routers(context, router_interfaces(context, subnet.network_id))
    reached = {host_route.destination: f"a host route of subnet {subnet.id}" for host_route in subnet.host_routes}
    for router in routers:
        reached |= {route.destination: f"a route of router {router.id}" for route in router.routes}
        ports = [port for port in listed(context, PortRecord, device_id=router.id) if port.device_owner in INTERFACES]
        for subnet_id in (fixed.subnet_id for port in ports for fixed in port.fixed_ips):
            for other in listed(context, SubnetRecord, id=subnet_id):
                reached.setdefault(other.cidr, f"subnet {other.id}, which router {router.id} leads to")
    for destination, origin in reached.items():
        block = ipaddress.ip_network(destination)
        if block.prefixlen == 0 or destination == subnet.cidr:
            continue
        for field, own in overlaps(context, block, ("cluster_networks", "service_networks")):
            yield Diagnostic(
                code="network.overlap",
                where=field,
                what=f"{own} overlaps {destination}, {origin}",
                why="the cluster cannot reach that network",
                fix=f"write a network that does not overlap {destination}{suggest_network(context, own)}",
                status=DiagnosticStatus.WARNING,
            )


def _room(context: CheckContext, where: str, subnet: SubnetRecord) -> Iterator[Diagnostic]:
    """Yield if the allocation pools are too small; addresses of ports that are not visible count as free."""
    ports = listed(context, PortRecord, network_id=subnet.network_id)
    used = {each for port in ports for each in port.addresses if each.version == subnet.ip_version}
    free = sum(pool.count - sum(each in pool for each in used) for pool in pools(subnet))
    if free < (needed := machines(context)):
        kept_out = [each for mine in virtual_addresses(context).values() for each in mine]
        more, options = pools_beside(subnet, kept_out)
        yield documented(
            code="subnet.full",
            where=where,
            what=f"the allocation pools of subnet {subnet.id} have {free} addresses left for "
            f"{needed} machines, including the bootstrap machine",
            fix=context.openstack("subnet", "set", *options, subnet.id)
            if free + more >= needed
            else "name a larger subnet",
        )


def _network(context: CheckContext, where: str, subnets: list[SubnetRecord]) -> Iterator[Diagnostic]:
    network_ids = {subnet.network_id for subnet in subnets}
    if len(network_ids) > 1:
        yield documented(
            code="subnet.other-network",
            where=where,
            what=f"the subnets belong to different networks: {', '.join(sorted(network_ids))}",
        )
    yield from _named(context, network_ids)
    for network in (each for one in sorted(network_ids) for each in listed(context, NetworkRecord, id=one)):
        yield from _fitting(context, where, network, subnets)


def _named(context: CheckContext, network_ids: set[str]) -> Iterator[Diagnostic]:
    """Yield if the network in the file is not the network of its subnets."""
    reference = context.cluster.machines_network
    meant = matches(context, NetworkRecord, reference) if reference else ()
    if reference and len(meant) != 1:
        name = _shown(reference)
        yield documented(
            code="network.ambiguous" if meant else "network.missing",
            where=context.place("machines_network"),
            what=f"{len(meant)} networks are called {name}" if meant else f"there is no network {name}",
            fix=_suggest_id(network_ids),
        )
    for other in (network for network in meant if len(meant) == 1 and network.id not in network_ids):
        yield documented(
            code="network.not-of-subnet",
            where=context.place("machines_network"),
            what=f"{other.id} is not the network of the subnet, {', '.join(sorted(network_ids))}",
            fix=_suggest_id(network_ids),
        )


def _suggest_id(network_ids: set[str]) -> str:
    """Return what to write for the network of the subnets; several networks are an error of their own."""
    return f"write the id {min(network_ids)}, without a name, or leave the network out"


def _shown(reference: ResourceReference) -> str:
    """Return the id, the name, or both."""
    return " named ".join(filter(None, (reference.id, reference.name and repr(reference.name))))


def _fitting(
    context: CheckContext, where: str, network: NetworkRecord, subnets: list[SubnetRecord]
) -> Iterator[Diagnostic]:
    """Yield properties of a network that keep machines out."""
    six = any(subnet.ip_version == 6 for subnet in subnets)
    if six and network.mtu is not None and network.mtu < LEAST_MTU:
        yield Diagnostic(
            code="network.mtu-too-small",
            where=where,
            what=f"the MTU of network {network.id} is {network.mtu}",
            why=f"the installer refuses less than {LEAST_MTU} with IPv6",
            fix=context.openstack("network", "set", "--mtu", str(LEAST_MTU), network.id),
        )
    if (
        network.project_id != context.cloud.project_id
        and len(subnets) == 1
        and context.cluster.load_balancer != "UserManaged"
    ):
        yield Diagnostic(
            code="network.other-project",
            where=where,
            what=f"network {network.id} belongs to project {network.project_id}",
            why="by Neutron's default policy only that project and administrators may choose a port's address there, "
            "and the ports of the virtual addresses have chosen ones",
            fix="ask its administrator whether the policy create_port:fixed_ips:ip_address allows it, "
            "or name a network of this project",
            status=DiagnosticStatus.WARNING,
        )
    yield from port_security(context, where, network)
