"""The networks of the cluster to be, as Neutron has them: read once for all checks.

Source: Networking API v2.0; OpenShift installer docs/user/openstack/customization.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from openstack_prep.core.run import query
from openstack_prep.neutron.rules import Address, Block
from openstack_prep.openshift.check.capacity.machines import groups
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.install_config import ResourceReference
from openstack_prep.openshift.install_config.rules.machines import ids
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    NetworkRecord,
    PortRecord,
    R,
    SubnetRecord,
    list_records,
)

DNS_VIP_UNTIL = 6
"""Up to 4.5 a third virtual address serves names within the cluster."""
OWN_NETWORKS = ("machine_networks", "cluster_networks", "service_networks")


@query
def listed(context: CheckContext, /, kind: type[R], **chosen: Any) -> Sequence[R]:
    """Return what Neutron lists of a kind of records."""
    return list_records(context.cloud.network, kind, **chosen)


def named_networks(context: CheckContext) -> Sequence[NetworkRecord]:
    """Return the networks that have the external network's name: the installer looks by that alone."""
    name = context.cluster.external_network
    return listed(context, NetworkRecord, name=name) if name else ()


def external_network(context: CheckContext) -> NetworkRecord | None:
    """Return the external network, if its name is unique."""
    external = [named_network for named_network in named_networks(context) if named_network.external]
    return external[0] if len(external) == 1 else None


def matches(context: CheckContext, kind: type[R], reference: ResourceReference) -> Sequence[R]:
    """Return the networks or subnets that an install-config means by an id, a name, or both."""
    query = {name: given for name in ("id", "name") if (given := getattr(reference, name))}
    return listed(context, kind, **query)


def references(context: CheckContext) -> list[ResourceReference]:
    """Return the references to the user's own subnets, without invalid ones, which the check of the file reports."""
    given = context.cluster.machines_subnets
    return [
        reference
        for reference in given
        if (reference.id or reference.name) and not list(ids("", filter(None, [reference.id])))
    ]


def own_subnets(context: CheckContext) -> list[SubnetRecord]:
    """Return the user's own subnets for the machines, those whose references are unique."""
    found = (matches(context, SubnetRecord, reference) for reference in references(context))
    return [subnets[0] for subnets in found if len(subnets) == 1]


def router_interfaces(context: CheckContext, network_id: str) -> list[PortRecord]:
    """Return the router interfaces on a network, as far as these credentials see them."""
    return [port for port in listed(context, PortRecord, network_id=network_id) if port.device_owner in INTERFACES]


def blocks(given: Iterable[str]) -> list[Block]:
    return [ipaddress.ip_network(each) for each in given]


def holding(context: CheckContext, address: Address, fields: Iterable[str]) -> Iterator[tuple[str, Block]]:
    """Yield those of the fields that have a network with an address, and that network."""
    for of in fields:
        yield from ((context.place(of), block) for block in blocks(getattr(context.cluster, of)) if address in block)


def virtual_addresses(context: CheckContext) -> dict[str, list[Address]]:
    """Return the addresses of API, ingress and (up to 4.5) DNS, the given ones or the installer's defaults."""
    cluster = context.cluster
    first = ipaddress.ip_network(cluster.machine_networks[0]).network_address
    found = {
        "api_vips": [ipaddress.ip_address(api_vip) for api_vip in cluster.api_vips] or [_after(first, 5)],
        "ingress_vips": [ipaddress.ip_address(ingress_vip) for ingress_vip in cluster.ingress_vips]
        or [_after(first, 7)],
    }
    return found | ({"DNS": [_after(first, 6)]} if context.release < DNS_VIP_UNTIL else {})


def _after(first: Address, number: int) -> Address:
    """Return the address so many after another; at most the last one."""
    return type(first)(min(int(first) + number, 2**first.max_prefixlen - 1))


def machines(context: CheckContext) -> int:
    """Return how many machines exist at the same time: all replicas, and the bootstrap machine."""
    return sum(group.count for group in groups(context.cluster))
