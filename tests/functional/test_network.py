"""Subnets and routers on a real Neutron."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Route, Subnet
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.lab import Lab

NETWORK = Network(name="net", mtu=1400)
NODES = Subnet(
    name="nodes",
    network="net",
    cidr="10.0.0.0/24",
    gateway_ip="10.0.0.254",
    dns_nameservers=("1.1.1.1", "8.8.8.8"),
    allocation_pools=("10.0.0.10-10.0.0.20", "10.0.0.30-10.0.0.40"),
    host_routes=(Route(destination="10.8.0.0/16", nexthop="10.0.0.9"),),
    description="where nodes are",
)
STORAGE = Subnet(name="storage", network="net", cidr="10.0.1.0/24")
SIX = Subnet(
    name="six",
    network="net",
    cidr="2001:db8::/64",
    gateway_ip=False,
    enable_dhcp=True,
    ipv6_ra_mode="slaac",
    ipv6_address_mode="slaac",
)
ROUTER = Router(
    name="out",
    external_network="external",
    interfaces=("nodes", "storage"),
    routes=(Route(destination="10.50.0.0/16", nexthop="10.0.0.9"),),
)
ALL = (NETWORK, NODES, STORAGE, SIX, ROUTER)


def subnets_of(lab: Lab) -> dict[str, Any]:
    """Return the subnets by name in which the router has an interface."""
    neutron = lab.admin.network
    router = neutron.find_router("out", project_id=lab.project_id)
    ports = neutron.ports(device_id=router.id, device_owner="network:router_interface")
    found = [neutron.get_subnet(fixed["subnet_id"]) for port in ports for fixed in port.fixed_ips]
    assert len({subnet.id for subnet in found}) == len(found)
    return {subnet.name: subnet for subnet in found}


def test_from_create_to_destroy(lab: Lab) -> None:
    lab.apply(*ALL)
    neutron = lab.admin.network
    nodes = neutron.find_subnet("nodes", project_id=lab.project_id)
    assert (nodes.cidr, nodes.gateway_ip, nodes.dns_nameservers) == (
        "10.0.0.0/24",
        "10.0.0.254",
        ["1.1.1.1", "8.8.8.8"],
    )
    assert nodes.description.startswith("where nodes are [openstack-prep:")
    six = neutron.find_subnet("six", project_id=lab.project_id)
    assert (six.ip_version, six.gateway_ip, six.ipv6_ra_mode) == (6, None, "slaac")
    router = neutron.find_router("out", project_id=lab.project_id)
    assert router.project_id == lab.project_id
    assert router.routes == [{"destination": "10.50.0.0/16", "nexthop": "10.0.0.9"}]
    assert set(subnets_of(lab)) == {"nodes", "storage"}
    assert {"router/out", "subnet/nodes", "network/net"} <= lab.destroy()


def test_what_is_changed_and_what_drifted(lab: Lab) -> None:
    lab.apply(*ALL)
    neutron = lab.admin.network
    neutron.update_subnet(neutron.find_subnet("nodes", project_id=lab.project_id), dns_nameservers=["9.9.9.9"])
    router = neutron.find_router("out", project_id=lab.project_id)
    storage = subnets_of(lab)["storage"]
    neutron.remove_interface_from_router(router, subnet_id=storage.id)
    assert lab.apply(*ALL) == {"subnet/nodes": "update", "router/out": "update"}
    nodes = replace(NODES, allocation_pools=("10.0.0.30-10.0.0.60",), host_routes=(), gateway_ip=None)
    done = lab.apply(NETWORK, nodes, STORAGE, SIX, replace(ROUTER, routes=(), description="the way out"))
    assert done == {"subnet/nodes": "update", "router/out": "update"}
    assert set(subnets_of(lab)) == {"nodes", "storage"}


def test_what_cannot_be_is_seen_before(lab: Lab) -> None:
    lab.apply(NETWORK, NODES)
    with pytest.raises(PlanRefused, match=r"overlaps 10.0.0.0/24 of subnet nodes"):
        lab.run(NETWORK, NODES, Subnet(name="more", network="net", cidr="10.0.0.128/25"))
    with pytest.raises(PlanRefused, match=r"cidr '10.0.0.0/24' -> '10.0.0.0/16'"):
        lab.run(NETWORK, replace(NODES, cidr="10.0.0.0/16"))


@pytest.mark.parametrize("skip", [0, 1])
def test_stopped_between_interfaces(lab: Lab, devcloud: Devcloud, skip: int) -> None:
    with devcloud.faults(Fault("neutron", method="PUT", path_regex="add_router_interface", skip=skip, status=403)):
        lab.failure(*ALL)
    assert lab.apply(*ALL) == {"router/out": "update"}


@pytest.mark.parametrize(("method", "path"), [("POST", "/subnets$"), ("POST", "/routers$"), ("PUT", "add_router_int")])
def test_a_lost_answer_makes_nothing_twice(lab: Lab, devcloud: Devcloud, method: str, path: str) -> None:
    with devcloud.faults(Fault("neutron", method=method, path_regex=path, drop_answer=True)):
        lab.apply(NETWORK, NODES, STORAGE, ROUTER)
    assert set(subnets_of(lab)) == {"nodes", "storage"}


def test_an_administrators_router(lab: Lab) -> None:
    router = replace(ROUTER, enable_snat=False, routes=None)
    lab.apply(NETWORK, NODES, STORAGE, router)
    found = lab.admin.network.find_router("out", project_id=lab.project_id)
    assert found.external_gateway_info["enable_snat"] is False
    assert lab.apply(NETWORK, NODES, STORAGE, replace(router, enable_snat=True)) == {"router/out": "update"}


def test_an_interface_of_others_keeps_the_router(lab: Lab) -> None:
    lab.apply(*ALL)
    neutron, project = lab.admin.network, {"project_id": lab.project_id}
    network = neutron.create_network(name="theirs", **project)
    subnet = neutron.create_subnet(network_id=network.id, cidr="10.77.0.0/24", ip_version=4, **project)
    router = neutron.find_router("out", **project)
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    assert not lab.plan(*ALL)
    with pytest.raises(PlanRefused, match=f"router/out: has interfaces .* {subnet.id}; remove them first"):
        api.destroy(lab.cloud, Spec(lab.name, tuple(lab.declared.values())))
    assert len(subnets_of(lab)) == 3
    neutron.remove_interface_from_router(router, subnet_id=subnet.id)
    neutron.delete_network(network)


def test_an_interface_of_an_earlier_spec_goes_with_the_router(lab: Lab) -> None:
    lab.apply(*ALL)
    shorter = replace(ROUTER, interfaces=("nodes",))
    assert lab.apply(NETWORK, NODES, STORAGE, SIX, shorter) == {}
    assert "router/out" in lab.destroy()
