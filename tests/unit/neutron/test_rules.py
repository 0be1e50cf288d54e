from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from openstack_prep.neutron.rules import Admission, Traffic
from openstack_prep.neutron.rules import admission as of_traffic
from openstack_prep.resources.lists.neutron_records import RuleRecord
from tests.unit.openshift.verify.view import rule


def admission(rules: list[dict[str, Any]], tcp: int, version: int) -> Admission:
    return of_traffic(
        map(RuleRecord.read, rules), Traffic(direction="ingress", version=version, protocol="tcp", number=tcp)
    )


@pytest.mark.parametrize(
    ("given", "comes_in"),
    [
        (rule(6443), True),
        (rule(6000, 7000), True),
        (rule(80), False),
        (rule(None), True),
        (rule(None, None, protocol=None), True),
        (rule(None, None, protocol="any"), True),
        (rule(6443, protocol="6"), True),
        (rule(6443, protocol="TCP"), True),
        (rule(6443, protocol="udp"), False),
        (rule(6443, direction="egress"), False),
        (rule(6443, ethertype="IPv6"), False),
        (rule(6443, remote_ip_prefix="0.0.0.0/0"), True),
        (rule(6443, remote_ip_prefix="10.0.0.0/16"), False),
        (rule(6443, remote_group_id="g"), False),
        (rule(6443, remote_address_group_id="g"), False),
    ],
)
def test_what_comes_in_from_everywhere(given: dict[str, Any], comes_in: bool) -> None:
    assert admission([given], 6443, 4).everywhere is comes_in


def test_sources_add_up() -> None:
    halves = [rule(443, remote_ip_prefix=each) for each in ("0.0.0.0/1", "128.0.0.0/1")]
    assert admission(halves, 443, 4).everywhere
    some = admission([rule(443, remote_ip_prefix="203.0.113.9/24"), rule(443, remote_address_group_id="g")], 443, 4)
    assert some.includes(ip_network("203.0.113.64/26"))
    assert not some.includes(ip_network("203.0.112.0/23"))
    assert not some.includes(ip_network("2001:db8::/64"))
    assert some.address_groups == ("g",)
    assert admission([rule(443, ethertype="IPv6")], 443, 6).includes(ip_network("2001:db8::1"))


def test_remote_ends_that_are_groups() -> None:
    rules = [rule(443, remote_group_id="nodes"), rule(443, remote_address_group_id="known")]
    traffic = Traffic(direction="ingress", version=4, protocol="tcp", number=443)
    found = of_traffic(map(RuleRecord.read, rules), traffic, {"known": ["203.0.113.0/25", "2001:db8::/64"]})
    assert found.groups == {"nodes"}
    assert found.networks == (ip_network("203.0.113.0/25"),)
    assert found.address_groups == ()
