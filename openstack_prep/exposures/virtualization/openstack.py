"""What the nodes' ports need when the nodes are servers of OpenStack, and what cannot work there: pure functions.

A virtual machine on a bridge sends with its own MAC address, and may run on every node with the bridge.

Sources: Networking API v2.0, "Allowed address pairs", "Trunk networking"; Neutron 29.0.0, plugins/ml2/drivers/ovn
/mech_driver/ovsdb/ovn_client.py (_get_allowed_addresses_from_port: the MAC address of a pair becomes an address of the
port) and common/ovn/utils.py (get_virtual_port_parents); OVN 23.03, northd.c (one flow per MAC address in
ls_in_l2_lkup). Seen with OVN's own programs: of two ports with the MAC address only one gets its frames.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.virtualization.manifests import Attachment, attachments
from openstack_prep.exposures.virtualization.settings import Virtualization
from openstack_prep.neutron.rules import runs_ovn
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import (
    AddressPair,
    NetworkRecord,
    PortRecord,
    SubnetRecord,
    TrunkRecord,
)

RESERVE_MAC = "reserve another MAC address for the exposure"


@dataclass(frozen=True, kw_only=True)
class VisibleNodes:
    """The servers with the bridge, and what these credentials see of their networks in Neutron."""

    cloud: str
    """Entry of clouds.yaml for the commands in ``fix``."""
    apply: str = "openstack-prep apply"
    """Command that adds pairs."""
    declared: Collection[str] = ()
    """Exposures for which the spec declares address pairs itself, perhaps on one node alone."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """Names for the servers, by id: their own, or those of their ports."""
    networks: Sequence[NetworkRecord] = ()
    """Networks."""
    subnets: Sequence[SubnetRecord] = ()
    """Subnets of these networks."""
    ports: Sequence[PortRecord] = ()
    """All visible ports on these networks, and those of the servers."""
    trunks: Sequence[TrunkRecord] | None = ()
    """Trunks, with port_id and sub_ports; None: Neutron has no trunks."""

    def network(self, name: str) -> NetworkRecord | None:
        """Return the only network of a name or id."""
        found = [each for each in self.networks if name in (each.name, each.id)]
        return found[0] if len(found) == 1 else None

    def openstack(self, *words: str) -> str:
        """Return a line for the shell: the client's command, with the entry of clouds.yaml in use."""
        return shell.join(["openstack", "--os-cloud", self.cloud, *words])

    def on(self, network: NetworkRecord) -> list[PortRecord]:
        """Return the visible ports on a network."""
        return [port for port in self.ports if port.network_id == network.id]

    def node_ports(self, network: NetworkRecord, vlan: int | None) -> dict[str, PortRecord]:
        """Return by server the port that its frames of a network pass: its own, or with a VLAN that of its trunk."""
        if vlan is None:
            return {port.device_id: port for port in self.on(network) if port.device_id in self.servers}
        owners = {port.id: port.device_id for port in self.ports if port.device_id in self.servers}
        here = {port.id: port for port in self.on(network)}
        return {
            owners[trunk.port_id]: here[sub.port_id]
            for trunk in self.trunks or ()
            for sub in trunk.sub_ports
            if sub.vlan == vlan and sub.port_id in here and trunk.port_id in owners
        }


@dataclass(frozen=True)
class Path:
    """The interface of a virtual machine, and the ports in OpenStack that its frames may pass."""

    attached: Attachment
    visible: VisibleNodes
    network: NetworkRecord
    vlan: int | None
    ports: Mapping[str, PortRecord]

    @property
    def name(self) -> str:
        return self.attached.placed.exposure.name

    @property
    def address(self) -> str:
        return self.attached.placed.address or ""

    @property
    def mac(self) -> str:
        return self.attached.placed.mac or ""

    @property
    def filtered(self) -> list[PortRecord]:
        """The ports with port security."""
        return [each for each in self.ports.values() if each.port_security_enabled]

    @property
    def wanting(self) -> list[PortRecord]:
        """The ports that need the pair: all with port security, unless the spec's own address pairs say which."""
        if self.name not in self.visible.declared:
            return self.filtered
        return [each for each in self.filtered if self.has_pair(each)] or self.filtered

    def has_pair(self, port: PortRecord) -> bool:
        """Whether a port may send from the machine's address with its MAC address."""
        return any(pair.mac_address == self.mac and self._covers(pair) for pair in port.allowed_address_pairs)

    def has_other_pair(self, port: PortRecord) -> bool:
        """Whether a port may send from the machine's address with another MAC address only."""
        return not self.has_pair(port) and any(map(self._covers, port.allowed_address_pairs))

    def _covers(self, pair: AddressPair) -> bool:
        return ipaddress.ip_address(self.address) in ipaddress.ip_network(pair.ip_address, strict=False)


def diagnose(settings: Virtualization, placed: Sequence[PlacedExposure], visible: VisibleNodes) -> Iterator[Diagnostic]:
    """Yield what keeps frames of virtual machines from passing OpenStack, with fixes; nothing if all is well."""
    for attachment in attachments(settings, placed):
        name = attachment.network.openstack_network
        network = visible.network(name) if name else None
        if network is None:
            yield _unknown_network(attachment)
            continue
        bridge = settings.bridge(attachment.network.bridge)
        vlan = attachment.network.vlan or (bridge.vlan if bridge else None)
        path = Path(attachment, visible, network, vlan, visible.node_ports(network, vlan))
        for check in CHECKS:
            yield from check(path)


def _unknown_network(attached: Attachment) -> Diagnostic:
    network = attached.network
    what = f"network {network.openstack_network} of {network.name} does not exist, or its name is not unique"
    return documented(
        code="bridge.network-unknown",
        status=DiagnosticStatus.ERROR if network.openstack_network else DiagnosticStatus.UNKNOWN,
        where=attached.placed.exposure.name,
        what=what if network.openstack_network else f"the network in OpenStack of {network.name} is not declared",
        fix=f"set openstack_network of network {network.name} to the name or id of a network",
    )


def _in_subnet(path: Path) -> Iterator[Diagnostic]:
    cidrs = [subnet.cidr for subnet in path.visible.subnets if subnet.network_id == path.network.id]
    address = ipaddress.ip_address(path.address)
    if cidrs and not any(address in ipaddress.ip_network(cidr) for cidr in cidrs):
        yield documented(
            code="bridge.outside-subnet",
            where=path.name,
            what=f"{address} is in no subnet of {path.network.name}: {', '.join(sorted(cidrs))}",
            fix=f"choose an address of {path.network.name}, or correct cidr of {path.attached.network.name}",
        )


def _on_each_node(path: Path) -> Iterator[Diagnostic]:
    """Yield nodes without a port on the network, or without a subport for tagged frames."""
    missing = {name: each for each, name in path.visible.servers.items() if each not in path.ports}
    if not missing:
        return
    names = ", ".join(sorted(missing))
    if path.vlan is None:
        yield Diagnostic(
            code="bridge.no-port",
            where=path.name,
            what=f"{names} have no port on {path.network.name}",
            why="the bridge has no interface there, and a virtual machine on these nodes is not reached",
            fix=" && ".join(command for name in sorted(missing) for command in _add_port(path, name, missing[name])),
        )
        return
    if path.visible.trunks is None:
        yield documented(
            code="bridge.no-trunks",
            where=path.name,
            what=f"Neutron has no trunks, which VLAN {path.vlan} of {path.network.name} needs",
            why="Neutron drops tagged frames of a port that is not the parent of a trunk with this VLAN",
        )
        return
    yield Diagnostic(
        code="bridge.no-subport",
        where=path.name,
        what=f"{names} have no trunk with VLAN {path.vlan} of {path.network.name}",
        why="Neutron drops tagged frames of a port that is not the parent of a trunk with this VLAN",
        fix=_add_subports(path, missing),
    )


def _add_port(path: Path, name: str, server_id: str) -> list[str]:
    port = f"{name}-{path.network.name}"
    return [
        path.visible.openstack("port", "create", "--network", path.network.id, port),
        path.visible.openstack("server", "add", "port", server_id, port),
    ]


def _add_subports(path: Path, missing: Mapping[str, str]) -> str:
    """Return the commands that add subports to the trunks of servers, and which servers have no trunk.

    Which of several trunks of one server the bridge uses is not visible.
    """
    commands, without = [], []
    for name in sorted(missing):
        parents = {each.id for each in path.visible.ports if each.device_id == missing[name]}
        trunks = [trunk.id for trunk in path.visible.trunks or () if trunk.port_id in parents]
        if not trunks:
            without.append(name)
            continue
        port = f"{name}-vlan{path.vlan}"
        subport = f"port={port},segmentation-type=vlan,segmentation-id={path.vlan}"
        commands += [
            path.visible.openstack("port", "create", "--network", path.network.id, port),
            path.visible.openstack("network", "trunk", "set", "--subport", subport, trunks[0]),
        ]
    lacking = f"re-create {', '.join(without)}, with a port that is the parent of a trunk"
    if not commands:
        return lacking
    return " && ".join(commands) + (f"  # and {lacking}" if without else "")


def _with_pairs(path: Path) -> Iterator[Diagnostic]:
    missing = [port for port in path.wanting if not path.has_pair(port)]
    if not missing:
        return
    others = [port for port in missing if path.has_other_pair(port)]
    names = ", ".join(sorted(port.name or port.id for port in missing))
    what = f"no pair of {path.address} with {path.mac} on {names}"
    if others:
        what += f"; pairs with another MAC address allow nothing that the virtual machine sends ({len(others)} ports)"
    fix = path.visible.apply
    if runs_ovn(path.visible.on(path.network)):
        # neutron 29.0.0, common/ovn/utils.py, validate_port_allowed_address_pairs_vrrp_mac
        fix = f"{_unfiltered(path, missing)}  # for Neutron 29, which refuses such pairs with OVN; before: {fix}"
    yield documented(code="bridge.pair-missing", where=path.name, what=what, fix=fix)


def _unfiltered(path: Path, ports: Sequence[PortRecord]) -> str:
    """Return the commands that disable port security on ports."""
    off = ("port", "set", "--no-security-group", "--no-allowed-address", "--disable-port-security")
    return " && ".join(path.visible.openstack(*off, each) for each in sorted(port.id for port in ports))


def _by_ovn(path: Path) -> Iterator[Diagnostic]:
    """Yield a MAC address that more than one port has: OVN sends its frames to one of them, wherever the machine is."""
    ovn = runs_ovn(path.visible.on(path.network))
    if ovn is False or len(path.wanting) < 2:
        return
    yield Diagnostic(
        code="bridge.ovn-one-port",
        status=DiagnosticStatus.ERROR if ovn else DiagnosticStatus.UNKNOWN,
        where=path.name,
        what=f"{len(path.wanting)} ports of {path.network.name} are to have {path.mac}"
        + ("" if ovn else ", and whether OVN runs the network is not visible"),
        why="OVN sends all frames for a MAC address to one port, even if the virtual machine runs on another node",
        fix=f"{_unfiltered(path, path.wanting)}  # without pairs; or let the virtual machine run on one node only, "
        "and select its port alone in nodes",
    )


def _not_reserved(path: Path) -> Iterator[Diagnostic]:
    """Yield ports in Neutron with the machine's MAC address or address, to which its frames would go."""
    mine = {each.id for each in path.ports.values()}
    for port in (each for each in path.visible.on(path.network) if each.id not in mine):
        name = port.name or port.id
        delete = path.visible.openstack("port", "delete", port.id)
        if port.mac_address == path.mac:
            yield documented(
                code="bridge.mac-in-use",
                where=path.name,
                what=f"port {name} has the MAC address {path.mac} itself",
                fix=RESERVE_MAC if _is_used(port) else f"{delete}  # if it only reserves; or {RESERVE_MAC}",
            )
        if ipaddress.ip_address(path.address) in port.addresses:
            yield from _reserved(path, port, name)


def _is_used(port: PortRecord) -> bool:
    return bool(port.device_id or port.device_owner.startswith(("compute:", "network:")))


def _reserved(path: Path, port: PortRecord, name: str) -> Iterator[Diagnostic]:
    if _is_used(port):
        yield documented(
            code="bridge.address-taken",
            where=path.name,
            what=f"{path.address} is the address of port {name} ({port.device_owner or port.device_id})",
        )
    elif runs_ovn(path.visible.on(path.network)) and not any(map(path.has_pair, path.filtered)):
        yield Diagnostic(
            code="bridge.reserved-by-port",
            where=path.name,
            what=f"port {name} reserves {path.address}, and no port of a node has a pair with it",
            why=f"OVN answers for the address with the MAC address of port {name}, and nobody reaches the machine",
            fix="choose an address outside of the allocation pools, without a port: reserve: outside of its pool",
        )


CHECKS: tuple[Callable[[Path], Iterator[Diagnostic]], ...] = (
    _in_subnet,
    _on_each_node,
    _with_pairs,
    _by_ovn,
    _not_reserved,
)
