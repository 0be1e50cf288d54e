from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.diagnostic import DiagnosticStatus
from openstack_prep.openshift.check.network.networks import networks
from openstack_prep.openshift.install_config import MachinePool, Machines, Proxy, ResourceReference
from tests.unit.conftest import IDENTITY, token
from tests.unit.openshift.check.neutron import NETWORK, SUBNET, Neutron
from tests.unit.texts import Wording


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    return Neutron(services, tmp_path)


def test_the_default_networks(neutron: Neutron) -> None:
    assert neutron.found(networks) == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"machine_networks": ("192.0.2.128/25",)}, "error networking.machineNetwork: 192.0.2.128/25 overlaps"),
        ({"service_networks": ("192.0.0.0/16",)}, "error networking.serviceNetwork: 192.0.0.0/16 overlaps"),
        ({"cluster_networks": ("192.0.0.0/14",)}, "error networking.clusterNetwork: 192.0.0.0/14 overlaps"),
        (
            {"machine_networks": ("192.0.2.0/24",), "release": "4.2"},
            "error networking.machineCIDR: 192.0.2.0/24 overlaps 192.0.2.0/24 of the external network 'external'",
        ),
        (
            {"external_dns": ("172.30.0.10",)},
            "error platform.openstack.externalDNS: DNS server 172.30.0.10 lies in 172.30.0.0/16 of "
            "networking.serviceNetwork",
        ),
        (
            {"proxy": Proxy(http="http://me:secret@10.129.0.9:3128")},
            "error proxy.httpProxy: the proxy 10.129.0.9 lies in 10.128.0.0/14 of networking.clusterNetwork",
        ),
        (
            {"external_dns": ("10.0.0.53",)},
            "error platform.openstack.externalDNS: DNS server 10.0.0.53 lies in 10.0.0.0/16 of "
            "networking.machineNetwork",
        ),
        ({"external_dns": ()}, "warning platform.openstack.externalDNS: is missing"),
        (
            {"host_prefix": 16},
            "error networking.clusterNetwork: 10.128.0.0/14 has 4 parts of /16 (hostPrefix), the cluster has 6 nodes",
        ),
        (
            {"cluster_networks": ("10.128.0.0/14", "fd01::/63")},
            "error networking.clusterNetwork: fd01::/63 has 2 parts of /64 (hostPrefix), the cluster has 6 nodes",
        ),
        (
            {"machine_networks": ("10.0.0.0/29",)},
            "error networking.machineNetwork: 10.0.0.0/29 has 6 addresses, 11 are needed",
        ),
        ({"machine_networks": ("10.0.0.0/32",)}, "error networking.machineNetwork: 10.0.0.0/32 has 0 addresses"),
    ],
)
def test_what_cannot_work(neutron: Neutron, fields: dict[str, Any], found: str) -> None:
    said = neutron.found(networks, **fields)
    assert len(said) == 1
    assert said[0].startswith(found)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"cluster_networks": ("10.128.0.0/22",), "compute": MachinePool(replicas=0)}, 1),  # two parts of /23 for three
        ({"cluster_networks": ("10.128.0.0/22", "10.132.0.0/22"), "compute": MachinePool(replicas=0)}, 0),
        ({"host_prefix": 9}, 0),  # the file alone tells
        ({"machine_networks": ("10.0.0.0/28",)}, 0),  # fourteen for eleven
        ({"external_dns": (), "release": "4.3"}, 0),  # it could not be written
        (
            {"external_dns": (), "machines_subnets": (ResourceReference(id="s1"),)},
            0,
        ),  # the subnet's own are another check's
    ],
)
def test_what_is_just_enough(neutron: Neutron, fields: dict[str, Any], found: int) -> None:
    assert len(neutron.found(networks, **fields)) == found


def test_subnets_that_are_not_shown(neutron: Neutron) -> None:
    neutron.kept["subnets"].clear()
    (found,) = networks(neutron.context())
    assert (found.code, found.status) == ("access.denied", "unknown")
    assert found.where == "platform.openstack.externalNetwork"
    assert "'external'" in found.what


def test_services_of_the_cloud(neutron: Neutron, services: requests_mock.Mocker, wording: Wording) -> None:
    body = token()
    for each in body["token"]["catalog"]:
        if each["type"] in ("image", "compute"):
            each["endpoints"][0]["url"] = "http://10.0.0.9:1/"
            each["endpoints"].append(each["endpoints"][0] | {"interface": "internal", "url": "http://10.0.0.8:1/"})
    services.post(f"{IDENTITY}/auth/tokens", json=body, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    (said,) = neutron.found(networks)
    wording(said)
    neutron.own()
    assert neutron.found(networks, machines_subnets=(ResourceReference(name="machines"),), external_dns=()) == []


def test_name_servers_of_an_own_subnet(neutron: Neutron, wording: Wording) -> None:
    neutron.own(dns_nameservers=["10.128.0.10"])
    (said,) = neutron.found(networks, machines_subnets=(ResourceReference(name="machines"),), external_dns=())
    wording(said)


def test_additional_networks(neutron: Neutron, wording: Wording) -> None:
    neutron.add("networks", NETWORK, id="n2", name="storage")
    neutron.add("subnets", SUBNET, id="s2", network_id="n2", cidr="172.30.5.0/24")
    said = neutron.found(
        networks, compute=MachinePool(additional_networks=("n2",)), machines=Machines(additional_networks=("n3",))
    )
    wording(said)


def test_an_additional_network_without_port_security(neutron: Neutron) -> None:
    neutron.add("networks", NETWORK | {"port_security_enabled": False}, id="n2", name="uplink")
    neutron.add("subnets", SUBNET, id="s2", network_id="n2", cidr="10.77.0.0/24")
    given = Machines(additional_networks=("n2",))
    found = list(networks(neutron.context(machines=given)))
    assert [(each.code, each.status) for each in found] == [("port-security.off", DiagnosticStatus.ERROR)]
    assert "n2" in found[0].fix


def test_an_additional_network_without_subnets(neutron: Neutron) -> None:
    neutron.add("networks", NETWORK, id="n2", name="uplink")
    neutron.add("networks", NETWORK, id="n3", name="hidden", subnets=["s3"])  # which these credentials do not see
    found = list(networks(neutron.context(compute=MachinePool(additional_networks=("n2", "n3")))))
    assert [(each.code, each.status) for each in found] == [("network.no-subnet", DiagnosticStatus.ERROR)]
    assert "n2" in found[0].what


def test_additional_security_groups(neutron: Neutron, wording: Wording) -> None:
    neutron.add("security-groups", {"security_group_rules": []}, id="g1", name="mine")
    said = neutron.found(
        networks,
        compute=MachinePool(additional_security_groups=("g1",)),
        machines=Machines(additional_security_groups=("g1", "g2")),
    )
    wording(said)
