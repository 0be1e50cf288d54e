"""One rule of a security group, in a form that is equal if Neutron considers two rules equal.

Source: Networking API v2.0, "Security group rules"; Neutron's ``_rule_to_key`` defines equality: no prefix equals any
prefix, the whole range of ports equals no range, and ICMP has the protocol number of its IP version.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from annotated_types import Ge, Le

from openstack_prep.base.fields import Cidr, Name, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Values
from openstack_prep.core.model import Coherent
from openstack_prep.resources.lists.neutron_records import RuleRecord

SELF = "self"

PROTOCOLS = {
    "hopopt": 0,
    "icmp": 1,
    "igmp": 2,
    "ipip": 4,
    "tcp": 6,
    "egp": 8,
    "udp": 17,
    "dccp": 33,
    "ipv6-encap": 41,
    "ipv6-route": 43,
    "ipv6-frag": 44,
    "rsvp": 46,
    "gre": 47,
    "esp": 50,
    "ah": 51,
    "ipv6-icmp": 58,
    "ipv6-nonxt": 59,
    "ipv6-opts": 60,
    "ospf": 89,
    "vrrp": 112,
    "pgm": 113,
    "sctp": 132,
    "udplite": 136,
}
ALIASES = {"icmpv6": "ipv6-icmp", "ip": "hopopt"}
WITH_PORTS = ("tcp", "udp", "dccp", "sctp", "udplite")
ICMP = ("icmp", "ipv6-icmp")
ANY = (None, "hopopt")
"""Names of "any protocol"; hopopt is number 0."""
ANYWHERE = ("0.0.0.0/0", "::/0")
ALL_PORTS = (1, 65535)


def protocol(value: object) -> object:
    """Read a protocol by name or number; return its name if it has one."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    word = str(value).lower()
    if word.isdigit():
        names = {number: name for name, number in PROTOCOLS.items()}
        if int(word) > 255:
            raise InvalidValue("is not an IP protocol", "numbers range from 0 to 255")
        return names.get(int(word), str(int(word)))
    word = ALIASES.get(word, word)
    if word not in (*PROTOCOLS, "any"):
        raise InvalidValue("is not an IP protocol", "use tcp, udp, icmp, any, or a number")
    return word


def ports(value: object) -> object:
    """Read a port or a range of ports: 80, "80" or "9000-9999"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", str(value))
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= low <= high <= 65535:
        raise InvalidValue("is neither a port nor a range of ports", "use one such as 443 or 30000-32767")
    return str(low) if low == high else f"{low}-{high}"


_NUMBER_OR_TEXT: Values = {"type": ["integer", "string"]}
Protocol = Annotated[str, Reads(protocol, _NUMBER_OR_TEXT)]
Ports = Annotated[str, Reads(ports, _NUMBER_OR_TEXT)]
Direction = Literal["ingress", "egress"]
Ethertype = Literal["IPv4", "IPv6"]
IcmpNumber = Annotated[int, Ge(0), Le(255)]


@dataclass(frozen=True, kw_only=True)
class SecurityGroupRule(Coherent):
    """What a security group allows. Neutron cannot change a rule: a changed rule is a new rule."""

    direction: Direction = "ingress"
    """Whether it applies to incoming or outgoing packets."""
    ethertype: Ethertype | None = None
    """IP version; default: that of remote_ip_prefix, or IPv4."""
    protocol: Protocol | None = None
    """IP protocol, by name or number; default: any."""
    ports: Ports | None = None
    """Port or range of ports, such as 443 or 30000-32767; default: all."""
    icmp_type: IcmpNumber | None = None
    """ICMP type; default: all."""
    icmp_code: IcmpNumber | None = None
    """ICMP code; default: all."""
    remote_ip_prefix: Cidr | None = None
    """Addresses of the remote side."""
    remote_group: Name | None = None
    """Security group of the remote side: a group of the project, or self."""
    description: str | None = None
    """Free text, set once and never compared; an ownership tag is appended."""

    def contradictions(self) -> Iterable[InvalidValue]:
        name = _canonical(self.protocol, self.version)
        if self.ports is not None and name not in WITH_PORTS:
            yield InvalidValue(f"ports does not apply to protocol {name or 'any'}", "set protocol to tcp or udp")
        if self.icmp_type is not None and name not in ICMP:
            yield InvalidValue("icmp_type only applies to protocol icmp", "set protocol: icmp")
        if self.icmp_code is not None and self.icmp_type is None:
            yield InvalidValue("icmp_code only applies together with icmp_type", "add icmp_type")
        if self.remote_ip_prefix and self.remote_group:
            yield InvalidValue("remote_ip_prefix and remote_group are both set", "split this into two rules")
        if self.remote_ip_prefix and self.version != _version(self.remote_ip_prefix):
            yield InvalidValue(f"ethertype {self.version} does not match remote_ip_prefix", "remove ethertype")
        if self.version == "IPv4" and name is not None and name.startswith("ipv6-"):
            yield InvalidValue(f"protocol {name} requires IPv6", "add ethertype: IPv6")

    @property
    def version(self) -> str:
        """IPv4 or IPv6: as declared, or by its remote network."""
        return self.ethertype or (_version(self.remote_ip_prefix) if self.remote_ip_prefix else "IPv4")

    def body(self) -> Values:
        """Return the rule in terms of the API, without the ids of groups."""
        low, high = self.icmp_type, self.icmp_code
        if self.ports is not None:
            first, _, last = str(self.ports).partition("-")
            low, high = int(first), int(last or first)
        return {
            "direction": self.direction,
            "ethertype": self.version,
            "protocol": _canonical(self.protocol, self.version),
            "port_range_min": low,
            "port_range_max": high,
            "remote_ip_prefix": self.remote_ip_prefix,
        }

    def record(self) -> RuleRecord:
        """Return the rule as Neutron will store it, without the ids of groups."""
        return RuleRecord.read(self.body())


def is_made_by_neutron(rule: SecurityGroupRule, group: str) -> bool:
    """Whether Neutron creates such a rule in each new group, or in the group named default."""
    bare = SecurityGroupRule(direction="egress", ethertype=rule.ethertype)
    own = SecurityGroupRule(direction="ingress", ethertype=rule.ethertype, remote_group=SELF)
    return rule == bare or (group == "default" and rule == own)


def declared_rule(
    rule: RuleRecord, group_id: str, groups: Mapping[str, str], description: str
) -> SecurityGroupRule | None:
    """Return the declaration of an existing rule; None if a spec cannot express it.

    ``groups`` are the names of groups by id.
    """
    if rule.remote_address_group_id:
        return None
    low, high = rule.port_range_min, rule.port_range_max
    port_range = str(low) if low == high else f"{low}-{high}"
    name = _canonical(rule.protocol, rule.ethertype)
    icmp = name in ICMP
    remote = rule.remote_group_id
    try:
        return SecurityGroupRule(
            direction=cast(Direction, rule.direction),
            ethertype=cast(Ethertype, rule.ethertype),
            protocol=name,
            ports=port_range if low is not None and not icmp else None,
            icmp_type=low if icmp else None,
            icmp_code=high if icmp else None,
            remote_ip_prefix=rule.remote_ip_prefix,
            remote_group=SELF if remote == group_id else remote and groups.get(remote, remote),
            description=description or None,
        )
    except ValueError:
        return None


def _version(cidr: str) -> str:
    return f"IPv{ipaddress.ip_network(cidr).version}"


def _canonical(value: object, version: str) -> str | None:
    """Return the canonical name of a protocol for an IP version."""
    name = protocol(value)
    if name in (None, "any"):
        return None
    return "ipv6-icmp" if name == "icmp" and version == "IPv6" else str(name)


def is_about(rule: RuleRecord, direction: str, version: int, protocol: str, number: int | None) -> bool:
    """Whether a rule applies to a protocol and its port or ICMP type."""
    if rule.direction != direction or rule.ethertype != f"IPv{version}":
        return False
    name = _canonical(rule.protocol, rule.ethertype)
    if name in ANY:
        return True
    low, high = rule.port_range_min, rule.port_range_max
    if name != _canonical(protocol, rule.ethertype):
        return False
    if name in ICMP:  # the second number is a code, and an echo only has code 0
        return low is None or (low == number and high in (None, 0))
    return number is None or ((low is None or low <= number) and (high is None or number <= high))


def in_words(rule: RuleRecord, remote_group: str | None) -> str:
    """Return what a rule allows, such as "ingress IPv4 tcp 443 from 10.0.0.0/16"."""
    name = _canonical(rule.protocol, rule.ethertype)
    prefix = rule.normalized_cidr or rule.remote_ip_prefix
    if rule.remote_address_group_id:
        prefix = f"address group {rule.remote_address_group_id}"
    remote = remote_group or (None if prefix in ANYWHERE else prefix) or "anywhere"
    words = [rule.direction, rule.ethertype, name or "any", _numbers(rule, name)]
    return " ".join([*filter(None, words), "from" if rule.direction == "ingress" else "to", remote])


def _numbers(rule: RuleRecord, name: str | None) -> str:
    low, high = rule.port_range_min, rule.port_range_max
    if low is None or (low, high) == ALL_PORTS:
        return ""
    if name in ICMP:
        return f"type {low}" + ("" if high is None else f" code {high}")
    return str(low) if low == high else f"{low}-{high}"
