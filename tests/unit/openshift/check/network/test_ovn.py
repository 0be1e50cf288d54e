from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

from openstack_prep.openshift.check.network.ovn import ovn
from tests.unit.openshift.check.neutron import FLOATING, Neutron
from tests.unit.texts import Wording


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    made = Neutron(services, tmp_path)
    made.port("v", "10.0.0.7", name="vip")
    serves = {"port_id": "v", "fixed_ip_address": "10.0.0.7"}
    made.add("floatingips", FLOATING, id="f1", floating_ip_address="192.0.2.11", **serves)
    return made


def test_a_cloud_that_does_not_tell(neutron: Neutron, wording: Wording) -> None:
    (finding,) = ovn(neutron.context())
    assert finding.status == "warning"
    assert finding.code == "pairs.missing"
    wording(finding.why)
    assert finding.fix == (
        "openstack --os-cloud defaults port list --network n1  # and, for each machine's: "
        "port set --allowed-address ip-address=10.0.0.7 ID"
    )


@pytest.mark.parametrize(("owner", "device"), [("distributed", "ovnmeta-n1"), ("dhcp", "ovnmeta-n1"), ("dhcp", "")])
def test_ovn(neutron: Neutron, owner: str, device: str, wording: Wording) -> None:
    neutron.port("d", "10.0.0.2", device_owner=f"network:{owner}", device_id=device)
    neutron.port("a", "10.0.0.3", device_owner="network:dhcp", device_id="dhcp-of-baremetal")
    wording(neutron.found(ovn))


@pytest.mark.parametrize("device", ["dhcp1b2c-n1", "reserved_dhcp_port"])
def test_another_driver(neutron: Neutron, device: str) -> None:
    neutron.port("d", "10.0.0.2", device_owner="network:dhcp", device_id=device)
    assert neutron.found(ovn) == []


@pytest.mark.parametrize(
    ("pair", "found"), [("10.0.0.7", 0), ("10.0.0.7/32", 0), ("10.0.0.0/24", 1), ("10.0.0.8", 1), ("fd00::/64", 1)]
)
def test_pairs(neutron: Neutron, pair: str, found: int) -> None:
    neutron.port("m", "10.0.1.1", device_owner="compute:nova", allowed_address_pairs=[{"ip_address": pair}])
    assert len(neutron.found(ovn)) == found


def test_a_port_of_a_machine_needs_none(neutron: Neutron) -> None:
    neutron.kept["ports"][0]["device_owner"] = "compute:nova"
    assert neutron.found(ovn) == []


def test_a_floating_ip_that_serves_nothing(neutron: Neutron) -> None:
    neutron.kept["floatingips"][0]["port_id"] = None
    assert neutron.found(ovn) == []
