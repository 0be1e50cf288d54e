"""The networks inside and around a cluster: no overlaps, enough addresses, DNS servers.

Source: OpenShift installer docs/user/openstack/known-issues.md; "Configuring the cluster network" of its docs
(hostPrefix: each node gets a part of that size).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.neutron.rules import Address, Block
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import (
    OWN_NETWORKS,
    blocks,
    external_network,
    holding,
    listed,
    machines,
    own_subnets,
    virtual_addresses,
)
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import GroupRecord, NetworkRecord, SubnetRecord

DNS_SINCE = 4
PRIVATE = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8")))
"""RFC 1918 and RFC 4193."""
IPV6_PART = 64
"""Length of the prefix of a node's part of an IPv6 network of pods."""


def networks(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the networks, whether the installer creates the machines' one or not."""
    yield from _external(context)
    yield from _additional(context)
    yield from _additional_groups(context)
    yield from _unreachable(context)
    yield from _parts(context)
    if not context.cluster.machines_subnets:
        yield from _installers_own(context)


def overlaps(
    context: CheckContext, block: Block, fields: tuple[str, ...] = OWN_NETWORKS
) -> Iterator[tuple[str, Block]]:
    """Yield the fields whose networks overlap one outside the cluster, with that network."""
    for of in fields:
        for own in blocks(getattr(context.cluster, of)):
            if own.version == block.version and own.overlaps(block):
                yield context.place(of), own


def suggest_network(context: CheckContext, own: Block) -> str:
    """Return a private network of the size of one, for a fix; it overlaps nothing that the checks know."""
    known = [*blocks(subnet.cidr for subnet in listed(context, SubnetRecord))]
    known += [block for of in OWN_NETWORKS for block in blocks(getattr(context.cluster, of))]
    known += [ipaddress.ip_network(each) for each in (_address(host) for _, _, host in _needed(context)) if each]
    taken = [each for each in known if each.version == own.version]
    for private in (each for each in PRIVATE if each.version == own.version and each.prefixlen <= own.prefixlen):
        for block in private.subnets(new_prefix=own.prefixlen):
            if not any(each.overlaps(block) for each in taken):
                return f", such as {block}"
    return ""


def _external(context: CheckContext) -> Iterator[Diagnostic]:
    network = external_network(context)
    if network is None:
        return
    subnets = listed(context, SubnetRecord, network_id=network.id)
    if not subnets:
        yield Diagnostic(
            code="access.denied",
            where=context.place("external_network"),
            what=f"these credentials see no subnet of {network.name!r}, so overlaps cannot be checked",
            why="a machine network that overlaps it makes its floating IPs unreachable",
            fix=f"openstack subnet list --network {network.id}  # as an administrator",
            status=DiagnosticStatus.UNKNOWN,
        )
    for subnet in subnets:
        for where, own in overlaps(context, ipaddress.ip_network(subnet.cidr)):
            yield Diagnostic(
                code="network.overlap",
                where=where,
                what=f"{own} overlaps {subnet.cidr} of the external network {network.name!r}",
                why="the router cannot connect both, or machines look for floating IPs and gateway "
                "among their neighbours",
                fix=f"write a network that does not overlap {subnet.cidr}{suggest_network(context, own)}",
            )


def _additional(context: CheckContext) -> Iterator[Diagnostic]:
    cluster = context.cluster
    for of in ("machines", "control_plane", "compute"):
        where = context.place(f"{of}.additional_networks")
        for network_id in getattr(cluster, of).additional_networks:
            found = listed(context, NetworkRecord, id=network_id)
            subnets = listed(context, SubnetRecord, network_id=network_id)
            if not found:
                yield documented(
                    code="network.missing",
                    where=where,
                    what=f"there is no network {network_id}",
                    fix=context.openstack("network", "list", "--internal") + "  # and write one of these ids",
                )
            for network in found:
                yield from port_security(context, where, network)
                if not (subnets or network.subnets):
                    yield documented(
                        code="network.no-subnet",
                        where=where,
                        what=f"network {network_id} has no subnet",
                        fix="create a subnet in it, or leave the network out",
                    )
            for subnet in subnets:
                for field, own in overlaps(context, ipaddress.ip_network(subnet.cidr)):
                    yield Diagnostic(
                        code="network.overlap",
                        where=where,
                        what=f"{subnet.cidr} of network {network_id} overlaps {own} of {field}",
                        why="machines have addresses in both, and send packets for one network into the other",
                        fix=f"write another network here, or one that does not overlap {subnet.cidr} in {field}"
                        f"{suggest_network(context, own)}",
                    )


def port_security(context: CheckContext, where: str, network: NetworkRecord) -> Iterator[Diagnostic]:
    """Yield if Neutron refuses the security groups that each port of a machine has.

    Source: Neutron 29 plugins/ml2/plugin.py (PortSecurityAndIPRequiredForSecurityGroups).
    """
    if network.port_security_enabled is False:
        yield Diagnostic(
            code="port-security.off",
            where=where,
            what=f"port security is off on network {network.id}",
            why="Neutron refuses security groups and allowed address pairs there, so machines get no ports",
            fix=context.openstack("network", "set", "--enable-port-security", network.id),
        )


def _additional_groups(context: CheckContext) -> Iterator[Diagnostic]:
    for of in ("machines", "control_plane", "compute"):
        for group_id in getattr(context.cluster, of).additional_security_groups:
            if not listed(context, GroupRecord, id=group_id):
                yield documented(
                    code="security-group.missing",
                    where=context.place(f"{of}.additional_security_groups"),
                    what=f"there is no security group {group_id} that this project sees",
                    fix=context.openstack("security", "group", "list") + "  # and write one of these ids",
                )


def _unreachable(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield services outside of the cluster whose addresses lie in its own networks."""
    inside = (
        OWN_NETWORKS[1:] if context.cluster.machines_subnets else OWN_NETWORKS
    )  # a subnet of the user's own has neighbours
    for where, what, host in _needed(context):
        address = _address(host)
        for field, block in holding(context, address, inside) if address else ():
            yield Diagnostic(
                code="network.shadows-address",
                where=where,
                what=f"{what} {address} lies in {block} of {field}",
                why="machines and pods look for it there, and never reach it",
                fix=f"write a network without that address in {field}{suggest_network(context, block)}",
            )


def _needed(context: CheckContext) -> Iterator[tuple[str, str, str]]:
    """Yield what machines must reach: the field that names it, what it is, and its host."""
    cluster, cloud = context.cluster, context.cloud
    if not cluster.machines_subnets:  # the check of the file reports that a user's own subnet has its own
        yield from ((context.place("external_dns"), "DNS server", each) for each in cluster.external_dns)
    for subnet in own_subnets(context):
        name = f"DNS server of subnet {subnet.id}"
        yield from (
            (context.place("machines_subnets"), name, dns_nameserver) for dns_nameserver in subnet.dns_nameservers
        )
    for of in ("http", "https"):
        url: str | None = getattr(cluster.proxy, of, None)
        if url:
            yield context.place(f"proxy.{of}"), "the proxy", _host(url)
    services = {_host(cloud.auth_url): {"identity"}}
    for endpoint in cloud.endpoints:
        if endpoint["interface"] == (cloud.interface or "public"):
            services.setdefault(_host(endpoint["url"]), set()).add(endpoint["type"])
    for host, types in services.items():
        yield f"cloud {cloud.name!r}", f"{', '.join(sorted(types))} at", host


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:  # a name may lead elsewhere for the machines
        return None


def _parts(context: CheckContext) -> Iterator[Diagnostic]:
    cluster = context.cluster
    nodes = machines(context) - 1  # the bootstrap machine is not a node
    for version in sorted({block.version for block in blocks(cluster.cluster_networks)}):
        mine = [block for block in blocks(cluster.cluster_networks) if block.version == version]
        prefix = cluster.host_prefix if version == 4 else IPV6_PART
        if version == 4 and any(prefix < each.prefixlen for each in mine):  # the check of the file reports it
            continue
        parts = sum(1 << prefix - each.prefixlen for each in mine if prefix >= each.prefixlen)
        if parts < nodes:
            cidrs = ", ".join(map(str, mine))
            yield documented(
                code="cluster-network.too-small",
                where=context.place("cluster_networks"),
                what=f"{cidrs} has {parts} parts of /{prefix} (hostPrefix), the cluster has {nodes} nodes",
                fix="write a wider network" + (", or a longer hostPrefix" if version == 4 else ""),
            )


def _installers_own(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the subnet that the installer will create from the first machine network."""
    cluster = context.cluster
    block = ipaddress.ip_network(cluster.machine_networks[0])
    needed = machines(context) + len(virtual_addresses(context)) + 2  # gateway, and Neutron's DHCP
    free = max(0, block.num_addresses - 2)
    if free < needed:
        yield documented(
            code="machine-network.too-small",
            where=context.place("machine_networks"),
            what=f"{block} has {free} addresses, {needed} are needed: machines, bootstrap, virtual "
            "addresses, gateway, DHCP",
        )
    if not cluster.external_dns and context.release >= DNS_SINCE:
        yield Diagnostic(
            code="subnet.no-dns-server",
            where=context.place("external_dns"),
            what="is missing: the subnet that the installer creates names no DNS servers",
            why="unless the cloud's DHCP offers DNS servers, machines resolve no names and pull no images",
            fix=f"write the machines' DNS servers in {context.place('external_dns')}",
            status=DiagnosticStatus.WARNING,
        )
