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
from functools import partial
from ipaddress import ip_address, ip_network
from typing import TypeVar

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.ranges import Ip, Range
from openstack_prep.base.raw import Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.clusters import installer_names as naming
from openstack_prep.core.model import OwnershipTag
from openstack_prep.pictures.topology.elements import (
    Cluster,
    Interface,
    Server,
    Topology,
    TopologyFloatingIP,
    TopologyNetwork,
    TopologyPort,
    TopologyRouter,
    TopologySubnet,
    VirtualAddress,
    in_order,
    joined,
)
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FloatingIPRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
    list_by,
    list_by_id,
    list_records,
)
from openstack_prep.resources.lists.nova_records import ServerRecord, list_servers
from openstack_prep.resources.network import reserved_ports

T = TypeVar("T")
R = TypeVar("R", bound=NeutronRecord)
N = TypeVar("N", bound=NeutronRecord | ServerRecord)

# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Lists:
    """What was read."""

    project_id: str
    networks: Sequence[NetworkRecord]
    """Those of the project, and those that its ports, routers and floating IPs are on."""
    subnets: Sequence[SubnetRecord]
    """Those of these networks that are not external."""
    routers: Sequence[RouterRecord]
    ports: Sequence[PortRecord]
    floating_ips: Sequence[FloatingIPRecord]
    servers: Sequence[ServerRecord]
    unread: tuple[str, ...] = ()


def read(cloud: Cloud, project_id: str, *, jobs: int = 8) -> Lists:
    """Read a project; raises CloudError.  What these credentials may not list is named in ``unread``."""
    neutron = cloud.network
    of_another: Values = {} if project_id == cloud.project_id else {"all_tenants": True, "project_id": project_id}
    unread: list[str] = []

    def unless_denied(what: str, listing: Callable[[], list[T]]) -> list[T]:
        try:
            return listing()
        except NotAllowed:
            unread.append(what)
            return []

    with ThreadPoolExecutor(jobs) as pool:

        def start(kind: type[R]) -> Callable[[], list[R]]:
            listing = partial(list_records, neutron, kind, project_id=project_id)
            return pool.submit(unless_denied, kind.collection, listing).result

        networks, routers = start(NetworkRecord), start(RouterRecord)
        ports, floating = start(PortRecord), start(FloatingIPRecord)
        servers = pool.submit(unless_denied, "servers", partial(list_servers, cloud, **of_another)).result
        known = {network.id: network for network in networks()}
        used = {port.network_id for port in ports()} | {floating_ip.network_id for floating_ip in floating()}
        used |= {router.gateway_network_id for router in routers() if router.gateway_network_id}
        known |= list_by_id(neutron, NetworkRecord, used - known.keys())
        inner = [key for key, each in known.items() if not each.external]
        subnets = list_by(neutron, SubnetRecord, "network_id", inner)
        return Lists(
            project_id=project_id,
            networks=_by_name(known.values()),
            subnets=_by_name(subnets.values()),
            routers=_by_name(routers()),
            ports=_by_name(ports()),
            floating_ips=sorted(floating(), key=lambda each: each.address),
            servers=_by_name(servers()),
            unread=tuple(sorted(unread)),
        )


def _by_name(records: Iterable[N]) -> list[N]:
    return sorted(records, key=lambda each: (each.name, each.id))


# --- existing ---------------------------------------------------------------------------------


OPENSHIFT = "OpenShift"
OF_NEUTRON = ("network:",)
"""Ports of Neutron itself, such as those of DHCP; those of routers are drawn as routers."""


def topology_of(lists: Lists, subject: str) -> Topology:
    """Return the topology that the lists of a project show."""
    floating: dict[str, list[str]] = defaultdict(list)
    for floating_ip in lists.floating_ips:
        floating[floating_ip.port_id or ""].append(floating_ip.address)
    ends = _ends(lists, floating)
    servers = tuple(_server(server, ends.get(server.id, ())) for server in lists.servers)
    clusters = {
        server.cluster: Cluster(name=server.cluster, product=_product(lists, server.cluster)) for server in servers
    }
    clusters.pop("", None)
    virtual = tuple(_virtual_addresses(lists, floating, servers))
    names = {end.key: end.name for end in virtual} | _names_by_port(lists)
    return Topology(
        subject=subject,
        networks=tuple(_networks(lists)),
        routers=tuple(_router(router, lists) for router in lists.routers),
        servers=servers,
        virtual_addresses=virtual,
        floating_ips=tuple(_floating_ip(floating_ip, names) for floating_ip in lists.floating_ips),
        clusters=tuple(clusters[name] for name in sorted(clusters)),
        unread=lists.unread,
    )


def _networks(lists: Lists) -> Iterator[TopologyNetwork]:
    subnets = defaultdict(list)
    for subnet in lists.subnets:
        subnets[subnet.network_id].append(TopologySubnet(name=subnet.name, cidr=subnet.cidr))
    for network in lists.networks:
        yield TopologyNetwork(
            key=network.id,
            name=network.name or network.id,
            external=bool(network.external),
            foreign=network.project_id != lists.project_id,
            subnets=tuple(subnets[network.id]),
        )


def _router(record: RouterRecord, lists: Lists) -> TopologyRouter:
    outside, addresses = record.gateway_network_id, in_order(record.gateway_addresses)
    inner: dict[str, list[str]] = defaultdict(list)
    for port in lists.ports:
        if port.device_id == record.id and port.device_owner in INTERFACES:
            inner[port.network_id] += (fixed_ip.ip_address for fixed_ip in port.fixed_ips)
    return TopologyRouter(
        key=record.id,
        name=record.name or record.id,
        gateway=Interface(network=outside, addresses=addresses) if outside else None,
        interfaces=tuple(Interface(network=key, addresses=in_order(found)) for key, found in inner.items()),
    )


def _ends(lists: Lists, floating: Mapping[str, list[str]]) -> Mapping[str, list[tuple[PortRecord, TopologyPort]]]:
    """Return the ports of each server."""
    ends = defaultdict(list)
    for record in lists.ports:
        if record.device_id and not record.device_owner.startswith(OF_NEUTRON):
            ends[record.device_id].append((record, _port(record, floating)))
    return ends


def _port(record: PortRecord, floating: Mapping[str, list[str]]) -> TopologyPort:
    return TopologyPort(
        network=record.network_id,
        addresses=in_order(fixed_ip.ip_address for fixed_ip in record.fixed_ips),
        pairs=joined(
            allowed_address_pair.ip_address.removesuffix("/32") for allowed_address_pair in record.allowed_address_pairs
        ),
        floating_ips=in_order(floating.get(record.id, ())),
    )


def _server(record: ServerRecord, ends: Iterable[tuple[PortRecord, TopologyPort]]) -> Server:
    infra_id = next(filter(None, (_infra_id(port) for port, _ in ends)), "")
    role = naming.role(record.name, infra_id) if infra_id else None
    return Server(
        key=record.id,
        name=record.name or record.id,
        status=record.status,
        role=record.metadata.get("role") or role or "",
        cluster=infra_id or record.metadata.get("cluster") or "",
        ports=tuple(port for _, port in ends),
    )


def _infra_id(port: PortRecord) -> str:
    """Return the infraID of the OpenShift cluster that a port is tagged for; empty if there is none."""
    return next(naming.infra_ids(port.tags), "")


def _product(lists: Lists, cluster: str) -> str:
    return OPENSHIFT if any(_infra_id(port) == cluster for port in lists.ports) else ""


def _virtual_addresses(
    lists: Lists, floating: Mapping[str, list[str]], servers: Iterable[Server]
) -> Iterator[VirtualAddress]:
    """Yield the addresses of ports without a server; those of a pool together."""
    allowed = [
        (pair, server.cluster) for server in servers if server.cluster for port in server.ports for pair in port.pairs
    ]
    known = {server.id for server in lists.servers}
    others = [each for each in lists.ports if not each.device_owner.startswith((*OF_NEUTRON, "compute:"))]
    alone = [each for each in others if each.device_id not in known]
    pools: dict[tuple[str, str], list[PortRecord]] = defaultdict(list)
    for port in alone:
        pool = next((name for _, name in reserved_ports.by_pool([port])), "")
        pools[port.network_id, pool or port.id].append(port)
    for (network, pool), ports in pools.items():
        is_pool = pool != ports[0].id
        addresses = in_order(each.ip_address for port in ports for each in port.fixed_ips)
        owner = next((_infra_id(port) for port in ports if _infra_id(port)), "")
        yield VirtualAddress(
            key=f"pool/{pool}" if is_pool else pool,
            name=pool if is_pool else ports[0].name or pool,
            network=network,
            addresses=joined(addresses),
            floating_ips=in_order(each for port in ports for each in floating.get(port.id, ())),
            pool=is_pool,
            cluster=owner or cluster_of(addresses, allowed),
        )


def cluster_of(addresses: Iterable[str], allowed: Iterable[tuple[str, str]]) -> str:
    """Return the cluster whose nodes may use one of the addresses; empty if there is none, or more than one."""
    firsts = [ip_address(address.partition("-")[0].partition("/")[0]) for address in addresses]
    found = {cluster for pair, cluster in allowed if any(_within(each, pair) for each in firsts)}
    return found.pop() if len(found) == 1 else ""


def _within(address: Ip, pair: str) -> bool:
    return address in (Range.read(pair) if "-" in pair else Range.of(ip_network(pair, strict=False)))


def _names_by_port(lists: Lists) -> dict[str, str]:
    """Return by the id of a port the name of its server, or its own."""
    servers = {server.id: server.name or server.id for server in lists.servers}
    return {port.id: servers.get(port.device_id) or port.name or port.id for port in lists.ports}


def _floating_ip(record: FloatingIPRecord, names: Mapping[str, str]) -> TopologyFloatingIP:
    return TopologyFloatingIP(
        key=record.id,
        address=record.address,
        network=record.network_id,
        name=OwnershipTag.name_in(record.description) or "",
        target=names.get(record.port_id or "", ""),
    )
