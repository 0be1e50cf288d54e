"""Checks of a services machine: what BIND, HAProxy, KubeInit or the bridge script could not do.

``where`` of a mistake is the name of the field, such as ``masters.first_address``, or that of an exposure.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base.errors import Mistake
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.service_host.files import DNS, INSIDE, INSIDE_ONLY, MACHINE_CONFIG
from openstack_prep.exposures.service_host.settings import ClusterMachine, MachineGroup, ServiceHost, machines

GROUPS = ("masters", "workers", "bootstrap")


def mistakes(
    settings: ServiceHost, placed: Sequence[PlacedExposure], macs: Mapping[str, str] | None = None
) -> Iterator[Mistake]:
    """Yield all mistakes; addresses that are not reserved yet are not examined."""
    yield from _groups(settings)
    found = [] if list(_groups(settings)) else list(machines(settings, macs))
    yield from _addresses(settings, found)
    yield from _macs(settings, found, placed)
    yield from _views(settings)
    yield from _external(settings, placed)
    yield from _ports(placed)
    for exposure in placed:
        yield from _exposure(settings, exposure, {machine.name for machine in found})


def warnings(settings: ServiceHost) -> Iterator[str]:
    """Yield warnings about valid settings."""
    if settings.kubeinit:
        yield "kubeinit: KubeInit 2.0.0 and later ignore these variables; use 1.0.2 or earlier"


# --- machines -----------------------------------------------------------------------------


def _groups(settings: ServiceHost) -> Iterator[Mistake]:
    network = ipaddress.ip_network(settings.network)
    for field in GROUPS:
        group: MachineGroup | None = getattr(settings, field)
        if group is None:
            continue
        if group.macs and len(group.macs) != group.count:
            what = f"{len(group.macs)} MAC addresses for {group.count} machines"
            yield Mistake(f"{field}.macs", what, "list one per machine, or none")
        first = ipaddress.ip_address(group.first_address)
        last = int(first) + group.count - 1
        if first not in network or last > int(network[-1]):
            what = f"{group.count} addresses from {first} are not all in {network}"
            yield Mistake(f"{field}.first_address", what, "choose another one, or correct network")
    if ipaddress.ip_address(settings.address) not in network:
        yield Mistake("address", f"{settings.address} is not in {network}", "choose another one, or correct network")


def _addresses(settings: ServiceHost, found: Sequence[ClusterMachine]) -> Iterator[Mistake]:
    network = ipaddress.ip_network(settings.network)
    ends = {str(network[0]), *([str(network[-1])] if network.version == 4 else [])}
    for address, count in Counter(machine.address for machine in found).items():
        names = ", ".join(machine.name for machine in found if machine.address == address)
        if count > 1:
            yield Mistake(
                _place(address, settings, found), f"{address} belongs to {names}", "give each its own address"
            )
        if address in ends and network.num_addresses > 2:
            what = f"{address} of {names} is the network or broadcast address of {network}"
            yield Mistake(_place(address, settings, found), what, "choose addresses between them")


def _place(address: str, settings: ServiceHost, found: Sequence[ClusterMachine]) -> str:
    role = [machine.role for machine in found if machine.address == address][-1]
    fields = {"master": "masters.first_address", "worker": "workers.first_address", "service": "address"}
    return fields.get(role, "bootstrap.first_address")


def _macs(
    settings: ServiceHost, found: Sequence[ClusterMachine], placed: Sequence[PlacedExposure]
) -> Iterator[Mistake]:
    owners: dict[str, list[str]] = {}
    for machine in found:
        if machine.mac:
            owners.setdefault(machine.mac, []).append(machine.name)
            if int(machine.mac[:2], 16) & 1:
                yield Mistake(
                    _of(machine, "mac"), f"{machine.mac} is a multicast address", "use one that begins with 52:54:00"
                )
    for mac in {exposure.mac for exposure in placed if exposure.mac}:
        owners.setdefault(mac, []).append(f"the interface {settings.external.device}")
    for mac, names in owners.items():
        if len(names) > 1:
            yield Mistake("mac", f"{mac} belongs to {', '.join(names)}", "give each interface its own MAC address")


def _of(machine: ClusterMachine, field: str) -> str:
    return (
        field
        if machine.role == "service"
        else f"{'bootstrap' if machine.role == 'bootstrap' else machine.role + 's'}.{field}s"
    )


# --- networks -----------------------------------------------------------------------------


def _views(settings: ServiceHost) -> Iterator[Mistake]:
    for index, network in enumerate(settings.inside):
        if ipaddress.ip_network(network).prefixlen == 0:
            what = f"{network} contains all clients: nobody would be outside, and BIND would answer for everybody"
            yield Mistake(f"inside[{index}]", what, "list the networks of your own clients")


def _external(settings: ServiceHost, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    external, inner = settings.external, ipaddress.ip_network(settings.network)
    if external.bridge == external.nic:
        yield Mistake("external.bridge", f"{external.bridge} is also the name of nic", "choose another name")
    addresses = list(dict.fromkeys(exposure.address for exposure in placed if exposure.address))
    for address in addresses:
        yield from _in_network(settings, address)
        if ipaddress.ip_address(address) in inner:
            what = f"{address} is in {inner}, the network of the cluster's machines"
            yield Mistake("network", what, "use an address of the network outside")
    if settings.kubeinit and len(addresses) > 1:
        what = f"KubeInit configures one external address, not {', '.join(addresses)}"
        yield Mistake("kubeinit", what, "give all exposures of this cluster the same address")
    if settings.kubeinit and any(":" in each for each in (*addresses, settings.network)):
        yield Mistake("kubeinit", "KubeInit supports IPv4 alone", "use IPv4 addresses, or remove kubeinit")


def _in_network(settings: ServiceHost, address: str) -> Iterator[Mistake]:
    external = settings.external
    gateway, own = ipaddress.ip_address(external.gateway), ipaddress.ip_address(address)
    if external.prefix_length > own.max_prefixlen:
        what = f"{external.prefix_length} is too long for {address}"
        yield Mistake("external.prefix_length", what, f"use at most {own.max_prefixlen - 1}")
        return
    network = ipaddress.ip_network(f"{address}/{external.prefix_length}", strict=False)
    if gateway not in network:
        what = f"{gateway} is not in {network}, the network of {address}"
        yield Mistake("external.gateway", what, "correct gateway or prefix_length")
    elif gateway == own:
        yield Mistake("external.gateway", f"{gateway} is the address of an exposure", "use the address of the router")


# --- exposures ----------------------------------------------------------------------------


def _ports(placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    """Yield ports that lead to different ones of the machines: clients inside reach all at one address."""
    targets = {port: port for port in INSIDE}
    for exposure in placed:
        for index, port in enumerate(exposure.exposure.ports):
            inner = port.node_port or port.inner
            if targets.setdefault(port.port, inner) != inner and port.port != DNS:
                what = f"port {port.port} leads to {inner} outside, and to {targets[port.port]} for clients inside"
                yield Mistake(f"exposures.{exposure.exposure.name}.ports[{index}]", what, "choose another port")


def _exposure(settings: ServiceHost, placed: PlacedExposure, taken: set[str]) -> Iterator[Mistake]:
    exposure = placed.exposure
    for index, port in enumerate(exposure.ports):
        where = f"exposures.{exposure.name}.ports[{index}]"
        if MACHINE_CONFIG in (port.port, port.inner):
            what = f"{MACHINE_CONFIG} serves the nodes' configuration with their secrets"
            yield Mistake(where, what, "remove it; machines inside reach it anyway")
        elif port.port == DNS:
            continue  # BIND answers there itself
        elif port.protocol != "tcp":
            yield Mistake(where, f"HAProxy does not forward {port.protocol}", "use tcp, or another kind of exposure")
    for index, name in enumerate(exposure.names):
        label = name.removesuffix(f".{settings.domain}")
        where = f"exposures.{exposure.name}.names[{index}]"
        if label != name and (label in INSIDE_ONLY or label in taken):
            yield Mistake(where, f"{name} is a name for clients inside", "choose another name")
