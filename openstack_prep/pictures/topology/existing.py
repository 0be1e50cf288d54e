"""From the lists of a project to its topology: pure.

The shipped stack templates name cluster and role in the metadata of their servers; the OpenShift installer tags ports.
An address without a server belongs to the cluster whose nodes may use it.

Sources: Networking API v2.0; Compute API, "List Servers Detailed".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.ranges import Ip, Range
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.pictures.topology.model import (
    Cluster,
    FloatingIP,
    Interface,
    Network,
    Port,
    Router,
    Server,
    Subnet,
    Topology,
    VirtualAddress,
    in_order,
    joined,
)
from openstack_prep.resources.lists import installer_names as naming
from openstack_prep.resources.lists.by_id import list_by, list_by_id
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network import reserved_ports
from openstack_prep.resources.network.uses import INTERFACES

# --- reading ----------------------------------------------------------------------------------


Rows = Sequence[Raw]


@dataclass(frozen=True, kw_only=True)
class Lists:
    """What was read, as the API has it."""

    project_id: str
    networks: Rows
    """Those of the project, and those that its ports, routers and floating IPs are on."""
    subnets: Rows
    """Those of these networks that are not external."""
    routers: Rows
    ports: Rows
    floating_ips: Rows
    servers: Rows
    unread: tuple[str, ...] = ()


def read(cloud: Cloud, project_id: str, *, jobs: int = 8) -> Lists:
    """Read a project; raises CloudError.  What these credentials may not list is named in ``unread``."""
    neutron = cloud.network
    mine: Values = {"project_id": project_id}
    of_another: Values = {} if project_id == cloud.project_id else {"all_tenants": True, "project_id": project_id}
    unread: list[str] = []

    def unless_denied(what: str, listing: Callable[[], Rows]) -> Rows:
        try:
            return listing()
        except NotAllowed:
            unread.append(what)
            return ()

    with ThreadPoolExecutor(jobs) as pool:

        def start(path: str, plural: str) -> Callable[[], Rows]:
            return pool.submit(unless_denied, plural, lambda: neutron.list(f"/{path}", plural, **mine)).result

        networks, routers = start("networks", "networks"), start("routers", "routers")
        ports, floating = start("ports", "ports"), start("floatingips", "floatingips")
        servers = pool.submit(
            unless_denied, "servers", lambda: cloud.compute.list("/servers/detail", "servers", **of_another)
        ).result
        known = {each["id"]: each for each in networks()}
        used = {each["network_id"] for each in ports()} | {each["floating_network_id"] for each in floating()}
        used |= {gateway["network_id"] for each in routers() if (gateway := each.get("external_gateway_info"))}
        known |= list_by_id(neutron, "networks", used - known.keys())
        inner = [key for key, each in known.items() if not each.get("router:external")]
        subnets = list_by(neutron, "subnets", "network_id", inner)
        return Lists(
            project_id=project_id,
            networks=_by_name(known),
            subnets=_by_name(subnets),
            routers=_by_name(_by_id(routers())),
            ports=_by_name(_by_id(ports())),
            floating_ips=sorted(floating(), key=lambda each: str(each["floating_ip_address"])),
            servers=_by_name(_by_id(servers())),
            unread=tuple(sorted(unread)),
        )


def _by_id(rows: Iterable[Raw]) -> dict[str, Raw]:
    return {each["id"]: each for each in rows}


def _by_name(rows: Mapping[str, Raw]) -> list[Any]:
    return sorted(rows.values(), key=lambda each: (each["name"] or "", each["id"]))


# --- existing ---------------------------------------------------------------------------------


OPENSHIFT = "OpenShift"
OF_NEUTRON = ("network:",)
"""Ports of Neutron itself, such as those of DHCP; those of routers are drawn as routers."""


def topology_of(lists: Lists, subject: str) -> Topology:
    """Return the topology that the lists of a project show."""
    floating = defaultdict(list)
    for each in lists.floating_ips:
        floating[each["port_id"]].append(each["floating_ip_address"])
    ends = _ends(lists, floating)
    servers = tuple(_server(each, ends.get(each["id"], ())) for each in lists.servers)
    clusters = {each.cluster: Cluster(name=each.cluster, product=_product(lists, each.cluster)) for each in servers}
    clusters.pop("", None)
    virtual = tuple(_virtual_addresses(lists, floating, servers))
    names = {end.key: end.name for end in virtual} | _names_by_port(lists)
    return Topology(
        subject=subject,
        networks=tuple(_networks(lists)),
        routers=tuple(_router(each, lists) for each in lists.routers),
        servers=servers,
        virtual_addresses=virtual,
        floating_ips=tuple(_floating_ip(each, names) for each in lists.floating_ips),
        clusters=tuple(clusters[name] for name in sorted(clusters)),
        unread=lists.unread,
    )


def _networks(lists: Lists) -> Iterator[Network]:
    subnets = defaultdict(list)
    for each in lists.subnets:
        subnets[each["network_id"]].append(Subnet(name=each["name"] or "", cidr=each["cidr"]))
    for each in lists.networks:
        yield Network(
            key=each["id"],
            name=each["name"] or each["id"],
            external=bool(each.get("router:external")),
            foreign=each.get("project_id") != lists.project_id,
            subnets=tuple(subnets[each["id"]]),
        )


def _router(raw: Raw, lists: Lists) -> Router:
    gateway = raw.get("external_gateway_info") or {}
    outside = in_order(each["ip_address"] for each in gateway.get("external_fixed_ips") or ())
    inner: dict[str, list[str]] = defaultdict(list)
    for port in lists.ports:
        if port["device_id"] == raw["id"] and port["device_owner"] in INTERFACES:
            inner[port["network_id"]] += (each["ip_address"] for each in port["fixed_ips"])
    return Router(
        key=raw["id"],
        name=raw["name"] or raw["id"],
        gateway=Interface(network=gateway["network_id"], addresses=outside) if gateway else None,
        interfaces=tuple(Interface(network=key, addresses=in_order(found)) for key, found in inner.items()),
    )


def _ends(lists: Lists, floating: Mapping[str, list[str]]) -> Mapping[str, list[tuple[Raw, Port]]]:
    """Return the ports of each server."""
    ends = defaultdict(list)
    for raw in lists.ports:
        if raw["device_id"] and not raw["device_owner"].startswith(OF_NEUTRON):
            ends[raw["device_id"]].append((raw, _port(raw, floating)))
    return ends


def _port(raw: Raw, floating: Mapping[str, list[str]]) -> Port:
    record = PortRecord.read(raw)
    return Port(
        network=record.network_id,
        addresses=in_order(each.ip_address for each in record.fixed_ips),
        pairs=joined(each.ip_address.removesuffix("/32") for each in record.allowed_address_pairs),
        floating_ips=in_order(floating.get(record.id, ())),
    )


def _server(raw: Raw, ends: Iterable[tuple[Raw, Port]]) -> Server:
    metadata = raw.get("metadata") or {}
    infra_id = next(filter(None, (_infra_id(port) for port, _ in ends)), "")
    role = naming.role(raw["name"] or "", infra_id) if infra_id else None
    return Server(
        key=raw["id"],
        name=raw["name"] or raw["id"],
        status=raw.get("status") or "",
        role=str(metadata.get("role") or role or ""),
        cluster=str(infra_id or metadata.get("cluster") or ""),
        ports=tuple(port for _, port in ends),
    )


def _infra_id(port: Raw) -> str:
    """Return the infraID of the OpenShift cluster that a port is tagged for; empty if there is none."""
    prefix = f"{naming.TAG}="
    return next((tag.removeprefix(prefix) for tag in port.get("tags") or () if tag.startswith(prefix)), "")


def _product(lists: Lists, cluster: str) -> str:
    return OPENSHIFT if any(_infra_id(port) == cluster for port in lists.ports) else ""


def _virtual_addresses(
    lists: Lists, floating: Mapping[str, list[str]], servers: Iterable[Server]
) -> Iterator[VirtualAddress]:
    """Yield the addresses of ports without a server; those of a pool together."""
    allowed = [(pair, each.cluster) for each in servers if each.cluster for port in each.ports for pair in port.pairs]
    known = {each["id"] for each in lists.servers}
    others = [each for each in lists.ports if not each["device_owner"].startswith((*OF_NEUTRON, "compute:"))]
    alone = [each for each in others if each["device_id"] not in known]
    pools: dict[tuple[str, str], list[Raw]] = defaultdict(list)
    for raw in alone:
        pool = next((name for _, name in reserved_ports.by_pool([PortRecord.read(raw)])), "")
        pools[raw["network_id"], pool or raw["id"]].append(raw)
    for (network, pool), rows in pools.items():
        is_pool = pool != rows[0]["id"]
        addresses = in_order(each["ip_address"] for raw in rows for each in raw["fixed_ips"])
        owner = next((_infra_id(raw) for raw in rows if _infra_id(raw)), "")
        yield VirtualAddress(
            key=f"pool/{pool}" if is_pool else pool,
            name=pool if is_pool else rows[0]["name"] or pool,
            network=network,
            addresses=joined(addresses),
            floating_ips=in_order(each for raw in rows for each in floating.get(raw["id"], ())),
            pool=is_pool,
            cluster=owner or cluster_of(addresses, allowed),
        )


def cluster_of(addresses: Iterable[str], allowed: Iterable[tuple[str, str]]) -> str:
    """Return the cluster whose nodes may use one of the addresses; empty if there is none, or more than one."""
    firsts = [ip_address(each.partition("-")[0].partition("/")[0]) for each in addresses]
    found = {cluster for pair, cluster in allowed if any(_within(each, pair) for each in firsts)}
    return found.pop() if len(found) == 1 else ""


def _within(address: Ip, pair: str) -> bool:
    return address in (Range.read(pair) if "-" in pair else Range.of(ip_network(pair, strict=False)))


def _names_by_port(lists: Lists) -> dict[str, str]:
    """Return by the id of a port the name of its server, or its own."""
    servers = {each["id"]: each["name"] or each["id"] for each in lists.servers}
    return {each["id"]: servers.get(each["device_id"]) or each["name"] or each["id"] for each in lists.ports}


def _floating_ip(raw: Raw, names: Mapping[str, str]) -> FloatingIP:
    return FloatingIP(
        key=raw["id"],
        address=raw["floating_ip_address"],
        network=raw["floating_network_id"],
        name=OwnershipTag.name_in(raw.get("description")) or "",
        target=names.get(raw["port_id"] or "", ""),
    )
