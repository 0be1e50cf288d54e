from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.openshift.check.network.vips import vips
from openstack_prep.openshift.install_config import ResourceReference
from tests.unit.openshift.check.neutron import SUBNET, Neutron
from tests.unit.texts import Wording, contains

OWN = {"machines_subnets": (ResourceReference(name="machines"),)}
MACHINE = "error networking.machineNetwork: "
API, INGRESS = "error platform.openstack.apiVIPs: ", "error platform.openstack.ingressVIPs: "


@pytest.fixture
def neutron(services: requests_mock.Mocker, tmp_path: Path) -> Neutron:
    made = Neutron(services, tmp_path)
    made.own()
    return made


def test_the_defaults_stand_apart(neutron: Neutron) -> None:
    for release in ("4.2", "4.5", "4.12", "4.18"):
        assert neutron.found(vips, release=release) == []
    assert neutron.found(vips, **OWN) == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"ingress_vips": ("10.0.0.5",)}, f"{INGRESS}10.0.0.5 is both the API's and ingress's virtual address"),
        (
            {"api_vips": ("10.0.0.6",), "release": "4.5"},
            f"{MACHINE}10.0.0.6 is both the API's and the cluster's DNS's virtual address",
        ),
        ({"api_vips": ("10.0.0.1",)}, f"{API}the API's 10.0.0.1 is the subnet's gateway"),
        ({"api_vips": ("10.0.255.255",)}, f"{API}the API's 10.0.255.255 is not a host address in 10.0.0.0/16"),
        (
            {"api_vips": ("10.9.0.5",), "machine_networks": ("10.0.0.0/16", "10.9.0.0/16")},
            f"{API}the API's 10.9.0.5 is not in the machines' subnet 10.0.0.0/16",
        ),
        (
            {"machine_networks": ("10.0.0.0/29",)},
            f"{MACHINE}ingress's 10.0.0.7 (the installer's default) is not a host address in 10.0.0.0/29",
        ),
        (
            {"machine_networks": ("255.255.255.252/30",), "api_vips": ("255.255.255.254",)},
            f"{MACHINE}ingress's 255.255.255.255 (the installer's default) is not a host address in 255.255.255.252/30",
        ),
        (
            {"machine_networks": ("10.0.0.0/30",), "api_vips": ("10.0.0.2",)},
            f"{MACHINE}ingress's 10.0.0.7 (the installer's default) is not in the machines' subnet 10.0.0.0/30",
        ),
        (
            {"api_vips": ("10.0.1.0",), **OWN},
            f"{API}the API's 10.0.1.0 lies in the allocation pool 10.0.1.0-10.0.255.254 of s1",
        ),
        (
            {"ingress_vips": ("10.0.255.254",), **OWN},
            f"{INGRESS}ingress's 10.0.255.254 lies in the allocation pool 10.0.1.0-10.0.255.254 of s1",
        ),
    ],
)
def test_what_cannot_be_one(neutron: Neutron, fields: dict[str, Any], found: str) -> None:
    assert neutron.found(vips, **fields) == [found]
    assert neutron.found(vips, **fields, load_balancer="UserManaged") == []


def test_what_the_file_alone_tells_is_not_said_twice(neutron: Neutron) -> None:
    assert neutron.found(vips, api_vips=("10.0.0.9",), ingress_vips=("10.0.0.9",)) == []
    assert neutron.found(vips, api_vips=("172.16.0.9",)) == []


def test_one_command_takes_them_all_out_of_the_pools(neutron: Neutron) -> None:
    own = neutron.kept["subnets"][-1]
    own["allocation_pools"] = [{"start": "10.0.0.5", "end": "10.0.0.7"}, {"start": "10.0.0.20", "end": "10.0.0.90"}]
    remedies = {each.fix for each in vips(neutron.context(ingress_vips=("10.0.0.30",), **OWN))}
    assert remedies == {
        "openstack --os-cloud defaults subnet set --no-allocation-pool --allocation-pool start=10.0.0.6,end=10.0.0.7"
        " --allocation-pool start=10.0.0.20,end=10.0.0.29 --allocation-pool start=10.0.0.31,end=10.0.0.90 s1"
    }


def test_one_that_a_port_has(neutron: Neutron, wording: Wording) -> None:
    port = neutron.port("p1", "10.0.0.7", name="theirs", device_owner="compute:nova")
    wording(neutron.found(vips, **OWN))
    assert neutron.found(vips) == []
    (of_machine,) = vips(neutron.context(**OWN))
    port["device_owner"] = ""
    (free,) = vips(neutron.context(**OWN))
    port["project_id"] = "another"
    (of_others,) = vips(neutron.context(**OWN))
    deletes = ["port delete" in each.fix for each in (of_machine, free, of_others)]
    assert deletes == [False, True, False]  # never what somebody may need


def test_the_gateways_own_port_takes_nothing(neutron: Neutron) -> None:
    """That the address is the gateway's is one mistake, not two; any other port of the router does take its address."""
    neutron.port("i2", "10.0.0.2", device_owner="network:router_interface", device_id="r1")
    both = neutron.context(api_vips=("10.0.0.1",), ingress_vips=("10.0.0.2",), **OWN)
    assert [(each.code, each.where) for each in vips(both)] == [
        ("vip.invalid", "platform.openstack.apiVIPs"),
        ("vip.in-use", "platform.openstack.ingressVIPs"),
    ]


def test_subnets_that_are_not_clear_are_another_checks(neutron: Neutron) -> None:
    neutron.add("subnets", SUBNET, id="s9", name="machines", cidr="10.7.0.0/24")
    assert neutron.found(vips, machines_subnets=(ResourceReference(name="machines"),), api_vips=("10.7.0.5",)) == []


def test_a_subnet_of_another_network_is_one_mistake(neutron: Neutron) -> None:
    assert neutron.found(vips, machine_networks=("10.9.0.0/16",), **OWN) == []


TWO: dict[str, Any] = {
    "machines_subnets": (ResourceReference(name="machines"), ResourceReference(name="v6")),
    "machine_networks": ("10.0.0.0/16", "fd2e::/64"),
    "api_vips": ("10.0.0.5", "fd2e::5"),
    "ingress_vips": ("10.0.0.7", "fd2e::7"),
}


def test_two_stacks(neutron: Neutron, wording: Wording) -> None:
    pools = {"allocation_pools": [{"start": "fd2e::2", "end": "fd2e::ffff"}]}
    neutron.add("subnets", SUBNET, id="s6", name="v6", cidr="fd2e::/64", ip_version=6, gateway_ip="fd2e::1", **pools)
    api = neutron.port("a", "10.0.0.5", "fd2e::5", name="api")
    ingress = neutron.port("b", "10.0.0.7", name="ingress")
    (finding,) = vips(neutron.context(**TWO))
    assert finding.code == "vip.no-port"
    assert contains(finding.what, "10.0.0.7", "fd2e::7", "ingress b")
    assert finding.fix == (
        "openstack --os-cloud defaults port create --network n1 --fixed-ip subnet=s1,ip-address=10.0.0.7"
        " --fixed-ip subnet=s6,ip-address=fd2e::7 dev-ingress-port"
    )
    ingress["fixed_ips"].append({"subnet_id": "s6", "ip_address": "fd2e::7"})
    assert neutron.found(vips, **TWO) == []
    api["device_owner"] = "compute:nova"
    wording(neutron.found(vips, **TWO))


SIX: dict[str, Any] = {
    "machines_subnets": (ResourceReference(name="v6"),),
    "machine_networks": ("fd2e::/64",),
    "api_vips": ("fd2e::5",),
    "ingress_vips": ("fd2e::7",),
    "release": "4.18",
}


def test_ipv6_alone(neutron: Neutron, wording: Wording) -> None:
    """deploy_single_stack_ipv6_cluster.md: the user creates both ports, and their addresses may come from a pool."""
    pools = {"allocation_pools": [{"start": "fd2e::2", "end": "fd2e::ffff"}]}
    neutron.add("subnets", SUBNET, id="s6", name="v6", cidr="fd2e::/64", ip_version=6, gateway_ip="fd2e::1", **pools)
    neutron.port("a", "fd2e::5", name="api")
    (finding,) = vips(neutron.context(**SIX))
    assert finding.code == "vip.no-port"
    wording(finding.what)
    assert finding.fix.endswith("port create --network n1 --fixed-ip subnet=s6,ip-address=fd2e::7 dev-ingress-port")
    neutron.port("b", "fd2e::7", name="ingress")
    assert neutron.found(vips, **SIX) == []
