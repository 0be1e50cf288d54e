from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.base.ranges import read
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.lists.neutron_records import SubnetRecord
from openstack_prep.resources.network.subnet import Subnet
from tests.unit.texts import Wording

RAW = {
    "id": "s1",
    "network_id": "n1",
    "cidr": "10.0.0.0/24",
    "gateway_ip": "10.0.0.254",
    "allocation_pools": [{"start": "10.0.0.10", "end": "10.0.0.99"}],
    "ipv6_address_mode": None,
    "dns_nameservers": [],
    "host_routes": [],
}


def room(raw: Any = None, **declared: Any) -> Room:
    made = Room.of(
        "nodes", SubnetRecord.read(raw) if raw else None, Subnet(name="nodes", **declared) if declared else None
    )
    assert made is not None
    return made


def conflicts(room: Room, *texts: str, outside: bool = False) -> list[str]:
    return ["; ".join(each) for each in room.conflicts(read(texts), outside=outside)]


@pytest.mark.parametrize(
    ("declared", "gateway", "pools"),
    [
        ({}, "10.0.0.1", ["10.0.0.2-10.0.0.254"]),
        ({"gateway_ip": "10.0.0.100"}, "10.0.0.100", ["10.0.0.1-10.0.0.99", "10.0.0.101-10.0.0.254"]),
        ({"gateway_ip": "10.0.0.254"}, "10.0.0.254", ["10.0.0.1-10.0.0.253"]),
        ({"gateway_ip": False}, "None", ["10.0.0.1-10.0.0.254"]),
        ({"allocation_pools": ("10.0.0.5-10.0.0.9",)}, "10.0.0.1", ["10.0.0.5-10.0.0.9"]),
    ],
)
def test_a_declared_subnet_is_known_as_neutron_will_make_it(
    declared: dict[str, Any], gateway: str, pools: list[str]
) -> None:
    found = room(cidr="10.0.0.0/24", **declared)
    assert str(found.gateway) == gateway
    assert list(map(str, found.pools)) == pools


def test_ipv6_has_no_broadcast_address(wording: Wording) -> None:
    found = room(cidr="fd00::/64")
    assert list(map(str, found.pools)) == ["fd00::1-fd00::ffff:ffff:ffff:ffff"]
    assert conflicts(found, "fd00::ffff:ffff:ffff:ffff") == []
    wording(conflicts(found, "fd00::"))


def test_what_the_spec_changes_of_a_subnet_counts() -> None:
    assert "allocation pool" in conflicts(room(RAW), "10.0.0.99-10.0.0.110", outside=True)[0]
    changed = room(RAW, cidr="10.0.0.0/24", allocation_pools=("10.0.0.10-10.0.0.90",), gateway_ip="10.0.0.1")
    assert conflicts(changed, "10.0.0.99-10.0.0.110", "10.0.0.254", outside=True) == []
    assert (changed.id, str(changed.gateway)) == ("s1", "10.0.0.1")


def test_ports_may_lie_in_an_allocation_pool_but_not_where_nobody_may(wording: Wording) -> None:
    assert conflicts(room(RAW), "10.0.0.50-10.0.0.60") == []
    wording(conflicts(room(RAW), "10.0.0.0/30", "10.0.0.254-10.0.0.255", "10.0.1.0-10.0.1.9", "fd00::1"))


def test_where_addresses_are_computed_pools_mean_nothing_and_no_port_can_have_one() -> None:
    found = room(cidr="fd00::/64", ipv6_address_mode="slaac", ipv6_ra_mode="slaac")
    assert conflicts(found, "fd00::f0", outside=True) == []
    assert "set reserve: outside" in conflicts(found, "fd00::f0")[0]


def test_without_a_subnet_nothing_is_known() -> None:
    assert Room.of("nodes", None, None) is None
    assert Room.of("nodes", None, Subnet(name="nodes")) is None


def test_the_gateway_of_an_existing_subnet_counts_where_the_spec_names_none() -> None:
    """In validate, which reads no cloud, it is the first address, unless gateway_ip says otherwise."""
    subnet = Subnet(name="nodes", cidr="10.0.0.0/24")
    gateway = ["10.0.0.1 is the gateway of subnet nodes; remove it from the pool, or set gateway_ip of the subnet"]
    declared, planned = (Room.declared(subnet, for_plan=each) for each in (False, True))
    assert declared is not None
    assert planned is not None
    assert conflicts(declared, "10.0.0.1") == gateway
    assert conflicts(planned, "10.0.0.1") == []
    assert conflicts(room(RAW, cidr="10.0.0.0/24"), "10.0.0.1") == []  # the plan knows the gateway
    assert conflicts(room(cidr="10.0.0.0/24"), "10.0.0.1") == gateway  # the plan creates the subnet
    named = Room.declared(Subnet(name="nodes", cidr="10.0.0.0/24", gateway_ip="10.0.0.9"), for_plan=True)
    assert named is not None
    assert conflicts(named, "10.0.0.9")
