"""What security group rules let through.

Source: Networking API v2.0, "Security group rules" and "Address groups".  Groups only add to one another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from openstack_prep.neutron.addresses import Block, covers
from openstack_prep.resources.lists.neutron_records import RuleRecord
from openstack_prep.resources.network.security_group_rule import is_about

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
        return any(each.prefixlen == 0 for each in self.networks)

    def includes(self, remote: Block) -> bool:
        return any(covers(each, remote) for each in self.networks)


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
