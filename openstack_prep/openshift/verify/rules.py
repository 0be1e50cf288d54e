"""What security group rules let in: pure.

Source: Networking API v2.0, "Security group rules"; groups only add to one another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from openstack_prep.base.raw import Raw
from openstack_prep.resources.lists.neutron_records import RuleRecord
from openstack_prep.resources.network.security_group_rule import is_about

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

EVERYWHERE: dict[int, Network] = {4: ipaddress.ip_network("0.0.0.0/0"), 6: ipaddress.ip_network("::/0")}


@dataclass(frozen=True)
class Admission:
    """From where a TCP port is reached."""

    sources: tuple[Network, ...]
    """Networks, none within another."""
    address_groups: tuple[str, ...] = ()
    """Ids of address groups whose addresses, which are not looked up, come in as well."""

    @cached_property
    def everywhere(self) -> bool:
        return any(each.prefixlen == 0 for each in self.sources)

    def includes(self, source: Network) -> bool:
        return any(source.version == each.version and _within(source, each) for each in self.sources)


def admission(rules: Iterable[Raw], port: int, version: int) -> Admission:
    """Return from where rules let IPv4 or IPv6 in to a TCP port.

    A rule with a remote group lets in ports of this cloud, and so nobody from outside.
    """
    ours = [rule for rule in map(RuleRecord.read, rules) if is_about(rule, "ingress", version, "tcp", port)]
    groups = [rule.remote_address_group_id for rule in ours if rule.remote_address_group_id]
    plain = [rule for rule in ours if not rule.remote_group_id and not rule.remote_address_group_id]
    sources: list[Any] = [
        ipaddress.ip_network(rule.remote_ip_prefix, strict=False) if rule.remote_ip_prefix else EVERYWHERE[version]
        for rule in plain
    ]
    return Admission(tuple(ipaddress.collapse_addresses(sources)), tuple(dict.fromkeys(groups)))


def _within(inner: Network, outer: Network) -> bool:
    return inner.subnet_of(outer)  # type: ignore[arg-type]  # of one version, as asked before
