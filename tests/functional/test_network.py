"""Subnets and routers on a real Neutron."""

from __future__ import annotations

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from openstack.exceptions import BadRequestException, HttpException

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor
from openstack_prep.core.model import OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.compute.quota import Quota, VolumeTypeQuota
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.port_addresses import PortAddress
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from openstack_prep.resources.network.subnet import Route, Subnet
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs import api
from openstack_prep.verbs.export import export
from tests import rules
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import connect
from tests.functional import client
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


@pytest.fixture
def lab(shared_lab: Lab) -> Lab:
    return shared_lab


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


def test_what_others_arranged_is_no_mistake(lab: Lab) -> None:
    """A router joined by port to a transit network, and a gateway outside of its subnet."""
    transit = Subnet(name="transit", network="net", cidr="10.0.2.0/24")
    local = Subnet(name="local", network="net", cidr="2001:db8:1::/64")
    lab.apply(NETWORK, transit, local, Router(name="out"))
    neutron, project = lab.admin.network, {"project_id": lab.project_id}
    found = neutron.find_subnet("transit", **project)
    fixed = [{"subnet_id": found.id, "ip_address": "10.0.2.254"}]
    port = neutron.create_port(network_id=found.network_id, fixed_ips=fixed, **project)
    neutron.add_interface_to_router(neutron.find_router("out", **project), port_id=port.id)
    neutron.update_subnet(neutron.find_subnet("local", **project), gateway_ip="fe80::1")
    routes = (Route(destination="10.60.0.0/16", nexthop="10.0.2.1"),)
    local = replace(local, allocation_pools=("2001:db8:1::10-2001:db8:1::ff",))
    routed = Router(name="out", interfaces=("transit",), routes=routes)
    itself = replace(routed, routes=(replace(routes[0], nexthop="10.0.2.254"),))
    assert [each.field for each in lab.plan(NETWORK, transit, local, itself).refusals] == ["interfaces"]
    assert lab.apply(NETWORK, transit, local, routed) == {"subnet/local": "update", "router/out": "update"}


def test_a_gateway_outside_of_its_subnet(lab: Lab) -> None:
    """Neutron creates such a subnet, and refuses a router's interface in it."""
    far = Subnet(name="far", network="net", cidr="10.0.3.0/24", gateway_ip="10.0.4.1")
    local = Subnet(name="local", network="net", cidr="2001:db8:2::/64", gateway_ip="fe80::1")
    lab.apply(NETWORK, far, local)
    for subnet in (far, local):
        router = Router(name="out", interfaces=(subnet.name,))
        (refused,) = lab.plan(NETWORK, far, local, router).refusals
        assert refused.field == "interfaces"
        assert str(subnet.gateway_ip) in refused.what
    neutron, project = lab.admin.network, {"project_id": lab.project_id}
    router = neutron.create_router(name="theirs", **project)
    with pytest.raises(BadRequestException):
        neutron.add_interface_to_router(router, subnet_id=neutron.find_subnet("far", **project).id)
    neutron.delete_router(router)  # destroy would refuse to orphan it
    assert not lab.plan(NETWORK, far, local)


def test_what_cannot_be_is_seen_before(lab: Lab) -> None:
    lab.apply(NETWORK, NODES)
    with pytest.raises(PlanRefused, match=r"overlaps 10.0.0.0/24 of subnet nodes"):
        lab.run(NETWORK, Subnet(name="more", network="net", cidr="10.0.0.128/25"))
    with pytest.raises(PlanRefused, match=r"cidr '10.0.0.0/24' -> '10.0.0.0/16'"):
        lab.run(NETWORK, replace(NODES, cidr="10.0.0.0/16"))
    longest = "d" * (255 - len(OwnershipTag(lab.name).describe("net", "")) - 1)
    lab.apply(replace(NETWORK, description=longest), NODES)
    with pytest.raises(SpecError):
        lab.plan(replace(NETWORK, description=f"{longest}d"), NODES)


@pytest.mark.parametrize("skip", [pytest.param(0, marks=pytest.mark.more), 1])
def test_stopped_between_interfaces(lab: Lab, devcloud: Devcloud, skip: int) -> None:
    with devcloud.faults(Fault("neutron", method="PUT", path_regex="add_router_interface", skip=skip, status=403)):
        lab.failure(*ALL)
    assert lab.apply(*ALL) == {"router/out": "update"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("POST", "/subnets$", marks=pytest.mark.more),
        ("POST", "/routers$"),
        pytest.param("PUT", "add_router_int", marks=pytest.mark.more),
    ],
)
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


def test_an_interface_keeps_its_subnet_until_it_is_removed_as_printed(lab: Lab, devcloud: Devcloud) -> None:
    lab.apply(*ALL)
    shorter = replace(ROUTER, interfaces=("nodes",))
    for name in ("storage", "six"):
        lab.declared.pop(next(key for key in lab.declared if key.name == name))
    (refusal,) = api.plan(lab.cloud, lab.spec(NETWORK, NODES, shorter), prune=True).refusals
    assert (refusal.code, refusal.where) == (Code.STILL_USED, "subnet/storage")
    environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
    client.carry_out(refusal.fix.partition("first run: ")[2], environment)
    done = lab.apply(NETWORK, NODES, shorter, prune=True)
    assert done == {"subnet/storage": "delete", "subnet/six": "delete"}


def test_a_subnet_by_another_name_takes_the_place_of_one_whose_interface_is_removed_as_printed(
    own_lab: Lab, devcloud: Devcloud
) -> None:
    lab, net = own_lab, Network(name="net")
    old = Subnet(name="front", network="net", cidr="10.10.0.0/24")
    router = Router(name="edge", interfaces=("front",))
    lab.apply(net, old, router)
    for key in [key for key in lab.declared if key.name == "front"]:
        del lab.declared[key]
    other, new = Network(name="other"), Subnet(name="dmz", network="other", cidr="10.10.0.0/24")
    wanted = (net, other, new, replace(router, interfaces=("dmz",)))
    refused = {each.where: each for each in api.plan(lab.cloud, lab.spec(*wanted), prune=True).refusals}
    assert refused["router/edge"].code == Code.SPEC_CONTRADICTION
    environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
    client.carry_out(refused["router/edge"].fix.partition("first run: ")[2], environment)
    assert lab.apply(*wanted, prune=True)["subnet/front"] == "delete"


def test_an_overlapping_subnet_of_somebody_else_is_not_taken_out_as_printed(own_lab: Lab) -> None:
    lab, net, router = own_lab, Network(name="net"), Router(name="edge", interfaces=())
    lab.apply(net, router)
    neutron = lab.admin.network
    theirs = neutron.create_network(name="theirs", project_id=lab.project_id)
    subnet = neutron.create_subnet(
        network_id=theirs.id, project_id=lab.project_id, ip_version=4, cidr="10.10.0.0/24", name="theirs"
    )
    edge = neutron.find_router("edge", project_id=lab.project_id)
    neutron.add_interface_to_router(edge, subnet_id=subnet.id)
    new = Subnet(name="front", network="net", cidr="10.10.0.0/24")
    wanted = (net, new, replace(router, interfaces=("front",)))
    refused = {each.where: each for each in api.plan(lab.cloud, lab.spec(*wanted)).refusals}
    assert refused["router/edge"].code == Code.SPEC_CONTRADICTION
    assert "openstack" not in refused["router/edge"].fix
    assert subnet.id in refused["router/edge"].fix
    neutron.remove_interface_from_router(edge, subnet_id=subnet.id)
    neutron.delete_network(theirs)


def test_a_plan_says_which_other_spec_manages_a_floating_ip_to_attach(own_lab: Lab) -> None:
    lab = own_lab
    lab.apply(
        Network(name="net"), Subnet(name="front", network="net", cidr="10.10.0.0/24"), Port(name="web", network="net")
    )
    neutron = lab.admin.network
    external = neutron.find_network("external", ignore_missing=False)
    theirs = neutron.create_ip(
        floating_network_id=external.id, project_id=lab.project_id, description="[openstack-prep:other/api]"
    )
    attached = FloatingIPAttachment(port="web", address=theirs.floating_ip_address)
    unknown = api.plan(lab.cloud, lab.spec(attached)).not_checked
    assert any("spec other" in each and theirs.floating_ip_address in each for each in unknown)
    neutron.delete_ip(theirs)


def test_one_of_two_subnets_of_an_interface_is_taken_out_as_printed(own_lab: Lab, devcloud: Devcloud) -> None:
    lab, net = own_lab, Network(name="net")
    modes = {"ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
    own = Subnet(name="six", network="net", cidr="fd00:5::/64", **modes)  # type: ignore[arg-type]
    router = Router(name="edge", interfaces=("six",))
    lab.apply(net, own, router)
    neutron = lab.admin.network
    network = neutron.find_network("net", project_id=lab.project_id)
    edge = neutron.find_router("edge", project_id=lab.project_id)
    theirs = neutron.create_subnet(
        network_id=network.id, project_id=lab.project_id, cidr="fd00:b0b::/64", ip_version=6, **modes
    )
    neutron.add_interface_to_router(edge, subnet_id=theirs.id)
    router = replace(router, interfaces=None)
    lab.declared.pop(next(key for key in lab.declared if key.name == "six"))
    (refusal,) = api.plan(lab.cloud, lab.spec(net, router), prune=True).refusals
    environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
    client.carry_out(refusal.fix.partition("first run: ")[2], environment)
    (port,) = neutron.ports(device_id=edge.id, network_id=network.id)
    assert [each["subnet_id"] for each in port.fixed_ips] == [theirs.id]
    neutron.remove_interface_from_router(edge, subnet_id=theirs.id)
    neutron.delete_subnet(theirs)
    assert lab.apply(net, router, prune=True) == {"subnet/six": "delete"}


def test_source_nat_that_somebody_has_switched_off_stays_off(own_lab: Lab) -> None:
    """Neutron sets its default wherever a gateway comes without it."""
    lab, neutron = own_lab, own_lab.admin.network
    edge = Router(name="edge", external_network="external")
    lab.apply(edge)
    router = neutron.find_router("edge", project_id=lab.project_id)
    external = router.external_gateway_info["network_id"]
    neutron.update_router(router, external_gateway_info={"network_id": external, "enable_snat": False})
    (taken,) = router.external_gateway_info["external_fixed_ips"]
    address = str(ip_address(taken["ip_address"]) + 40)
    assert lab.apply(replace(edge, external_fixed_ips=(address,))) == {"router/edge": "update"}
    found = neutron.get_router(router.id).external_gateway_info
    assert [each["ip_address"] for each in found["external_fixed_ips"]] == [address]
    assert found["enable_snat"] is False


def test_what_others_have_added_to_a_router_that_is_no_longer_declared(own_lab: Lab) -> None:
    """A scan finds it beside what the spec has added itself."""
    lab, neutron = own_lab, own_lab.admin.network
    edge = Router(name="edge", interfaces=("nodes",))
    lab.apply(NETWORK, NODES, edge)
    router = neutron.find_router("edge", project_id=lab.project_id)
    network = neutron.create_network(name="theirs", project_id=lab.project_id)
    subnet = neutron.create_subnet(
        network_id=network.id, project_id=lab.project_id, name="theirs", cidr="10.7.0.0/24", ip_version=4
    )
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    neutron.update_router(router, routes=[{"destination": "10.8.0.0/24", "nexthop": "10.7.0.7"}])
    lab.declared.pop(next(key for key in lab.declared if key.name == "edge"))

    def planned() -> api.LivePlan:
        return api.plan(lab.cloud, lab.spec(NETWORK, NODES), prune=True)

    def lost() -> list[str]:
        return [loss.address for step in planned() if step.key.name == "edge" for loss in step.deletion_losses]

    assert [subnet.id in each.what for each in planned().refusals if each.where == "router/edge"] == [True, False]
    assert lost() == [f"route/{router.id}/10.8.0.0/24"]
    neutron.update_router(router, routes=[])
    neutron.remove_interface_from_router(router, subnet_id=subnet.id)
    neutron.delete_network(network)
    assert (planned().refusals, lost()) == ((), [])
    lab.spec(edge)  # for the end of the test


def test_a_network_that_lost_its_tag_goes_with_its_project_after_the_printed_advice(own_lab: Lab) -> None:
    lab, plain = own_lab, Network(name="net")
    lab.apply(plain)
    neutron = lab.admin.network
    network = neutron.find_network("net", project_id=lab.project_id)
    neutron.update_network(network, description="hello")
    (refusal,) = api.plan_destroy(lab.cloud, lab.spec(plain)).refusals
    assert refusal.code == Code.STILL_USED
    assert "adopt: permanently on network/net" in refusal.fix
    lab.apply(replace(plain, adopt="permanently"))
    assert {"network/net", f"project/{lab.name}"} <= lab.destroy()


PROVIDER = Network(
    name="provider",
    provider_network_type="flat",
    provider_physical_network="physnet-dual",
    external=True,
    shared=True,
    mtu=1400,
)


def test_a_provider_network_that_is_shared_and_external(lab: Lab) -> None:
    """The router's gateway and the floating IP are on a network of the same spec."""
    name = f"provider-{lab.name}"
    network = replace(PROVIDER, name=name, provider_physical_network=f"phys-{lab.name}")
    outside = Subnet(name="outside", network=name, cidr="198.51.100.0/24")
    router = Router(name="out", external_network=name, interfaces=("inside",))
    inside = (Network(name="net"), Subnet(name="inside", network="net", cidr="10.0.0.0/24"))
    ip = FloatingIP(name="api", external_network=name)
    lab.apply(network, outside, *inside, router, ip)
    found = lab.admin.network.find_network(name)
    assert (found.provider_network_type, found.provider_physical_network) == ("flat", f"phys-{lab.name}")
    assert (found.is_shared, found.is_router_external, found.mtu) == (True, True, 1400)
    (address,) = lab.admin.network.ips(project_id=lab.project_id)
    assert address.floating_network_id == found.id
    everything = (outside, *inside, router, ip)
    assert lab.apply(replace(network, shared=False), *everything) == {f"network/{name}": "update"}
    with pytest.raises(PlanRefused, match="provider_physical_network"):
        lab.run(replace(network, provider_physical_network="elsewhere"), *everything)
    assert export(lab.cloud, Project(name=lab.name), kinds=("network",), name=name).sections["networks"] == [
        {
            "name": name,
            "mtu": 1400,
            "provider_network_type": "flat",
            "provider_physical_network": f"phys-{lab.name}",
            "external": True,
        }
    ]
    lab.destroy()
    assert lab.admin.network.find_network(name) is None


def targets(lab: Lab, network: str) -> set[str]:
    policies = lab.admin.network.rbac_policies(object_id=network, action="access_as_shared")
    return {each.target_project_id for each in policies}


def test_a_network_that_is_shared_with_a_project(lab: Lab) -> None:
    """A policy that somebody else adds or removes is drift; one in use is kept."""
    other = lab.admin.identity.create_project(name=f"other-{lab.name}")
    third = lab.admin.identity.create_project(name=f"third-{lab.name}")
    network = Network(name="net", shared_with=(other.name,))
    subnet = Subnet(name="nodes", network="net", cidr="10.0.0.0/24")
    guest = Port(name="guest", network="net", project=other.name, fixed_ips=(PortAddress(address="10.0.0.7"),))
    lab.apply(network, subnet, guest)
    (found,) = lab.admin.network.networks(project_id=lab.project_id)
    assert targets(lab, found.id) == {other.id}
    (policy,) = lab.admin.network.rbac_policies(object_id=found.id, action="access_as_shared")
    assert policy.project_id == lab.project_id  # whose quota counts it
    (port,) = lab.admin.network.ports(project_id=other.id)
    assert port.network_id == found.id
    more = {"object_type": "network", "object_id": found.id, "action": "access_as_shared"}
    lab.admin.network.create_rbac_policy(**more, target_project_id=third.id)
    assert lab.apply(network, subnet, guest) == {"network/net": "update"}
    assert targets(lab, found.id) == {other.id}
    failed = lab.run(replace(network, shared_with=()), subnet, guest).failed
    assert [str(each.step.key) for each in failed] == ["network/net"]
    assert targets(lab, found.id) == {other.id}
    assert lab.apply(network, subnet, guest) == {}  # declared again: destroy refuses to cut off what is not
    lab.destroy()
    assert lab.admin.identity.find_project(lab.name) is None
    for each in (other, third):
        lab.admin.identity.delete_project(each)


def test_what_is_shared_after_the_plan_stays_shared(lab: Lab) -> None:
    others = [lab.admin.identity.create_project(name=f"{each}-{lab.name}") for each in ("one", "two", "three")]
    network = Network(name="net", shared_with=(others[0].name,))
    lab.apply(network)
    made = lab.plan(replace(network, shared_with=(others[0].name, others[1].name)))
    (found,) = lab.admin.network.networks(project_id=lab.project_id)
    more = {"object_type": "network", "object_id": found.id, "action": "access_as_shared"}
    lab.admin.network.create_rbac_policy(**more, target_project_id=others[2].id)
    (failed,) = api.apply(lab.cloud, made).failed
    assert isinstance(failed.error, PlanRefused)
    assert [each.code for each in failed.error.mistakes] == [Code.PLAN_CHANGED]
    assert others[2].id in targets(lab, found.id)
    lab.apply(network)  # which the next plan shows
    assert targets(lab, found.id) == {others[0].id}
    lab.destroy()
    for each in others:
        lab.admin.identity.delete_project(each)


def test_two_runs_share_a_network_at_once(lab: Lab) -> None:
    other = lab.admin.identity.create_project(name=f"other-{lab.name}")
    network = Network(name="net", shared_with=(other.name,))
    lab.apply(Network(name="net"))
    plans = [api.plan(Cloud(connect(lab.devcloud.clouds_file, "devcloud-admin")), lab.spec(network)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda made: executor.execute(made, made.run), plans):
            report.raise_for_failures()
    (found,) = lab.admin.network.networks(project_id=lab.project_id)
    assert targets(lab, found.id) == {other.id}
    assert not lab.plan(network)
    lab.destroy()
    lab.admin.identity.delete_project(other)


def test_an_mtu_above_the_clouds_limit(lab: Lab) -> None:
    network = Network(name="net", mtu=9000)
    found = re.search(r"mtu 9000 is more than this network carries, at most (\d+);", lab.failure(network))
    assert found
    lab.run(replace(network, mtu=int(found[1]))).raise_for_failures()
    assert found[0] in lab.failure(network)


def test_an_absent_volume_type_is_refused_before_anything_exists(own_lab: Lab) -> None:
    with pytest.raises(PlanRefused, match="volume type no-such does not exist"):
        own_lab.run(NETWORK, Quota(volume_types={"no-such": VolumeTypeQuota(volumes=1)}))
    assert own_lab.admin.identity.find_project(own_lab.name) is None


# --- quotas ----------------------------------------------------------------------------------


EXACT = Quota(
    **{"networks": 3, "subnets": 3, "ports": 5, "routers": 1, "rbac_policies": 1, "floating_ips": 2},
    **{"security_groups": 3, "security_group_rules": 10, "server_groups": 2},
)
"""What the additions take, with the group that Neutron creates in each project and its four rules."""
ADMIN = "devcloud-admin"
SSH, HTTPS = (SecurityGroupRule(direction="ingress", protocol="tcp", ports=port) for port in ("22", "443"))
ADDITIONS = (
    *(Network(name=name, shared_with=("admin",) if name == "a" else None) for name in "abc"),
    *(Subnet(name=name, network=name, cidr=f"10.{number}.0.0/24") for number, name in enumerate("abc", 1)),
    Router(name="r", interfaces=("a", "b")),
    *(Port(name=name, network="a") for name in "pqr"),
    SecurityGroup(name="g", rules=(SSH, HTTPS)),
    SecurityGroup(name="h"),
    *(FloatingIP(name=name, external_network="external") for name in "xy"),
    *(ServerGroup(name=name, policy="affinity") for name in "st"),
)


def short_of(plan: Plan) -> set[str]:
    """Return the quotas that a plan names, by the fix."""
    return {name for each in plan.refusals for name in re.findall(r"raise quota\.(\w+)", each.fix)}


def test_a_quota_that_somebody_has_changed_outlives_that_of_the_spec(own_lab: Lab) -> None:
    """The project stays, and so does what an administrator has set meanwhile."""
    lab, neutron = own_lab, own_lab.admin.network
    quota = Quota(networks=7, routers=3)
    lab.apply(quota)
    default = neutron.get_quota_default(lab.project_id)
    neutron.update_quota(lab.project_id, networks=90)
    lab.destroy(quota)
    found = neutron.get_quota(lab.project_id)
    assert (found.networks, found.routers) == (90, default.routers)


def test_a_plan_names_the_quotas_that_its_additions_exceed(own_lab: Lab) -> None:
    lab = own_lab
    limits = {name: limit for name, limit in vars(EXACT).items() if isinstance(limit, int)}
    one_less = replace(EXACT, **{name: limit - 1 for name, limit in limits.items()})
    assert short_of(lab.plan(one_less, *ADDITIONS)) == limits.keys()  # of a project that does not exist yet
    lab.apply(one_less)
    assert short_of(lab.plan(one_less, *ADDITIONS)) == limits.keys()
    lab.apply(EXACT, *ADDITIONS)
    group = replace(ADDITIONS[10], rules=(SSH, HTTPS, replace(SSH, ports="80")))
    more = lab.plan(*ADDITIONS[:10], group, *ADDITIONS[11:], Network(name="d"))
    assert {(each.code, *map(str, each.keys)) for each in more.refusals} == {
        ("quota.short", "network/d"),
        ("quota.short", "security_group_rules/g"),
    }
    for each in more.refusals:  # the fix as it is printed
        client.carry_out(
            each.fix.partition(": ")[2], {"OS_CLIENT_CONFIG_FILE": str(lab.devcloud.clouds_file), "OS_CLOUD": ADMIN}
        )
    assert not lab.plan(*ADDITIONS[:10], group, *ADDITIONS[11:], Network(name="d")).refusals


# --- rules that need no cloud: Neutron refuses and accepts what they do ----------------------


RULES = [
    row
    for row in yaml.safe_load((Path(rules.__file__).parent / "kinds.yaml").read_text())["rows"]
    if row["section"] in ("subnets", "routers", "ports") and row.get("of") != "openstack-prep"
]
SOME, OTHERS = RULES[::6], [row for number, row in enumerate(RULES) if number % 6]
"""Some of subnets, routers and ports."""


def create(lab: Lab, sections: dict[str, Any]) -> None:
    """Create what a spec declares by plain requests, in the order of a spec; raises the SDK's errors."""
    neutron = lab.admin.network
    placing = {"project_id": lab.project_id}
    ids: dict[str, str] = {}

    def id_of(kind: str, name: str) -> str:
        return ids[f"{kind}/{name}"]

    for each in sections.get("networks", ()):
        ids[f"network/{each['name']}"] = neutron.create_network(**each, **placing).id
    for each in sections.get("subnets", ()):
        body = each | {"network_id": id_of("network", each["network"]), "ip_version": 6 if ":" in each["cidr"] else 4}
        del body["network"]
        ids[f"subnet/{each['name']}"] = neutron.create_subnet(**body, **placing).id
    for each in sections.get("ports", ()):
        fixed = [
            {"subnet_id": id_of("subnet", one["subnet"]), "ip_address": one["address"]}
            for one in each.get("fixed_ips", ())
        ]
        body = {name: value for name, value in each.items() if name == "mac_address"} | (
            {"fixed_ips": fixed} if fixed else {}
        )
        neutron.create_port(name=each["name"], network_id=id_of("network", each["network"]), **body, **placing)
    for each in sections.get("routers", ()):
        router = neutron.create_router(name=each["name"], **placing)
        for name in each.get("interfaces", ()):
            neutron.add_interface_to_router(router, subnet_id=id_of("subnet", name))
        if "routes" in each:
            neutron.update_router(router, routes=each["routes"])


def refused(lab: Lab, sections: dict[str, Any], path: Path) -> set[str]:
    """Return the codes of what a plan of these sections refuses."""
    path.write_text(yaml.safe_dump({"name": lab.name, "project": {"name": lab.name}, **sections}))
    try:
        return {each.code for each in api.plan(lab.cloud, load_spec(path)).refusals}
    except SpecError as error:
        return {each.code for each in error.mistakes}


@pytest.mark.parametrize(
    "rows", [pytest.param(SOME, id="some"), pytest.param(OTHERS, id="others", marks=pytest.mark.more)]
)
@pytest.mark.parametrize("kind", ["good", "bad"])
def test_neutron_agrees_with_the_rules(lab: Lab, kind: str, rows: list[Any], tmp_path: Path) -> None:
    lab.apply()
    for row in rows:
        assert refused(lab, row[kind], tmp_path / "spec.yaml") == ({row["code"]} if kind == "bad" else set()), row
        refusal = pytest.raises(HttpException) if kind == "bad" else contextlib.nullcontext()
        with refusal as caught:
            create(lab, row[kind])
        assert caught is None or caught.value.status_code in (400, 409), row
        empty(lab)


def empty(lab: Lab) -> None:
    neutron = lab.admin.network
    mine = {"project_id": lab.project_id}
    for router in neutron.routers(**mine):
        neutron.update_router(router, routes=[])
        for port in neutron.ports(device_id=router.id):
            neutron.remove_interface_from_router(router, port_id=port.id)
        neutron.delete_router(router)
    for port in neutron.ports(**mine):
        neutron.delete_port(port)
    for network in neutron.networks(**mine):
        neutron.delete_network(network)
