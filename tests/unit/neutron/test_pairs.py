from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest

from openstack_prep.kubernetes.mesh.examination import own_addresses
from openstack_prep.neutron.rules import allowed_parts, allows
from openstack_prep.resources.lists.neutron_records import PortRecord
from tests.unit.kubernetes.mesh.cloud import cluster, interface, router, subnet
from tests.unit.kubernetes.mesh.cloud import visible as mesh_networks
from tests.unit.openshift.verify.view import changed, port, wrong

FOREIGN = "fa:16:3e:ff:ff:ff"


def pairs(*addresses: str, mac: str = "fa:16:3e:00:00:01") -> dict[str, Any]:
    return {"allowed_address_pairs": [{"ip_address": each, "mac_address": mac} for each in addresses]}


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        (pairs("10.0.0.5"), True),
        (pairs("10.0.0.0/16"), True),
        (pairs("10.0.0.7", "2001:db8::/64"), False),
        (pairs("10.0.0.5", mac=FOREIGN), False),
        (pairs("10.0.0.5", mac="FA:16:3E:00:00:01"), True),
        ({"allowed_address_pairs": [{"ip_address": "10.0.0.5"}]}, True),
        ({"fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.5"}]}, True),
        ({"port_security_enabled": False}, True),
    ],
)
def test_a_port_sends_with_its_own_mac_address(fields: dict[str, Any], allowed: bool) -> None:
    assert allows(PortRecord.read(port("master-0-0", "10.0.1.0", **fields)), ip_network("10.0.0.5")) is allowed


def test_a_part_of_a_network_is_not_the_network() -> None:
    one = PortRecord.read(port("node", "10.0.1.0", **pairs("10.66.3.0/24", "10.66.4.0/25")))
    assert not allows(one, ip_network("10.66.0.0/16"))
    assert allowed_parts(one, ip_network("10.66.0.0/16")) == [ip_network("10.66.3.0/24"), ip_network("10.66.4.0/25")]
    assert allowed_parts(one, ip_network("10.67.0.0/16")) == []


def test_pairs_add_up_to_a_network() -> None:
    one = PortRecord.read(port("node", "10.0.1.0", **pairs("10.66.0.0/17", "10.66.128.0/17", "2001:db8::/64")))
    assert allows(one, ip_network("10.66.0.0/16"))
    assert allows(one, ip_network("10.66.7.0/24"))
    assert allowed_parts(one, ip_network("10.66.7.0/24")) == [ip_network("10.66.7.0/24")]


def test_verify_and_mesh_agree_on_a_pair_for_a_part() -> None:
    """What verify calls an address without a pair, mesh does not call allowed as one of the pods' addresses."""
    part = pairs("10.0.0.0/30", "10.0.0.7")
    (by_verify,) = wrong(changed("master-1-0", **part))
    assert by_verify.startswith("api, address pairs, error pairs.missing: 10.0.0.5 ")
    node = port("master-1-0", "10.0.1.1", **part)
    nodes = cluster("one", subnet("one", "10.0.0.0/16"), node, pod_networks=("10.0.0.0/29",))
    assert [(each.code, each.status) for each in own_addresses(mesh_networks(), nodes)] == [
        ("pairs.partial", "unknown")
    ]
    routes = router("r", ("10.0.0.4/30", "10.0.1.1"))
    around = mesh_networks(interfaces=[interface("r", subnet("one", "10.0.0.0/16", "n"))], routers=[routes])
    nodes = replace(nodes, ports=[PortRecord.read({**node, "network_id": "n"})])
    assert [each.code for each in own_addresses(around, nodes)] == ["pairs.missing"]


def test_verify_and_mesh_agree_on_a_pair_with_a_foreign_mac_address() -> None:
    """One table of pairs has one answer, whoever asks."""
    foreign = pairs("10.0.0.5", "10.0.0.7", mac=FOREIGN)
    (by_verify,) = wrong(changed("master-1-0", **foreign))
    assert by_verify.startswith("api, address pairs, error pairs.missing: 10.0.0.5 ")
    node = port("master-1-0", "10.0.1.1", **foreign)
    nodes = cluster("one", subnet("one", "10.0.0.0/16"), node, mesh_address="10.0.0.5")
    assert [each.code for each in own_addresses(mesh_networks(), nodes)] == ["pairs.missing"]
