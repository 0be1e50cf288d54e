from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.openshift.check.network.own_subnet import own_subnet
from openstack_prep.openshift.install_config import ResourceReference
from tests.unit.conftest import ADMIN_PROJECT
from tests.unit.openshift.check.neutron import NETWORK, SUBNET, Neutron
from tests.unit.texts import Wording, contains

OWN = {"machines_subnets": (ResourceReference(name="machines"),), "external_dns": ()}
NOBODY = "11111111-1111-4111-8111-111111111111"
WHERE = "error platform.openstack.controlPlanePort.fixedIPs: "


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    made = Neutron(services, tmp_path)
    made.own()
    return made


def subnet(neutron: Neutron) -> dict[str, Any]:
    return neutron.kept["subnets"][-1]


def test_one_that_will_do(neutron: Neutron) -> None:
    assert neutron.found(own_subnet, **OWN) == []
    assert neutron.found(own_subnet) == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"enable_dhcp": False}, f"{WHERE}DHCP is off on subnet s1"),
        ({"gateway_ip": None}, f"{WHERE}subnet s1 has no gateway"),
        ({"dns_nameservers": []}, "warning platform.openstack.controlPlanePort.fixedIPs: subnet s1 names no DNS"),
        ({"cidr": "10.0.0.0/17"}, "error networking.machineNetwork: 10.0.0.0/16 is not 10.0.0.0/17, the network of"),
        (
            {"allocation_pools": [{"start": "10.0.1.0", "end": "10.0.1.5"}]},
            f"{WHERE}the allocation pools of subnet s1 have 6 addresses left for 7 machines",
        ),
        (
            {"host_routes": [{"destination": "172.16.0.0/12", "nexthop": "10.0.0.9"}]},
            "warning networking.serviceNetwork: 172.30.0.0/16 overlaps 172.16.0.0/12, a host route of subnet s1",
        ),
    ],
)
def test_what_is_wrong_with_it(neutron: Neutron, fields: dict[str, Any], found: str) -> None:
    subnet(neutron).update(fields)
    (said,) = neutron.found(own_subnet, **OWN)
    assert said.startswith(found)


def test_a_gateway_may_not_lie_in_a_pool(neutron: Neutron) -> None:
    subnet(neutron).update(gateway_ip=None, allocation_pools=[{"start": "10.0.0.1", "end": "10.0.255.254"}])
    (finding,) = own_subnet(neutron.context(**OWN))
    assert finding.fix.partition("  # ")[0] == (
        "openstack --os-cloud defaults subnet set --no-allocation-pool"
        " --allocation-pool start=10.0.0.2,end=10.0.255.254 --gateway 10.0.0.1 s1"
    )


def test_a_default_route_overlaps_nothing(neutron: Neutron) -> None:
    subnet(neutron)["host_routes"] = [{"destination": "0.0.0.0/0", "nexthop": "10.0.0.9"}]
    assert neutron.found(own_subnet, **OWN) == []


def test_addresses_that_others_have(neutron: Neutron, wording: Wording) -> None:
    subnet(neutron)["allocation_pools"] = [{"start": "10.0.1.0", "end": "10.0.1.7"}]
    neutron.port("p1", "10.0.0.200")
    neutron.port("p2", "10.0.1.7")
    assert neutron.found(own_subnet, **OWN) == []
    neutron.port("p3", "10.0.1.6")
    (said,) = neutron.found(own_subnet, **OWN)
    wording(said)


def test_routers(neutron: Neutron, wording: Wording) -> None:
    (router,) = neutron.kept["routers"]
    router["external_gateway_info"] = {"network_id": "x2"}
    wording(neutron.found(own_subnet, **OWN))
    router["external_gateway_info"] = None
    wording(neutron.found(own_subnet, **OWN))
    assert neutron.found(own_subnet, external_network=None, **OWN) == []
    neutron.kept["ports"].clear()
    wording(neutron.found(own_subnet, **OWN))
    subnet(neutron)["project_id"] = "theirs"
    (unseen,) = neutron.found(own_subnet, **OWN)
    assert unseen.startswith("warning")
    wording(unseen)


def test_a_router_without_source_nat(neutron: Neutron) -> None:
    (router,) = neutron.kept["routers"]
    router["external_gateway_info"] |= {"enable_snat": False}
    (finding,) = own_subnet(neutron.context(**OWN))
    assert (finding.code, finding.status, "  # " in finding.fix) == ("router.no-snat", "warning", False)
    (interface,) = neutron.kept["ports"]
    neutron.kept["ports"].append({**interface, "id": "another", "network_id": "theirs", "fixed_ips": []})
    (finding,) = own_subnet(neutron.context(**OWN))
    assert "theirs" in finding.fix.partition("  # ")[2]


@pytest.mark.parametrize("tags", [[], ["openshiftClusterID=theirs-x7k2p"]])
def test_an_interface_goes_to_a_router_that_no_cluster_deletes(neutron: Neutron, tags: list[str]) -> None:
    (router,) = neutron.kept["routers"]
    router["tags"] = tags
    neutron.kept["ports"].clear()
    (finding,) = own_subnet(neutron.context(**OWN))
    name = "dev-s1" if tags else router["id"]
    assert finding.code == "router.missing"
    assert finding.fix.endswith(f"openstack --os-cloud defaults router add subnet {name} s1")
    assert ("router create" in finding.fix) == bool(tags)


def test_what_the_router_leads_to(neutron: Neutron, wording: Wording) -> None:
    (router,) = neutron.kept["routers"]
    router["routes"] = [{"destination": "10.130.0.0/16", "nexthop": "10.0.0.9"}]
    neutron.add("subnets", SUBNET, id="s2", name="other", network_id="n2", cidr="172.30.7.0/24")
    other = [{"subnet_id": "s2", "ip_address": "172.30.7.1"}]
    beyond = [{"subnet_id": "x1-v4", "ip_address": "192.0.2.9"}]
    neutron.port("g1", network_id="x1", device_id="r1", device_owner="network:router_gateway", fixed_ips=beyond)
    neutron.port("i2", network_id="n2", device_id="r1", device_owner="network:router_interface", fixed_ips=other)
    wording(neutron.found(own_subnet, **OWN))


def test_which_is_meant(neutron: Neutron, wording: Wording) -> None:
    missing = neutron.found(own_subnet, machines_subnets=(ResourceReference(name="no-such"),))
    wording(missing)
    old = neutron.found(own_subnet, machines_subnets=(ResourceReference(id=NOBODY),), release="4.12")
    wording(old)
    neutron.add("subnets", SUBNET, id="s9", name="machines")
    twice = neutron.found(own_subnet, machines_subnets=(ResourceReference(name="machines"),))
    wording(twice)


def test_a_name_that_the_installer_takes_for_none_is_said_without_the_cloud(neutron: Neutron) -> None:
    for each in (ResourceReference(), ResourceReference(id="s1")):
        assert neutron.found(own_subnet, machines_subnets=(each,)) == []


def test_its_network(neutron: Neutron, wording: Wording) -> None:
    neutron.add("networks", NETWORK, id="n2", name="other")
    assert neutron.found(own_subnet, machines_network=ResourceReference(name="machines"), **OWN) == []
    other = neutron.found(own_subnet, machines_network=ResourceReference(name="other"), **OWN)
    wording(other)
    missing = neutron.found(own_subnet, machines_network=ResourceReference(id="n7"), **OWN)
    wording(missing)
    found_id = neutron.kept["networks"][1]["id"]
    wording(neutron.found(own_subnet, machines_network=ResourceReference(id=found_id, name="other"), **OWN))
    assert neutron.found(own_subnet, machines_network=ResourceReference(id=found_id, name="machines"), **OWN) == []
    neutron.kept["networks"][1]["project_id"] = "theirs"
    (theirs,) = neutron.found(own_subnet, **OWN)
    wording(theirs)
    assert neutron.found(own_subnet, load_balancer="UserManaged", **OWN) == []
    neutron.kept["networks"][1]["project_id"] = ADMIN_PROJECT
    neutron.kept["networks"][1]["port_security_enabled"] = False
    wording(neutron.found(own_subnet, **OWN))
    del neutron.kept["networks"][1]["port_security_enabled"]  # a cloud without that extension
    assert neutron.found(own_subnet, **OWN) == []


def test_two_stacks(neutron: Neutron) -> None:
    six = {"cidr": "fd2e::/64", "ip_version": 6, "gateway_ip": "fd2e::1", "enable_dhcp": False}
    pool = {"allocation_pools": [{"start": "fd2e::2", "end": "fd2e::ffff"}]}
    v6 = neutron.add("subnets", SUBNET, id="s6", name="v6", **six, **pool)
    neutron.kept["ports"][0]["fixed_ips"].append({"subnet_id": "s6", "ip_address": "fd2e::1"})
    both: dict[str, Any] = OWN | {"machine_networks": ("10.0.0.0/16", "fd2e::/64")}
    both["machines_subnets"] = (ResourceReference(name="machines"), ResourceReference(name="v6"))
    assert neutron.found(own_subnet, **both) == []
    neutron.kept["networks"][1]["mtu"] = 1379
    assert neutron.found(own_subnet, **both) == [f"{WHERE}the MTU of network n1 is 1379"]
    assert neutron.found(own_subnet, **OWN) == []
    neutron.kept["networks"][1]["mtu"] = 1380
    v6["network_id"] = "n2"
    assert any(
        contains(text, f"{WHERE}the subnets", "networks", "n1", "n2") for text in neutron.found(own_subnet, **both)
    )
