"""Who uses the resources to be deleted: those that a spec no longer declares or destroys, and twins.

Source: Networking API v2.0, "Ports", "Floating IPs". A network's DHCP and metadata ports are deleted with it
(neutron/db/db_base_plugin_v2.py, AUTO_DELETE_PORT_OWNERS); a router's interfaces and the ports that reserve addresses
are deleted if their owner has our ownership tag. Uses are read only if something is to be deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.base import shell
from openstack_prep.base.errors import NotAllowed, NotFound, ResourceFailed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.run import query
from openstack_prep.resources.cascades.row import place, place_of
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import (
    AUTOMATIC,
    INTERFACES,
    FloatingIPRecord,
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    RuleRecord,
    SubnetRecord,
    bare_device,
    list_records,
)
from openstack_prep.resources.lists.ownership import name_of
from openstack_prep.resources.network.port import ports_of, shown, use_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True)
class HolderList:
    """A list of Neutron whose entries keep it from deleting the resource that their ``field`` names."""

    noun: str
    path: str
    field: str
    extension: str

    def read(self, run: CloudRun, resource_id: str) -> Iterable[Raw]:
        """Return the entries that name a resource, of all projects that the credentials in use see."""
        if self.extension not in queries.extensions(run):
            return ()
        which: Values = {self.field: resource_id}
        return queries.neutron_list(run, self.path, **which)


HOLDERS_OF_ROUTER = (
    # Neutron 29.0.0, services/ndp_proxy/plugin.py, _check_router_remove_subnet_request and _check_delete_router_gw
    HolderList("NDP proxy", "/ndp_proxies", "router_id", "l3-ndp-proxy"),
    # neutron-vpnaas 29.0.0, db/vpn/vpn_db.py, check_router_in_use
    HolderList("VPN service", "/vpn/vpnservices", "router_id", "vpnaas"),
)
HOLDERS_OF_PORT = (
    # Neutron 29.0.0, db/local_ip_db.py, _prevent_local_port_delete_callback
    HolderList("local IP", "/local_ips", "local_port_id", "local_ip"),
)


@dataclass(frozen=True)
class Use:
    """What uses a resource: ``others`` names users; the spec manages ``ports``, ``subnets`` and ``rules``."""

    others: tuple[str, ...] = ()
    ports: tuple[PortRecord, ...] = ()
    subnets: tuple[SubnetRecord, ...] = ()
    rules: tuple[RuleRecord, ...] = ()

    @property
    def contained_ids(self) -> frozenset[str]:
        ids = (each.id for each in (*self.ports, *self.subnets))
        return frozenset((*ids, *(rule.id for rule in self.rules)))


def of_network(run: CloudRun, network: NetworkRecord) -> Use:
    """Return the use of a network: its ports and its subnets."""
    subnets = _subnets_on(run, network.id)
    own = tuple(subnet for subnet in subnets if run.ownership.manages(subnet.name, subnet.description))
    named = (f"subnet {subnet.name} {subnet.id}" for subnet in subnets if subnet not in own)
    ports = _of_ports(run, network, queries.ports_on(run, network.id))
    return Use((*named, *ports.others), ports.ports, own)


def of_subnet(run: CloudRun, subnet: SubnetRecord) -> Use:
    """Return the use of a subnet: the ports with addresses in it."""
    return _of_ports(run, subnet, _in_subnet(run, subnet))


def of_group(run: CloudRun, group: GroupRecord) -> Use:
    """Return the use of a security group: its ports, and the rules of this spec."""
    rules = [rule for rule in group.security_group_rules if run.ownership.owns(rule.description)]
    return Use(tuple(map(port_text, _in_group(run, group))), rules=tuple(rules))


def of_router(run: CloudRun, router: RouterRecord, own_subnets: Iterable[str]) -> Use:
    """Return the use of a router: floating IPs behind it, and its interfaces."""
    interfaces = _interfaces(run, router.id)
    known = set(own_subnets)
    own = [port for port in interfaces if port.subnet_ids <= known]
    behind = (floating_ip for floating_ip in queries.floating_ips_behind(run, router.id) if floating_ip.port_id)
    addresses = (f"floating IP {floating_ip.address}" for floating_ip in behind)
    return Use((*addresses, *(port_text(port) for port in interfaces if port not in own)), tuple(own))


def of_floating_ip(record: FloatingIPRecord) -> Use:
    return Use((f"port {record.port_id}",) if record.port_id else ())


def of_port(run: CloudRun, port: PortRecord, going: frozenset[str] = frozenset()) -> Use:
    """Return the use of a port: its server or other device, and floating IPs that the spec does not manage."""
    device = port.device_id and bare_device(port.device_id) not in going
    attached = (
        floating_ip for floating_ip in queries.floating_ips_on(run, port.project_id) if floating_ip.port_id == port.id
    )
    staying = (floating_ip for floating_ip in attached if stays_attached(floating_ip, going))
    foreign = (floating_ip for floating_ip in staying if name_of(run.ownership, floating_ip) is None)
    addresses = (f"floating IP {floating_ip.address}" for floating_ip in foreign)
    return Use((*([f"{port.device_owner or 'device'} {port.device_id}"] if device else ()), *addresses))


def of_image(run: CloudRun, image_id: str) -> Use:
    """Return the servers that were booted from an image, as far as the credentials in use see them."""
    servers = run.admin.compute
    try:
        found = servers.list("/servers", "servers", all_tenants=True, image=image_id)
    except NotAllowed:
        found = servers.list("/servers", "servers", image=image_id)
    return Use(tuple(f"server {raw['name']} {raw['id']}" for raw in found))


def blockers_of_network(run: CloudRun, network_id: str, going: frozenset[str]) -> Iterator[PortRecord]:
    """Yield the ports on a network that remain after ``going`` is deleted: Neutron would refuse the deletion."""
    return _staying(queries.ports_on(run, network_id), going)


def blockers_of_subnet(run: CloudRun, subnet: SubnetRecord, going: frozenset[str]) -> Iterator[PortRecord]:
    """Yield the ports with an address of a subnet that remain after ``going`` is deleted."""
    return _staying(_in_subnet(run, subnet), going)


def removal(port: PortRecord, otherwise: str, subnet_id: str = "") -> str:
    """Return how a port is removed: an interface of a router by its router alone, another one as ``otherwise`` says.

    An interface may have the addresses of several IPv6 subnets, of which ``subnet_id`` is the one to leave.
    """
    if port.device_owner not in INTERFACES:
        return otherwise
    what = ["subnet", port.device_id, subnet_id] if subnet_id else ["port", port.device_id, port.id]
    return f"if no machine needs that router here, first run: {shell.join(['openstack', 'router', 'remove', *what])}"


def blockers_of_group(run: CloudRun, group: GroupRecord, going: frozenset[str]) -> Iterator[PortRecord]:
    """Yield the ports in a security group that remain after ``going`` is deleted, in whichever project.

    Neutron 29.0.0, db/securitygroups_db.py, delete_security_group, counts the ports of all projects.
    """
    ports = queries.ports_in_groups(run, group.project_id)
    return _staying((port for port in ports if group.id in port.security_groups), going)


def blockers_of_router(run: CloudRun, router_id: str, going: frozenset[str]) -> Iterator[str]:
    """Yield what needs a router and remains after ``going`` is deleted: Neutron would refuse to remove interfaces.

    Neutron 29.0.0, db/l3_db.py, _check_router_interface_not_in_use and _delete_current_gw_port.
    """
    for floating_ip in queries.floating_ips_behind(run, router_id):
        attachment = attachment_id(floating_ip.id, floating_ip.port_id)
        ends = {floating_ip.id, floating_ip.port_id, floating_ip.device_id, attachment}
        targets = {forwarding["internal_port_id"] for forwarding in queries.forwardings(run, floating_ip)}
        if ends.isdisjoint(going) and not (targets and targets <= going):
            yield f"floating IP {floating_ip.address} ({place_of(run, floating_ip)})"
    yield from _holders(run, HOLDERS_OF_ROUTER, router_id, going)


def blockers_of_port(run: CloudRun, port: PortRecord, going: frozenset[str]) -> Iterator[str]:
    """Yield what uses a port and remains after ``going`` is deleted: it would be lost, or Neutron would refuse.

    Neutron 29.0.0, services/trunk/rules.py, enforce_port_deletion_rules: of parents and subports of trunks.
    """
    yield from of_port(run, port, going).others
    for trunk in queries.trunks(run):
        ports = {trunk.port_id, *(subport.port_id for subport in trunk.sub_ports)}
        if port.id in ports and trunk.id not in going:
            yield _holder_text("trunk", trunk.name, trunk.id, place_of(run, trunk))
    yield from _holders(run, HOLDERS_OF_PORT, port.id, going)


def _holders(run: CloudRun, lists: Iterable[HolderList], resource_id: str, going: frozenset[str]) -> Iterator[str]:
    for holders in lists:
        for raw in holders.read(run, resource_id):
            if raw["id"] not in going:
                yield _holder_text(holders.noun, raw.get("name"), raw["id"], place(run, raw))


def _holder_text(noun: str, name: str | None, resource_id: str, where: str) -> str:
    return " ".join(filter(None, (noun, name, resource_id, f"({where})")))


def clear(cloud: Cloud, use: Use, what: str) -> None:
    """Delete resources with our tag from a network or subnet; refuse if others use it by then."""
    if use.others:
        raise ResourceFailed(f"{what} is now used by {', '.join(use.others)} and is kept")
    for port in use.ports:
        if port.device_owner in INTERFACES:
            remove_interface(cloud, port.device_id, {"port_id": port.id})
        else:
            headers = {"If-Match": f"revision_number={port.revision_number}"}
            cloud.network.delete(f"/ports/{port.id}", headers=headers)
    for subnet in use.subnets:
        headers = {"If-Match": f"revision_number={subnet.revision_number}"}
        cloud.network.delete(f"/subnets/{subnet.id}", headers=headers)


def remove_interface(cloud: Cloud, router_id: str, interface: Raw) -> None:
    """Remove an interface of a router, given as ``{"port_id": ...}`` or ``{"subnet_id": ...}``.

    One that is no longer there counts as removed: deletions of its network and of its router run in parallel.
    """
    with contextlib.suppress(NotFound):
        cloud.network.put(f"/routers/{router_id}/remove_router_interface", interface, once=True)


def _staying(ports: Iterable[PortRecord], going: frozenset[str]) -> Iterator[PortRecord]:
    for port in ports:
        if port.device_owner not in AUTOMATIC and not {port.id, bare_device(port.device_id)} & going:
            yield port


def _in_subnet(run: CloudRun, subnet: SubnetRecord) -> list[PortRecord]:
    ports = queries.ports_on(run, subnet.network_id)
    return [port for port in ports if any(fixed_ip.subnet_id == subnet.id for fixed_ip in port.fixed_ips)]


def interfaces_of(run: CloudRun, router_id: str, end: str = "") -> frozenset[str]:
    """Return the subnets in which a router has an interface; an administrator may add one with a port of others.

    ``end`` is the id of the port or of a subnet of one interface; default: all of them.
    """
    chosen = (port for port in _interfaces(run, router_id) if end in ("", port.id, *port.subnet_ids))
    return frozenset(each.subnet_id for port in chosen for each in port.fixed_ips)


def _interfaces(run: CloudRun, router_id: str) -> list[PortRecord]:
    return [port for port in _ports_of_device(run, router_id) if port.device_owner in INTERFACES]


def attachment_id(floating_ip_id: str, port_id: str | None) -> str:
    """Return what identifies the attachment of a floating IP among what a plan deletes."""
    return f"{floating_ip_id}/{port_id}"


def stays_attached(record: FloatingIPRecord, going: frozenset[str]) -> bool:
    """Whether neither a floating IP nor its attachment is deleted with the rest."""
    return going.isdisjoint({record.id, attachment_id(record.id, record.port_id)})


def _in_group(run: CloudRun, group: GroupRecord) -> list[PortRecord]:
    return [port for port in ports_of(run, group.project_id) if group.id in port.security_groups]


def _of_ports(run: CloudRun, within: NeutronRecord, ports: Sequence[PortRecord]) -> Use:
    left = [port for port in ports if port.device_owner not in AUTOMATIC]
    own = [port for port in left if _is_ours(run, within, port)]
    return Use(tuple(port_text(port) for port in left if port not in own), tuple(own))


def _is_ours(run: CloudRun, within: NeutronRecord, port: PortRecord) -> bool:
    if port.device_owner in INTERFACES:
        routers = queries.records_in(run, RouterRecord, within.project_id)
        return any(
            router.id == port.device_id and run.ownership.manages(router.name, router.description) for router in routers
        )
    return run.ownership.owns(port.description) and not use_of(port)


def port_text(port: PortRecord) -> str:
    """Return a port with what it belongs to, as messages name it."""
    owner = f" ({port.device_owner} {port.device_id})" if port.device_id else ""
    return f"{shown(port)}{owner}"


@query
def _subnets_on(run: CloudRun, network_id: str) -> Sequence[SubnetRecord]:
    return list_records(run.admin.network, SubnetRecord, network_id=network_id)


@query
def _ports_of_device(run: CloudRun, device_id: str) -> Sequence[PortRecord]:
    return list_records(run.admin.network, PortRecord, device_id=device_id)
