"""What is found between clusters of a mesh in a real project, and whether the remedies mend it."""

from __future__ import annotations

import ipaddress
import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.cloud.connection import Cloud
from openstack_prep.kubernetes.cilium import Cilium, Member
from openstack_prep.kubernetes.mesh import Examination, MeshNodes, examine, read
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.openshift.check import Diagnostic
from openstack_prep.resources.lists.neutron_records import PortRecord, list_records
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.client import carry_out
from tests.functional.conftest import OPENSTACK


@dataclass
class Room:
    """A project with the nodes' ports of clusters; no servers, for Neutron asks for none."""

    tenant: Tenant
    neutron: Any = field(init=False)
    ports: dict[str, list[str]] = field(default_factory=dict)
    subnets: dict[str, Any] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    nodes: str = ""
    """What kubectl prints of the nodes of a cluster: pods' parts and addresses."""

    def __post_init__(self) -> None:
        self.neutron = self.tenant.connect().network

    def cluster(self, name: str, cidr: str, *, groups: Any = None, mesh: bool = True, **cilium: Any) -> Any:
        """Make network, subnet and two node ports, with a group of their own unless some are given.

        Neutron draws the ports' addresses at random from the whole allocation pool (`_generate_ips` in
        neutron/ipam/drivers/neutrondb_ipam/driver.py, Neutron 29.0).  The pool ends at .99, so that no
        port takes an address from .100 on, which the tests name themselves.
        """
        number = len(self.members) + 1
        block = ipaddress.ip_network(cidr)
        network = self.neutron.create_network(name=name)
        pool = {"start": str(block[10]), "end": str(block[99])}
        subnet = self.neutron.create_subnet(
            name=name, network_id=network.id, cidr=cidr, ip_version=block.version, allocation_pools=[pool]
        )
        groups = [self.neutron.create_security_group(name=name).id] if groups is None else groups
        made = [
            self.neutron.create_port(name=f"{name}-{n}", network_id=network.id, security_groups=groups)
            for n in range(2)
        ]
        self.ports[name], self.subnets[name] = [port.id for port in made], subnet
        settings = Cilium(cluster_id=number, mesh="clustermesh-apiserver" if mesh else "none", **cilium)
        self.members.append(
            Member(name=name, cilium=settings, cluster=KubernetesCluster(cluster_cidr=f"10.{64 + number}.0.0/16"))
        )
        return subnet

    def router(self, name: str, *subnets: Any) -> Any:
        router = self.neutron.create_router(name=name)
        for subnet in subnets:
            self.neutron.add_interface_to_router(router, subnet_id=subnet.id)
        return router

    def look(self, connection: Any = None) -> Examination:
        """Return what a run of its own sees."""
        cloud = Cloud(connection or self.tenant.connect())
        listed = list_records(cloud.network, PortRecord, project_id=self.tenant.project_id)
        nodes = {name: [port for port in listed if port.id in ids] for name, ids in self.ports.items()}
        visible = read(
            cloud.network,
            cloud=self.tenant.cloud,
            project_id=cloud.project_id,
            sees_all="admin" in cloud.roles,
            ports=listed,
            nodes=[port for each in nodes.values() for port in each],
        )
        around = {
            each.name: MeshNodes(ports=nodes[each.name], subnets=[visible.subnets[self.subnets[each.name].id]])
            for each in self.members
        }
        return examine(visible, self.members, around)

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of a cluster's nodes, in Neutron's order of their ports."""
        listed = self.neutron.ports(project_id=self.tenant.project_id)
        return [each.fixed_ips[0]["ip_address"] for each in listed if each.id in self.ports[name]]

    def found(self) -> list[str]:
        return [self.told(each) for each in self.look().findings]

    def told(self, finding: Diagnostic) -> str:
        """Return a finding, with names for ids of subnets and nothing for others."""
        return f"{finding.status} {finding.where}: {finding.what}"

    def mend(self, finding: Diagnostic) -> None:
        """Do what a finding says, as a shell would read it."""
        environment = {"OS_CLIENT_CONFIG_FILE": str(self.tenant.clouds_file)}
        if not finding.fix.startswith("kubectl "):
            carry_out(finding.fix, environment)
            return
        kubectl = f"kubectl() {{ printf {shlex.quote(self.nodes)}; }}"
        environment["PATH"] = f"{Path(OPENSTACK).parent}:{os.environ['PATH']}"
        subprocess.run(["bash", "-ec", f"{kubectl}\n{finding.fix}"], check=True, env=os.environ | environment)

    def mend_all(self) -> list[str]:
        """Do what the first finding says, and all of its kind, until there is none; return them."""
        told: list[str] = []
        while found := self.look().findings:
            assert len(told) < 20, told
            for each in (one for one in found if _kind(one) == _kind(found[0])):
                told.append(self.told(each))
                self.mend(each)
        return told


def _kind(finding: Diagnostic) -> list[str]:
    """Return what tells remedies apart of which one may make another needless."""
    words = shlex.split(finding.fix)
    return words[:7] if words[3:5] in (["security", "group"], ["port", "set"]) else words


@pytest.fixture
def room(tenant: Tenant) -> Room:
    return Room(tenant)


def test_from_nothing_to_a_mesh(room: Room, devcloud: Devcloud) -> None:
    """No router, no rules, no pairs: each remedy does its part, and no more than a few lists are read."""
    room.cluster("one", "10.1.0.0/24", mesh_address="10.1.0.200")
    room.cluster("two", "10.2.0.0/24", mesh_address="10.2.0.200", encryption="wireguard")
    told = [
        each.replace(room.subnets["one"].id, "ONE").replace(room.subnets["two"].id, "TWO") for each in room.mend_all()
    ]
    router = room.neutron.find_router(f"mesh-{room.subnets['one'].id[:8]}", ignore_missing=False)
    one = "the ports one-0, one-1 (groups one) do not let"
    two = "the ports two-0, two-1 (groups two) do not let"
    assert told == [
        "error one: the ports one-0, one-1 have no allowed address pair for the mesh address 10.1.0.200",
        "error two: the ports two-0, two-1 have no allowed address pair for the mesh address 10.2.0.200",
        "error one to two: no router has an interface in subnet one ONE (10.1.0.0/24)",
        f"error one to two: router {router.name} {router.id} has neither an interface in subnet two TWO (10.2.0.0/24) "
        "nor a route to it",
        *(f"error one to two: {two} {what} in from 10.1.0.0/24" for what in ("tcp 4240", "ICMP echo", "udp 8472")),
        f"error one to two: {two} tcp 2379 in from 10.1.0.0/24",
        *(f"error two to one: {one} {what} in from 10.2.0.0/24" for what in ("tcp 4240", "ICMP echo", "udp 8472")),
        f"error two to one: {one} udp 51871 in from 10.2.0.0/24",
        f"error two to one: {one} tcp 2379 in from 10.2.0.0/24",
    ]
    mark = devcloud.mark()
    assert room.look().ok
    assert len([each for each in devcloud.requests_since(mark) if each.service == "neutron"]) <= 8


def test_two_routers_that_nothing_joins_are_joined(room: Room) -> None:
    one, two = room.cluster("one", "10.1.0.0/24", mesh=False), room.cluster("two", "10.2.0.0/24", mesh=False)
    r1, r2 = room.router("r1", one), room.router("r2", two)
    lacks = "has neither an interface in subnet"
    assert room.mend_all() == [
        f"error one to two: router r1 {r1.id} {lacks} two {two.id} (10.2.0.0/24) nor a route to it",
        f"error two to one: router r2 {r2.id} {lacks} one {one.id} (10.1.0.0/24) nor a route to it",
    ]
    (route,) = room.neutron.get_router(r2.id).routes
    assert route["destination"] == "10.1.0.0/24"

    # what goes in a circle, to nobody, to a router that is off, and out of a subnet that names no router
    room.neutron.update_router(r2, routes=[{"destination": "10.1.0.0/24", "nexthop": "10.2.0.177"}])
    room.neutron.update_router(r1, admin_state_up=False)
    assert room.mend_all() == [
        f"error one to two: router r1 {r1.id} is switched off",
        f"error two to one: router r2 {r2.id} has a route to 10.1.0.0/24 by 10.2.0.177, which is "
        "not a router's address",
        f"error two to one: router r2 {r2.id} {lacks} one {one.id} (10.1.0.0/24) nor a route to it",
    ]


def test_pods_that_are_routed_as_they_are(room: Room) -> None:
    """Without a tunnel, routers lead to the pods of each node, and pods' own addresses are let in."""
    one = room.cluster("one", "10.1.0.0/24", mesh=True, routing="native", mesh_address="10.1.0.200")
    two = room.cluster("two", "10.2.0.0/24", mesh=False)
    router = room.router("r", one, two)
    assert room.found() == [
        "error one: the ports one-0, one-1 have no allowed address pair for the mesh address 10.1.0.200",
        "error one: the ports one-0, one-1 have no allowed address pair for the pods' 10.65.0.0/16",
        f"error two to one: router r {router.id} has no route to the pods' 10.65.0.0/16 by "
        + ", ".join(room.addresses("one")),
    ]
    room.nodes = "".join(f"10.65.{n}.0/24 {each} one-{n}\\n" for n, each in enumerate(room.addresses("one")))
    assert len(room.mend_all()) == 3
    assert {each["destination"] for each in room.neutron.get_router(router.id).routes} == {
        "10.65.0.0/24",
        "10.65.1.0/24",
    }


def test_groups_of_all_kinds(room: Room) -> None:
    """Address groups, remote groups, IPv6, and ports without any group."""
    one, two = room.cluster("one", "2001:db8:1::/64"), room.cluster("two", "2001:db8:2::/64", groups=[])
    room.router("r", one, two)
    own = room.neutron.find_security_group("one", ignore_missing=False)
    told = room.mend_all()
    nothing = "have port security and no security group: nothing gets in or out"
    assert told[0] == f"error one to two: the ports two-0, two-1 {nothing}"
    new = room.neutron.find_security_group("mesh-two", ignore_missing=False)
    for each in room.neutron.security_group_rules(security_group_id=new.id, direction="ingress"):
        room.neutron.delete_security_group_rule(each)
    assert len(room.found()) == 4
    rule = {"security_group_id": new.id, "direction": "ingress", "ethertype": "IPv6"}
    by_group = room.neutron.create_security_group_rule(**rule, remote_group_id=own.id)
    assert room.found() == []
    room.neutron.delete_security_group_rule(by_group)
    addresses = room.neutron.create_address_group(name="nodes", addresses=["2001:db8:1::/64"])
    room.neutron.create_security_group_rule(**rule, remote_address_group_id=addresses.id)
    assert room.found() == []
