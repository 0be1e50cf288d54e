"""Security groups and their rules on a real Neutron."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule as Rule
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from openstack_prep.verbs.export import export
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.lab import NODES, Lab

BALANCER = SecurityGroup(name="lb")
EVERY_WAY = (
    Rule(protocol="tcp", ports="80"),
    Rule(protocol="tcp", ports="9000-9999", remote_ip_prefix="10.0.0.0/8", description="the API"),
    Rule(protocol="tcp", ports="1-65535", remote_ip_prefix="::/0"),
    Rule(protocol="udp", remote_group="lb"),
    Rule(remote_group="self"),
    Rule(protocol="icmp", icmp_type=8),
    Rule(protocol="icmp", ethertype="IPv6"),
    Rule(protocol="vrrp"),
    Rule(protocol="112", ethertype="IPv6"),
    Rule(protocol="200", remote_ip_prefix="10.0.0.0/8"),
    Rule(direction="egress"),
)
WEB = SecurityGroup(name="web", description="of the web", rules=EVERY_WAY)


@pytest.fixture
def lab(shared_lab: Lab) -> Lab:
    return shared_lab


def rules(lab: Lab, name: str = "web") -> list[Any]:
    neutron = lab.admin.network
    (group,) = neutron.security_groups(name=name, project_id=lab.project_id)
    return list(neutron.security_group_rules(security_group_id=group.id))


def test_from_create_to_destroy(lab: Lab) -> None:
    lab.apply(WEB, BALANCER)
    made = rules(lab)
    assert len(made) == len(EVERY_WAY) + 1  # Neutron makes egress rules for both IP versions, one of them declared
    assert {rule.project_id for rule in made} == {lab.project_id}
    assert Counter(rule.protocol for rule in made) == {
        "tcp": 3,
        "udp": 1,
        "icmp": 1,
        "ipv6-icmp": 1,
        "vrrp": 2,
        "200": 1,
        None: 3,
    }
    assert {"security_group/web", "security_group/lb"} <= lab.destroy()


def test_drift_is_mended_and_what_others_made_stays(lab: Lab) -> None:
    lab.apply(WEB, BALANCER)
    neutron = lab.admin.network
    (http,) = [rule for rule in rules(lab) if rule.port_range_min == 80]
    neutron.delete_security_group_rule(http)
    theirs = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "direction": "ingress"}
    group = {"security_group_id": http.security_group_id, "project_id": lab.project_id}
    made = neutron.create_security_group_rule(**group, **theirs)
    assert lab.apply(WEB, BALANCER) == {"security_group_rules/web": "update"}
    assert {22, 80} <= {rule.port_range_min for rule in rules(lab)}
    neutron.delete_security_group_rule(made)  # destroy would refuse to take it along


def test_groups_of_others_may_share_a_name(lab: Lab) -> None:
    """A plan reads all rules and ports of the project, for what the spec no longer declares."""
    own = (WEB, BALANCER, *NODES, Port(name="vip", network="nodes"))
    lab.apply(*own)
    neutron, theirs = lab.admin.network, {"project_id": lab.project_id}
    one, other = (neutron.create_security_group(name="twin", **theirs) for _ in range(2))
    rule = {"security_group_id": one.id, "remote_group_id": other.id, "direction": "ingress"}
    neutron.create_security_group_rule(**rule, **theirs)
    network = neutron.find_network("nodes", ignore_missing=False, **theirs)
    port = neutron.create_port(network_id=network.id, security_group_ids=[other.id], **theirs)
    assert not lab.plan(*own)
    assert {"security_groups", "networks"} <= export(lab.cloud, lab.project).sections.keys()
    neutron.delete_port(port)
    for group in (one, other):
        neutron.delete_security_group(group)


def test_rules_no_longer_declared_go(lab: Lab) -> None:
    lab.apply(WEB, BALANCER)
    fewer = replace(WEB, rules=(*EVERY_WAY[:1], Rule(protocol="tcp", ports="443")), description="x", stateful=False)
    assert lab.apply(fewer, BALANCER) == {"security_group/web": "update", "security_group_rules/web": "update"}
    assert {rule.port_range_min for rule in rules(lab) if rule.direction == "ingress"} == {80, 443}
    assert len([rule for rule in rules(lab) if rule.direction == "egress"]) == 2


@pytest.mark.parametrize("path", [pytest.param("/security-groups$", marks=pytest.mark.more), "/security-group-rules$"])
def test_a_lost_answer_makes_nothing_twice(lab: Lab, devcloud: Devcloud, path: str) -> None:
    with devcloud.faults(Fault("neutron", method="POST", path_regex=path, times=2, drop_answer=True)):
        lab.apply(WEB, BALANCER)
    assert len(rules(lab)) == len(EVERY_WAY) + 1


def test_stopped_before_its_rules(lab: Lab, devcloud: Devcloud) -> None:
    with devcloud.faults(Fault("neutron", method="POST", path_regex="group-rules$", status=403)):
        lab.failure(WEB, BALANCER)
    assert lab.apply(WEB, BALANCER) == {"security_group_rules/web": "update"}


def test_the_default_group_gives_back_our_rules_alone(lab: Lab) -> None:
    default = SecurityGroup(name="default", rules=(Rule(protocol="tcp", ports="22"), Rule(remote_group="self")))
    lab.apply()
    before = len(rules(lab, "default"))
    assert lab.apply(default) == {"security_group_rules/default": "update"}
    assert len(rules(lab, "default")) == before + 1
    assert lab.destroy(default) == {"security_group_rules/default"}
    assert len(rules(lab, "default")) == before


def test_groups_may_name_each_other(lab: Lab) -> None:
    masters = SecurityGroup(name="masters", rules=(Rule(remote_group="workers"), Rule(remote_group="self")))
    workers = SecurityGroup(name="workers", rules=(Rule(remote_group="masters"),))
    lab.apply(masters, workers)
    groups = {group.id: group.name for group in lab.admin.network.security_groups(project_id=lab.project_id)}
    remotes = {groups[rule.remote_group_id] for rule in rules(lab, "masters") if rule.remote_group_id}
    assert remotes == {"masters", "workers"}
    assert {"security_group/masters", "security_group/workers"} <= lab.destroy()


def test_a_rule_of_two_specs_goes_with_the_last(lab: Lab) -> None:
    """Both are applied at once, to a group that neither has created."""
    lab.apply()
    group = lab.admin.network.create_security_group(name="shared", project_id=lab.project_id)
    declared = SecurityGroupRules(name="shared", rules=EVERY_WAY[:2], project=lab.name)
    one, two = specs = [Spec(f"{lab.name}-{each}", (declared,)) for each in "ab"]
    with ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda spec: api.apply(lab.cloud, spec), specs):
            report.raise_for_failures()
    assert not any(api.plan(lab.cloud, spec) for spec in specs)
    ports = Counter(rule.port_range_min for rule in rules(lab, "shared"))
    assert ports == {None: 2, 80: 1, 9000: 1}
    api.destroy(lab.cloud, one).raise_for_failures()
    assert Counter(rule.port_range_min for rule in rules(lab, "shared")) == ports
    assert not api.plan(lab.cloud, two)
    api.destroy(lab.cloud, two).raise_for_failures()
    assert Counter(rule.port_range_min for rule in rules(lab, "shared")) == {None: 2}
    assert not lab.admin.network.get_security_group(group.id).tags
    lab.admin.network.delete_security_group(group)
