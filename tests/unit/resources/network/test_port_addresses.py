from __future__ import annotations

import pytest

from openstack_prep.resources.lists.neutron_records import AddressPair, FixedIP, PortRecord
from openstack_prep.resources.network.port_addresses import (
    PortAddress,
    PortPair,
    is_derived,
    match,
    pairs_of,
    recorded,
)

MAC = "fa:16:3e:f1:1b:ad"
NAMES = {"s4": "v4", "s6": "v6"}
PRESENT = (FixedIP(subnet_id="s4", ip_address="10.0.0.5"), FixedIP(subnet_id="s6", ip_address="fd00::5"))


@pytest.mark.parametrize(
    ("address", "derived"),
    [
        ("fd00:6::f816:3eff:fef1:1bad", True),
        ("2001:db8::f816:3eff:fef1:1bad", True),
        ("fd00:6::5", False),
        ("10.0.0.5", False),
    ],
)
def test_an_address_derived_from_a_mac_address(address: str, derived: bool) -> None:
    assert is_derived(address, MAC) is derived
    assert not is_derived(address, "")


def test_given_addresses_choose_before_any_address_of_a_subnet() -> None:
    two = (*PRESENT, FixedIP(subnet_id="s4", ip_address="10.0.0.6"))
    anything, given = PortAddress(subnet="v4"), PortAddress(address="10.0.0.5")
    pairs, left = match((anything, given), two, NAMES)
    assert dict(pairs) == {anything: two[2], given: two[0]}
    assert left == [two[1]]


def test_the_subnet_of_an_address_counts() -> None:
    pairs, left = match((PortAddress(subnet="other", address="10.0.0.5"),), PRESENT, NAMES)
    assert [found for _, found in pairs] == [None]
    assert left == list(PRESENT)


def test_pairs_of_a_port() -> None:
    pairs = (
        AddressPair(ip_address="10.0.0.6/32", mac_address=MAC.upper()),
        AddressPair(ip_address="10.9.0.0/16", mac_address="fa:16:3e:00:00:01"),
    )
    port = PortRecord(
        id="p1",
        device_owner="",
        fixed_ips=PRESENT,
        network_id="n1",
        mac_address=MAC,
        device_id="",
        security_groups=(),
        allowed_address_pairs=pairs,
        tags=("openstack-prep:lab~10.9.0.0_16", "theirs~10.0.0.6"),
    )
    assert list(pairs_of(port)) == [
        PortPair(address="10.0.0.6"),
        PortPair(address="10.9.0.0/16", mac_address="fa:16:3e:00:00:01"),
    ]
    assert recorded(port) == {"10.9.0.0/16"}
