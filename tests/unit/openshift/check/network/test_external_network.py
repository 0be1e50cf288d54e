from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError
from openstack_prep.openshift.check.network.external_network import external_network
from openstack_prep.openshift.install_config import ResourceReference
from tests.unit.conftest import failure
from tests.unit.openshift.check.neutron import NETWORK, NEUTRON, Neutron
from tests.unit.texts import Wording, contains

WHERE = "error platform.openstack.externalNetwork: "


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    return Neutron(services, tmp_path)


def availability(*free: tuple[int, int]) -> dict[str, Any]:
    subnets = [{"ip_version": version, "total_ips": 10, "used_ips": 10 - count} for version, count in free]
    return {"network_ip_availability": {"subnet_ip_availability": subnets}}


def test_one_that_nobody_but_administrators_may_count(neutron: Neutron) -> None:
    assert neutron.found(external_network) == []


@pytest.mark.parametrize(
    ("free", "own", "found"),
    [
        (((4, 2),), False, None),
        (((4, 1),), False, "1 addresses left, 2 are needed for the bootstrap machine's floating IP and the router's"),
        (((4, 1),), True, None),
        (((4, 0), (6, 9)), True, "0 addresses left, 1 are needed for the bootstrap machine's floating IP"),
        (((4, 0), (4, 2)), False, None),
    ],
)
def test_addresses_left(
    neutron: Neutron, services: requests_mock.Mocker, free: Any, own: bool, found: str | None
) -> None:
    services.get(f"{NEUTRON}/network-ip-availabilities/x1", json=availability(*free))
    said = neutron.found(external_network, machines_subnets=(ResourceReference(id="s1"),) if own else ())
    assert [found in each for each in said] == ([True] if found else [])


def test_a_cloud_that_fails_is_not_taken_for_a_full_one(neutron: Neutron, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/network-ip-availabilities/x1", **failure(501))
    with pytest.raises(CloudError):
        neutron.found(external_network)


def test_two_of_one_name_of_which_one_is_external(neutron: Neutron, wording: Wording) -> None:
    neutron.add("networks", NETWORK, id="n9", name="external", project_id="theirs")
    (finding,) = external_network(neutron.context())
    assert finding.code == "external-network.ambiguous"
    assert contains(finding.what, "2 networks", "external", "x1", "n9", "theirs")
    assert finding.status == "warning"
    assert finding.code == "external-network.ambiguous"
    wording(finding.why)
    wording(finding.why)


def test_two_external_ones_of_one_name(neutron: Neutron, wording: Wording) -> None:
    neutron.add("networks", NETWORK, id="x2", name="external", **{"router:external": True})
    (finding,) = external_network(neutron.context())
    assert finding.status == "error"
    assert finding.code == "external-network.ambiguous"
    wording(finding.why)


def test_none_needs_a_way_out_of_ones_own(neutron: Neutron) -> None:
    own = (ResourceReference(id="s1"),)
    assert neutron.found(external_network, external_network=None, machines_subnets=own) == []
    assert neutron.found(external_network, external_network=None) != []
    needed = neutron.found(external_network, external_network=None, machines_subnets=own, release="4.5")
    assert needed == [f"{WHERE}is missing; 4.5 requires it"]


def test_a_project_that_sees_none(neutron: Neutron, wording: Wording) -> None:
    neutron.kept["networks"].clear()
    (said,) = neutron.found(external_network)
    wording(said)
