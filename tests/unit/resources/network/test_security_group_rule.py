from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.resources.lists.neutron_records import RuleRecord
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule, in_words, is_about


def read(**fields: Any) -> SecurityGroupRule:
    """Read a rule as a spec would give it."""
    group = {"name": "web", "rules": [fields]}
    (rule,) = TypeAdapter(SecurityGroup).validate_json(json.dumps(group)).rules or ()
    return rule


def words(**fields: Any) -> str:
    rule = read(**fields)
    return in_words(rule.record(), rule.remote_group)


def raw(**fields: Any) -> dict[str, Any]:
    """Return a rule as Neutron tells it."""
    return {
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": None,
        "port_range_min": None,
        "port_range_max": None,
        "remote_ip_prefix": None,
        "remote_group_id": None,
    } | fields


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "ingress IPv4 any from anywhere"),
        ({"protocol": "tcp", "ports": 443}, "ingress IPv4 tcp 443 from anywhere"),
        ({"protocol": 6, "ports": "443"}, "ingress IPv4 tcp 443 from anywhere"),
        ({"protocol": "TCP", "ports": "30000 - 32767"}, "ingress IPv4 tcp 30000-32767 from anywhere"),
        ({"protocol": "tcp", "ports": "1-65535"}, "ingress IPv4 tcp from anywhere"),
        ({"protocol": "any", "remote_ip_prefix": "0.0.0.0/0"}, "ingress IPv4 any from anywhere"),
        ({"protocol": 112}, "ingress IPv4 vrrp from anywhere"),
        ({"protocol": "200"}, "ingress IPv4 200 from anywhere"),
        ({"remote_ip_prefix": "10.0.0.1"}, "ingress IPv4 any from 10.0.0.1/32"),
        ({"remote_ip_prefix": "2001:DB8::/32"}, "ingress IPv6 any from 2001:db8::/32"),
        ({"protocol": "icmp", "icmp_type": 8}, "ingress IPv4 icmp type 8 from anywhere"),
        ({"protocol": "icmp", "icmp_type": 3, "icmp_code": 4}, "ingress IPv4 icmp type 3 code 4 from anywhere"),
        ({"protocol": "icmp", "ethertype": "IPv6"}, "ingress IPv6 ipv6-icmp from anywhere"),
        ({"protocol": "icmpv6", "ethertype": "IPv6"}, "ingress IPv6 ipv6-icmp from anywhere"),
        ({"direction": "egress", "remote_group": "self"}, "egress IPv4 any to self"),
    ],
)
def test_what_it_lets_through(fields: dict[str, Any], expected: str) -> None:
    assert words(**fields) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"protocol": "17", "port_range_min": 53, "port_range_max": 53}, "ingress IPv4 udp 53 from anywhere"),
        ({"ethertype": "IPv6", "protocol": "1"}, "ingress IPv6 ipv6-icmp from anywhere"),
        (
            {"remote_ip_prefix": "10.0.0.5/16", "normalized_cidr": "10.0.0.0/16"},
            "ingress IPv4 any from 10.0.0.0/16",
        ),
        ({"remote_address_group_id": "a1"}, "ingress IPv4 any from address group a1"),
    ],
)
def test_what_others_wrote_otherwise(fields: dict[str, Any], expected: str) -> None:
    assert in_words(RuleRecord.read(raw(**fields)), None) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ports": 80}, "set protocol to tcp or udp"),
        ({"protocol": "icmp", "ports": 80}, "ports does not apply"),
        ({"protocol": "tcp", "ports": "9000-80"}, "30000-32767"),
        ({"protocol": "tcp", "ports": 0}, "neither a port"),
        ({"protocol": "tcp", "ports": 65536}, "neither a port"),
        ({"protocol": "tpc"}, "is not an IP protocol"),
        ({"protocol": 256}, "from 0 to 255"),
        ({"protocol": "tcp", "icmp_type": 8}, "only applies to protocol icmp"),
        ({"protocol": "icmp", "icmp_code": 0}, "only applies together with icmp_type"),
        ({"protocol": "icmp", "icmp_type": 256}, "255"),
        ({"remote_ip_prefix": "10.0.0.0/8", "remote_group": "self"}, "two rules"),
        ({"remote_ip_prefix": "10.0.0.1/8"}, "host bits"),
        ({"remote_ip_prefix": "10.0.0.0/8", "ethertype": "IPv6"}, "remove ethertype"),
        ({"protocol": "ipv6-icmp"}, "add ethertype: IPv6"),
        ({"port": 80}, "Unexpected keyword"),
    ],
)
def test_mistakes(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        read(**fields)


@pytest.mark.parametrize(
    ("fields", "asked", "expected"),
    [
        ({}, ("tcp", 4240), True),
        ({"protocol": "any"}, ("esp", None), True),
        ({"protocol": "0"}, ("any", None), True),
        ({"protocol": "tcp"}, ("any", None), False),
        ({"protocol": "6"}, ("tcp", 4240), True),
        ({"protocol": "udp"}, ("tcp", 4240), False),
        ({"protocol": "tcp", "port_range_min": 4240, "port_range_max": 4250}, ("tcp", 4240), True),
        ({"protocol": "tcp", "port_range_min": 1, "port_range_max": 4239}, ("tcp", 4240), False),
        ({"protocol": 50}, ("esp", None), True),
        ({"protocol": "icmp"}, ("icmp", 8), True),
        ({"protocol": "icmp", "port_range_min": 8, "port_range_max": 0}, ("icmp", 8), True),
        ({"protocol": "icmp", "port_range_min": 8, "port_range_max": 1}, ("icmp", 8), False),
        ({"protocol": "icmp", "port_range_min": 3}, ("icmp", 8), False),
        ({"direction": "egress"}, ("tcp", 4240), False),
        ({"ethertype": "IPv6"}, ("tcp", 4240), False),
    ],
)
def test_what_a_rule_is_about(fields: dict[str, Any], asked: tuple[str, int | None], expected: bool) -> None:
    assert is_about(RuleRecord.read(raw(**fields)), "ingress", 4, *asked) is expected


@pytest.mark.parametrize("protocol", ["icmp", "icmpv6", "ipv6-icmp", "58"])
def test_icmp_has_another_number_in_ipv6(protocol: str) -> None:
    assert is_about(RuleRecord.read(raw(ethertype="IPv6", protocol=protocol)), "ingress", 6, "icmp", 128)
