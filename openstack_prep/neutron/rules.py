"""What security group rules and address pairs let through.

Source: Networking API v2.0, "Security group rules" and "Address groups".  Groups only add to one another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from openstack_prep.base.ranges import Ip, Range
from openstack_prep.resources.addresses.address_pairs import DISTRIBUTED
from openstack_prep.resources.lists.neutron_records import (
    AddressPair,
    GroupRecord,
    PortRecord,
    RuleRecord,
    SubnetRecord,
)
from openstack_prep.resources.network.security_group_rule import is_about

# A subnet's allocation pools, as addresses and as options of ``openstack subnet set``.


def pools(subnet: SubnetRecord) -> list[Range]:
    return list(map(Range.read, subnet.allocation_pools))


def pools_beside(subnet: SubnetRecord, kept_out: Iterable[Ip]) -> tuple[int, list[str]]:
    """Return the client's options that add all free ranges to a subnet's allocation pools, and how many addresses.

    The gateway, the addresses to keep out, and network and broadcast address of IPv4 are no part of them.
    """
    block = subnet.block
    first, last = int(block.network_address) + 1, int(block.broadcast_address) - (block.version == 4)
    gateway = [subnet.gateway] if subnet.gateway else []
    apart = {int(each) for each in [*gateway, *kept_out] if each.version == block.version}
    taken = sorted([*((int(pool.first), int(pool.last)) for pool in pools(subnet)), *((each, each) for each in apart)])
    count, words, start = 0, [], first
    for low, high in [*taken, (last + 1, last + 1)]:
        if start < low:
            address = type(block.network_address)
            words += ["--allocation-pool", f"start={address(start)},end={address(low - 1)}"]
            count += low - start
        start = max(start, high + 1)
    return count, words


def pools_without(subnet: SubnetRecord, kept_out: Iterable[Ip]) -> list[str]:
    """Return the options of the client that exclude addresses from a subnet's allocation pools."""
    words = ["--no-allocation-pool"]
    for pool in pools(subnet):
        start, end, address = int(pool.first), int(pool.last), type(pool.first)
        inside = sorted({int(each) for each in kept_out if each.version == pool.version and start <= int(each) <= end})
        for before, after in zip([start - 1, *inside], [*inside, end + 1], strict=True):
            if before + 1 < after:
                words += ["--allocation-pool", f"start={address(before + 1)},end={address(after - 1)}"]
    return words


# What OVN needs beyond Neutron's own rules: the address of a port without a machine, such as a virtual one.
#
# OVN answers for such an address itself, with that port's MAC address, unless another port's allowed address pairs have
# exactly this address; a pair with a network around it is not enough.  OVN compares the address alone, so a pair with
# any MAC address counts.  Then it sends what is for the address to the machine that announces it: to the last of the
# MAC addresses in the pairs of that machine's port, and does not notice a machine that announces the address without a
# pair, which a port without port security cannot have.  If the port without a machine is disabled, as those of address
# pools are, OVN's router learns the MAC address as of any other machine.
#
# Source: Neutron contributor documentation, "Virtual IPs" of OVN, and neutron/common/ovn/utils.py,
# get_virtual_port_parents; ovn_client.py (_get_allowed_addresses_from_port); OVN 23.03, northd.c,
# build_lswitch_arp_nd_responder_known_ips and build_arp_resolve_flows_for_lsp; cloudandheat/ch-k8s-lbaas#53; Red Hat's
# networking guide on allowed address pairs.  Seen with packets and in OVN's flows (tests/packets).

DHCP = "network:dhcp"
AGENTS = ("dhcp", "reserved_dhcp_port")
"""How devices of DHCP agents begin."""
WHY = "OVN answers for the address of an unattached port itself, unless another port's allowed address pairs have it"
DIVERTED = "OVN sends what is for the address to that MAC address"
UNNOTICED = "with OVN, an address that moves to a port without a pair for it is still sent to the machine that had it"


def runs_ovn(ports: Sequence[PortRecord]) -> bool | None:
    """Return whether OVN runs a network, by Neutron's own ports there; None if they do not show it.

    Only administrators see agents and the bindings of ports.  Up to Ussuri OVN's own port is also one of DHCP,
    but its device is not a DHCP agent's.
    """
    agents = [port.device_id.startswith(AGENTS) for port in ports if port.device_owner == DHCP]
    if any(port.device_owner == DISTRIBUTED for port in ports) or not all(agents):
        return True
    return False if agents else None


def networks_around(address: str, ports: Sequence[PortRecord]) -> list[str] | None:
    """Return the pairs of these ports with networks around an address, sorted; None if a pair has exactly it."""
    pairs = {pair.ip_address for port in ports for pair in port.allowed_address_pairs}
    around = sorted(pair for pair in pairs if ipaddress.ip_address(address) in ipaddress.ip_network(pair))
    return None if any(ipaddress.ip_network(each).num_addresses == 1 for each in around) else around


def only_around(address: str, ports: Sequence[PortRecord]) -> list[str] | None:
    """Return the networks as whose part alone pairs allow an address, for which OVN then answers; None if it does not.

    ``ports`` are all of a network.
    """
    reserving = [port for port in ports if _reserves(port, address)]
    return networks_around(address, ports) if reserving and runs_ovn(ports) else None


def diverted(address: str, ports: Sequence[PortRecord], on_network: Sequence[PortRecord]) -> list[PortRecord]:
    """Return those of some ports whose machines do not get what is for an address; ``on_network`` are all ports."""
    reserving = [port for port in on_network if _reserves(port, address) and port.admin_state_up is not False]
    return [port for port in ports if diverting(port, address)] if reserving and runs_ovn(on_network) else []


def unnoticed(address: str, ports: Sequence[PortRecord], on_network: Sequence[PortRecord]) -> list[PortRecord]:
    """Return those of some ports without port security to which an address cannot move.

    ``on_network`` are all ports.
    """
    reserving = any(_reserves(port, address) and port.admin_state_up is not False for port in on_network)
    if not reserving or not runs_ovn(on_network) or networks_around(address, on_network) is not None:
        return []
    return [port for port in ports if not port.port_security_enabled]


def _reserves(port: PortRecord, address: str) -> bool:
    return not port.device_id and ipaddress.ip_address(address) in port.addresses


EVERYWHERE: dict[int, Block] = {4: ipaddress.ip_network("0.0.0.0/0"), 6: ipaddress.ip_network("::/0")}


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """One kind of packets."""

    direction: str
    """ingress or egress."""
    version: int
    """4 or 6."""
    protocol: str
    number: int | None = None
    """The destination port, or the type of an ICMP message; None: all of the protocol."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The remote ends from which, or to which, rules let traffic through."""

    networks: tuple[Block, ...]
    """Networks, none within another."""
    groups: frozenset[str] = frozenset()
    """Ids of security groups whose ports may be the remote end; nobody outside of the cloud is in one."""
    address_groups: tuple[str, ...] = ()
    """Ids of address groups that the rules name and that the caller did not resolve."""

    @cached_property
    def everywhere(self) -> bool:
        return any(network.prefixlen == 0 for network in self.networks)

    def includes(self, remote: Block) -> bool:
        return any(covers(network, remote) for network in self.networks)


def admission(
    rules: Iterable[RuleRecord], traffic: Traffic, address_groups: Mapping[str, Iterable[str]] | None = None
) -> Admission:
    """Return the remote ends that rules admit; ``address_groups`` are the addresses of those that are known, by id."""
    known = address_groups or {}
    networks: list[Any] = []
    groups, unknown = set[str](), list[str]()
    for rule in rules:
        if not is_about(rule, traffic.direction, traffic.version, traffic.protocol, traffic.number):
            continue
        if rule.remote_group_id:
            groups.add(rule.remote_group_id)
        elif not rule.remote_address_group_id:
            prefix = rule.remote_ip_prefix
            networks.append(ipaddress.ip_network(prefix, strict=False) if prefix else EVERYWHERE[traffic.version])
        elif rule.remote_address_group_id in known:
            listed = (ipaddress.ip_network(each, strict=False) for each in known[rule.remote_address_group_id])
            networks += [each for each in listed if each.version == traffic.version]
        else:
            unknown.append(rule.remote_address_group_id)
    return Admission(
        networks=tuple(ipaddress.collapse_addresses(networks)),
        groups=frozenset(groups),
        address_groups=tuple(dict.fromkeys(unknown)),
    )


CLIENT_PORT = 49152
"""A port that clients connect from: the first dynamic one (RFC 6335, section 6)."""


def answered(groups: Iterable[GroupRecord], traffic: Traffic) -> Admission:
    """Return the remote ends whose requests groups let in, and whose answers they let out.

    A stateless group keeps no connections: the answer needs a rule of its own, in any of the port's groups. Source:
    Networking API v2.0, "Security groups" (stateful); Neutron 29.0.0, common/ovn/acl.py (allow-stateless); seen with
    OVN 23.03.
    """
    listed = tuple(groups)
    every = [rule for group in listed for rule in group.security_group_rules]
    if all(group.stateful is not False for group in listed):
        return admission(every, traffic)
    stateful = (group for group in listed if group.stateful is not False)
    kept = admission((rule for group in stateful for rule in group.security_group_rules), traffic)
    inward = admission(every, traffic)
    outward = admission(every, replace(traffic, direction="egress", number=CLIENT_PORT))
    both: list[Any] = [
        one if covers(other, one) else other
        for one in inward.networks
        for other in outward.networks
        if covers(other, one) or covers(one, other)
    ]
    return Admission(
        networks=tuple(ipaddress.collapse_addresses([*kept.networks, *both])),
        groups=kept.groups | (inward.groups & outward.groups),
        address_groups=tuple(dict.fromkeys((*inward.address_groups, *outward.address_groups))),
    )


# --- which addresses a port may send from ---
#
# Source: Networking API v2.0, "Allowed address pairs".  A pair names an IP address or network and a MAC address, by
# default the port's own.  Port security drops a packet unless its IP address and its MAC address belong to one pair,
# so a pair with another MAC address allows nothing that the node sends with its own.  keepalived, MetalLB and Cilium
# all send with the node's own MAC address.


def allows(port: PortRecord, wanted: Block) -> bool:
    """Whether a port may send from every address of a network with its own MAC address."""
    return wanted in allowed_parts(port, wanted)


def diverting(port: PortRecord, address: str) -> list[AddressPair]:
    """Return the pairs with exactly an address and a MAC address that is not the port's."""
    wanted = ipaddress.ip_network(address)
    others = (pair for pair in port.allowed_address_pairs if pair.mac_address != port.mac_address)
    return [pair for pair in others if ipaddress.ip_network(pair.ip_address, strict=False) == wanted]


def without_diverting(port: PortRecord, address: str) -> list[str]:
    """Return the words of the client that leave a port its pairs, without those that divert an address."""
    gone = diverting(port, address)
    kept = (pair for pair in port.allowed_address_pairs if pair not in gone)
    pairs = [f"ip-address={pair.ip_address},mac-address={pair.mac_address}" for pair in kept]
    words = [word for pair in pairs for word in ("--allowed-address", pair)]
    return ["port", "set", "--no-allowed-address", *words, port.id]


def filtered_again(port: PortRecord, group: str | None, virtual: Iterable[str] = ()) -> list[str]:
    """Return the words of the client that enable port security with a group and pairs at once.

    Alone, it would cut the machine off. ``virtual`` are the addresses of the pairs.
    """
    groups = ["--security-group", group] if group else []
    pairs = [word for address in virtual for word in ("--allowed-address", f"ip-address={address}")]
    return ["port", "set", "--enable-port-security", *groups, *pairs, port.id]


def allowed_parts(port: PortRecord, wanted: Block) -> list[Block]:
    """Return the parts of a network from which a port may send with its own MAC address; perhaps the whole network."""
    if not port.port_security_enabled:
        return [wanted]
    pairs: list[Any] = [each for each in _allowed(port) if each.version == wanted.version and each.overlaps(wanted)]
    merged: list[Block] = list(ipaddress.collapse_addresses(pairs))
    return [wanted if covers(each, wanted) else each for each in merged]


def _allowed(port: PortRecord) -> Iterator[Block]:
    for address in port.addresses:
        yield ipaddress.ip_network(address)
    for pair in port.allowed_address_pairs:
        if pair.mac_address == port.mac_address:
            yield ipaddress.ip_network(pair.ip_address, strict=False)


# --- types of addresses and networks, and which network contains another one ---


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Block = ipaddress.IPv4Network | ipaddress.IPv6Network


def covers(outer: Block, inner: Block) -> bool:
    """Whether a network contains another one of the same IP version."""
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]
