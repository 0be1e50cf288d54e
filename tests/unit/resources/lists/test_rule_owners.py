"""Two specs that declare the same rule of one security group."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import OwnershipTag, Resource
from openstack_prep.core.plan import Plan
from openstack_prep.resources.lists.neutron_records import GroupRecord
from openstack_prep.resources.lists.rule_owners import RECORD, SharedRules, left_records, owners_of
from openstack_prep.resources.network.security_group import SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule as Rule
from tests.unit.conftest import connection, sent
from tests.unit.resources.security_groups import NEUTRON, THEIRS, Neutron

LABS, OTHERS = "[openstack-prep:lab/nodes]", "[openstack-prep:other/nodes]"
HTTP = Rule(protocol="tcp", ports="80")
HTTPS = Rule(protocol="tcp", ports="443")
PORT = {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}
NODES = SecurityGroupRules(name="nodes", rules=(HTTP,))
GROUP = "/v2.0/security-groups/nodes-id"
LAB, OTHER = "openstack-prep:lab~rules~", "openstack-prep:other~rules~"


def as_spec(name: str) -> CloudRun:
    return CloudRun(Cloud(connection()), OwnershipTag(name))


def plan(run: CloudRun, *resources: Resource) -> Plan:
    observed, mistakes = observation.examine(run, resources)
    run.known.update(observed)
    return planner.plan_apply(run.ownership.spec, resources, observed, mistakes=mistakes)


def apply(name: str, *resources: Resource) -> None:
    run = as_spec(name)
    executor.execute(plan(run, *resources), run).raise_for_failures()
    assert not plan(as_spec(name), *resources).pending


def destroy(name: str, *resources: Resource) -> None:
    run = as_spec(name)
    made = planner.plan_destroy(name, resources, observation.observe(run, resources))
    executor.execute(made, run).raise_for_failures()


@pytest.fixture
def writes(services: requests_mock.Mocker, neutron: Neutron) -> Any:
    """What is sent to a group that nobody's spec has created, without the lists; the group has a rule of "other"."""
    neutron.group("nodes", "made by hand", [neutron.rule(OTHERS, **PORT)])

    def since(start: int = 0) -> list[str]:
        found = (each.replace("/v2.0/security-group", "") for each in sent(services) if each != LIST)
        return [each for each in found if each.split()[0] != "GET" or "nodes-id" in each][start:]

    return since


LIST = "GET /v2.0/security-groups?project_id=admin-project"


def test_a_rule_of_another_spec_is_recorded_for_both(neutron: Neutron, writes: Any) -> None:
    (change,) = plan(as_spec("lab"), NODES).pending[0].changes
    assert change.after - change.before == {"ingress IPv4 tcp 80 from anywhere"}
    apply("lab", NODES)
    assert writes() == [
        "GET s/nodes-id",
        "PUT s/nodes-id/tags/openstack-prep%3aother~rules~rule-1",  # first, so that it is never missing beside lab's
        "PUT s/nodes-id/tags/openstack-prep%3alab~rules~rule-1",
        "GET s/nodes-id",
    ]
    assert not plan(as_spec("other"), NODES).pending
    assert not neutron.rule_posts.called


@pytest.mark.parametrize(("first", "last"), [("lab", "other"), ("other", "lab")])
def test_a_rule_goes_with_the_last_owner(neutron: Neutron, writes: Any, first: str, last: str) -> None:
    apply("lab", NODES)
    before = len(writes())
    destroy(first, NODES)
    gone = f"DELETE s/nodes-id/tags/openstack-prep%3a{first}~rules~rule-1"
    assert writes(before) == ["GET s/nodes-id", gone, "GET s/nodes-id"]
    assert not plan(as_spec(last), NODES).pending
    before = len(writes())
    destroy(last, NODES)
    gone = f"DELETE s/nodes-id/tags/openstack-prep%3a{last}~rules~rule-1"
    assert writes(before) == ["GET s/nodes-id", "DELETE -rules/rule-1", gone, "GET s/nodes-id"]
    assert not neutron.tags("nodes")


def test_a_rule_that_is_no_longer_declared_stays_for_the_other(neutron: Neutron, writes: Any) -> None:
    both = SecurityGroupRules(name="nodes", rules=(HTTP, HTTPS))
    apply("lab", both)
    apply("other", both)
    assert neutron.tags("nodes") == ["lab~rules~rule-1", "lab~rules~rule-4", "other~rules~rule-1", "other~rules~rule-4"]
    apply("lab", SecurityGroupRules(name="nodes", rules=()))
    assert neutron.tags("nodes") == ["other~rules~rule-1", "other~rules~rule-4"]
    assert not plan(as_spec("other"), both).pending


def test_who_comes_back_is_an_owner_again(neutron: Neutron, writes: Any) -> None:
    apply("lab", NODES)
    destroy("other", NODES)
    apply("other", NODES)  # the description of the rule still names it
    destroy("lab", NODES)
    assert not plan(as_spec("other"), NODES).pending


def test_a_rule_made_by_hand_gets_no_record_and_stays(neutron: Neutron, writes: Any) -> None:
    neutron.group("nodes", "made by hand", [neutron.rule(THEIRS, **PORT)])
    for name in ("lab", "other"):
        assert not plan(as_spec(name), NODES).pending
        destroy(name, NODES)
    assert writes() == []


def test_many_rules_need_few_tags(neutron: Neutron, writes: Any) -> None:
    """Neutron allows 50 tags per group."""
    ids = [f"{number:08x}-1111-2222" for number in range(40)]
    rules = [
        neutron.rule(OTHERS, id=each, protocol="tcp", port_range_min=n + 1, port_range_max=n + 1)
        for n, each in enumerate(ids)
    ]
    neutron.group("nodes", "made by hand", rules)
    many = SecurityGroupRules(name="nodes", rules=tuple(Rule(protocol="tcp", ports=str(n + 1)) for n in range(40)))
    apply("lab", many)
    tags = neutron.groups["nodes-id"]["tags"]
    assert len(tags) == 6
    assert max(map(len, tags)) <= 255
    fewer = SecurityGroupRules(name="nodes", rules=many.rules[1:])
    apply("lab", fewer)
    group = GroupRecord.read(neutron.groups["nodes-id"])
    assert [len(owners_of(group, rule)) for rule in group.security_group_rules] == [0, 0, 1, *([2] * 39)]


def test_a_rule_that_goes_while_it_is_recorded_is_created(
    services: requests_mock.Mocker, neutron: Neutron, writes: Any
) -> None:
    def destroyed(request: Any, context: Any) -> Any:
        neutron.groups["nodes-id"]["security_group_rules"].pop()
        services.put(record, json=neutron.add_tag)
        return neutron.add_tag(request, context)

    record = f"{NEUTRON}/security-groups/nodes-id/tags/openstack-prep%3Aother~rules~rule-1"
    services.put(record, json=destroyed)
    apply("lab", NODES)
    (rule,) = neutron.rule_posts.last_request.json()["security_group_rules"]
    assert rule["description"] == LABS
    group = GroupRecord.read(neutron.groups["nodes-id"])
    assert owners_of(group, group.security_group_rules[-1]) == {"lab"}
    assert neutron.tags("nodes") == []  # nobody else would delete those of "other"


def test_a_rule_that_another_spec_joins_while_it_is_deleted_is_created_again(
    services: requests_mock.Mocker, neutron: Neutron, writes: Any
) -> None:
    def joined(request: Any, context: Any) -> Any:
        group = GroupRecord.read(neutron.groups["nodes-id"])
        for name in ("lab", "x y"):
            rules = SharedRules(network=joining.admin.network, spec=name, group_id="nodes-id", placing={})
            rules.join(group.security_group_rules[-1:])
        return neutron.delete_rule(request, context)

    joining = as_spec("lab")
    services.delete(f"{NEUTRON}/security-group-rules/rule-1", json=joined)
    destroy("other", NODES)
    made = neutron.rule_posts.last_request.json()["security_group_rule"]
    assert {**PORT, "security_group_id": "nodes-id", "description": LABS}.items() <= made.items()
    group = GroupRecord.read(neutron.groups["nodes-id"])
    assert owners_of(group, group.security_group_rules[-1]) == {"lab", "x y"}
    assert not left_records(group, "other")
    assert not plan(as_spec("lab"), NODES).pending


def test_the_last_two_owners_leave_at_once(services: requests_mock.Mocker, neutron: Neutron, writes: Any) -> None:
    apply("lab", NODES)

    def left(request: Any, context: Any) -> Any:
        neutron.groups["nodes-id"]["tags"].remove(f"{LAB}rule-1")
        return neutron.delete_tag(request, context)

    services.delete(f"{NEUTRON}/security-groups/nodes-id/tags/openstack-prep%3Aother~rules~rule-1", json=left)
    destroy("other", NODES)
    assert len(neutron.groups["nodes-id"]["security_group_rules"]) == 2  # Neutron's own
    assert neutron.tags("nodes") == []


def test_a_record_that_a_killed_run_has_left_goes_with_the_next(neutron: Neutron, writes: Any) -> None:
    neutron.groups["nodes-id"]["tags"] = [f"{LAB}gone.rule-1", f"{OTHER}gone", "mine"]
    destroy("lab", NODES)
    assert neutron.groups["nodes-id"]["tags"] == [f"{OTHER}gone", "mine"]
    assert writes()[:4] == [
        "GET s/nodes-id",
        "DELETE -rules/rule-1",
        "DELETE s/nodes-id/tags/openstack-prep%3alab~rules~gone.rule-1",
        "GET s/nodes-id",
    ]


def test_a_tag_without_ids_is_no_record() -> None:
    assert not RECORD.fullmatch("openstack-prep:lab~rules~")
