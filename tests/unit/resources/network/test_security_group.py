from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Context, OwnershipTag, Resource, Step
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule as Rule
from openstack_prep.spec import spec_of
from tests.unit.conftest import connection, failure, sent
from tests.unit.resources.security_groups import NEUTRON, OURS, THEIRS, Neutron
from tests.unit.texts import contains

DEFAULTS = "[openstack-prep:lab/default]"

HTTP = Rule(protocol="tcp", ports="80")
WITHIN = Rule(remote_group="self")


def apart(run: CloudRun, *groups: SecurityGroup) -> list[Resource]:
    context = Context(resources=groups, cloud=run.admin)
    return [part for group in groups for part in group.resolve(context)]


def plan(run: CloudRun, *groups: SecurityGroup) -> Plan:
    resources = apart(run, *groups)
    observed, mistakes = observation.examine(run, resources)
    run.known.update(observed)
    return planner.plan_apply("lab", resources, observed, mistakes=mistakes)


def apply(run: CloudRun, *groups: SecurityGroup) -> Report:
    made = plan(run, *groups)
    made.raise_for_refusals()
    report = executor.execute(made, run)
    report.raise_for_failures()
    return report


def pending(*groups: SecurityGroup) -> dict[str, Step]:
    """Return what another run would do."""
    return {str(step.key): step for step in plan(CloudRun(Cloud(connection()), OwnershipTag("lab")), *groups).pending}


def destroy(run: CloudRun, group: SecurityGroup) -> None:
    resources = apart(run, group)
    executor.execute(
        planner.plan_destroy("lab", resources, observation.observe(run, resources)), run
    ).raise_for_failures()


def test_it_is_made_by_two_requests(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    group = SecurityGroup(name="web", rules=(HTTP, WITHIN, Rule(direction="egress")))
    apply(run, group)
    assert neutron.group_posts.last_request.json() == {"security_group": {"name": "web", "description": OURS}}
    http, within = neutron.rule_posts.last_request.json()["security_group_rules"]  # Neutron made the egress rule
    assert (http["protocol"], http["port_range_min"], http["port_range_max"]) == ("tcp", 80, 80)
    assert within["remote_group_id"] == within["security_group_id"] == "web-id"
    assert {http["description"], within["description"]} == {OURS}
    assert [each for each in sent(services) if each.startswith("POST")] == [
        "POST /v2.0/security-groups",
        "POST /v2.0/security-group-rules",
    ]
    assert not pending(group)


def test_what_is_missing_is_added_and_foreign_rules_stay(run: CloudRun, neutron: Neutron) -> None:
    neutron.group(rules=[neutron.rule(THEIRS, protocol="udp"), neutron.rule(OURS)])
    group = SecurityGroup(name="web", rules=(HTTP, Rule(), Rule(protocol="udp")))
    (change,) = pending(group)["security_group_rules/web"].changes
    assert change.after - change.before == {"ingress IPv4 tcp 80 from anywhere"}
    apply(run, group)
    (rule,) = neutron.rule_posts.last_request.json()["security_group_rules"]
    assert rule["protocol"] == "tcp"
    assert not pending(group)


def test_ours_goes_when_it_is_no_longer_declared(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    neutron.group(rules=[neutron.rule(THEIRS, protocol="udp"), neutron.rule(OURS, protocol="tcp")])
    apply(run, SecurityGroup(name="web", rules=()))
    group = "GET /v2.0/security-groups/web-id"  # before and after, because another spec may declare the rule, too
    assert sent(services)[-3:] == [group, "DELETE /v2.0/security-group-rules/rule-2", group]
    assert not neutron.rule_posts.called


def test_rules_unset_are_left_alone(run: CloudRun, neutron: Neutron) -> None:
    neutron.group(rules=[neutron.rule(OURS, protocol="tcp")])
    assert not pending(SecurityGroup(name="web"))


def test_a_rule_that_is_there_by_now_counts(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    """Somebody adds the very rule between our look and our request: 409, and looking again settles it."""
    group = neutron.group()

    def refuse(request: Any, context: Any) -> Any:
        group["security_group_rules"].append(neutron.rule(THEIRS, protocol="tcp", port_range_min=80, port_range_max=80))
        context.status_code = 409
        return {"NeutronError": {"type": "SecurityGroupRuleExists", "message": "already exists", "detail": ""}}

    refused = services.post(f"{NEUTRON}/security-group-rules", json=refuse)
    apply(run, SecurityGroup(name="web", rules=(HTTP,)))
    assert refused.call_count == 1


def test_a_lost_answer_adds_no_rule_twice(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    neutron.group()

    def lose(request: Any, context: Any) -> Any:
        neutron.add_rules(request, context)
        context.status_code = 502
        return {}

    lost = services.post(f"{NEUTRON}/security-group-rules", json=lose)
    apply(run, SecurityGroup(name="web", rules=(HTTP,)))
    assert lost.call_count == 1


def test_a_rule_of_another_group(run: CloudRun, neutron: Neutron) -> None:
    balancer = SecurityGroup(name="lb")
    web = SecurityGroup(name="web", rules=(Rule(remote_group="lb"),))
    apply(run, web, balancer)
    assert neutron.rule_posts.last_request.json()["security_group_rules"][0]["remote_group_id"] == "lb-id"
    assert not pending(web, balancer)


def test_a_rule_of_a_group_that_nobody_has_is_a_mistake(run: CloudRun, neutron: Neutron) -> None:
    (refusal,) = plan(run, SecurityGroup(name="web", rules=(Rule(remote_group="lb"),))).refusals
    assert refusal.code == "spec.unresolved-reference"
    assert contains(str(refusal), "security_group/lb")


def test_groups_may_name_each_other(run: CloudRun, neutron: Neutron) -> None:
    one = SecurityGroup(name="one", rules=(Rule(remote_group="two"),))
    two = SecurityGroup(name="two", rules=(Rule(remote_group="one"),))
    apply(run, one, two)
    sent_rules = [request.json()["security_group_rules"][0] for request in neutron.rule_posts.request_history]
    pairs = {(rule["security_group_id"], rule["remote_group_id"]) for rule in sent_rules}
    assert pairs == {("one-id", "two-id"), ("two-id", "one-id")}
    assert not pending(one, two)


def test_a_foreign_group_gives_back_only_our_rules(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    neutron.group(
        "default", "Default security group", rules=[neutron.rule(DEFAULTS), neutron.rule(THEIRS, protocol="tcp")]
    )
    destroy(run, SecurityGroup(name="default", rules=(Rule(),)))
    assert [each for each in sent(services) if each.startswith("DELETE")] == [
        "DELETE /v2.0/security-group-rules/rule-1"
    ]


def test_a_foreign_group_with_our_rules_gets_no_mark(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    group = neutron.group("default", "Default security group", rules=[neutron.rule(DEFAULTS)])
    changed = services.put(f"{NEUTRON}/security-groups/default-id", json={"security_group": group})
    apply(run, SecurityGroup(name="default", description="ours now", rules=(Rule(),), adopt=True))
    assert changed.last_request.json() == {"security_group": {"description": "ours now"}}
    assert changed.last_request.headers["If-Match"] == "revision_number=1"


def test_a_new_description_keeps_the_leases_of_runs(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    """The group "default" stores them, and other runs hold some of them at this moment."""
    block = f"[openstack-prep 1 {'a' * 9}]"
    group = neutron.group("default", f"Default security group {block}")
    changed = services.put(f"{NEUTRON}/security-groups/default-id", json={"security_group": group})
    apply(run, SecurityGroup(name="default", description="new", adopt=True))
    assert changed.last_request.json() == {"security_group": {"description": f"new {block}"}}
    assert not pending(SecurityGroup(name="default", description="Default security group", adopt=True))


@pytest.mark.parametrize("copies", [1, 2])
def test_a_rule_that_another_spec_owns_is_recorded_and_not_added(run: CloudRun, neutron: Neutron, copies: int) -> None:
    theirs = {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}
    neutron.group(rules=[neutron.rule("[openstack-prep:other/web]", **theirs) for _ in range(copies)])
    group = SecurityGroup(name="web", rules=(HTTP,))
    (step,) = plan(run, group).pending
    assert isinstance(step.resource, SecurityGroupRules)
    assert step.resource.quota_need(run, step.changes) == {"security_group_rules": 0}
    apply(run, group)
    assert not neutron.rule_posts.called
    assert any(each.startswith("lab~") for each in neutron.tags()), neutron.tags()
    assert not pending(group)


def test_groups_of_others_may_share_a_name(run: CloudRun, neutron: Neutron) -> None:
    """A rule that admits one of them is read for what the spec no longer declares."""
    neutron.group(
        rules=[neutron.rule(OURS, remote_group_id="twin-id"), neutron.rule(THEIRS, remote_group_id="lone-id")]
    )
    for name, group in (("twin", "twin-id"), ("twin", "other-id"), ("lone", "lone-id")):
        neutron.group(group.removesuffix("-id"), THEIRS)["name"] = name
    found = {each.name: (each, observed) for each, observed in SecurityGroupRules.scan(run, None) if observed.ours}
    ((rules, observed),) = found.values()
    assert {each.remote_group for each in rules.rules} == {"twin", "lone", None}
    assert {"ingress IPv4 any from twin", "ingress IPv4 any from lone"} < observed.values["rules"]


def test_our_own_group_goes_with_its_rules(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    neutron.group(rules=[neutron.rule(OURS)])
    services.delete(f"{NEUTRON}/security-groups/web-id", status_code=204)
    destroy(run, SecurityGroup(name="web", rules=(Rule(),)))
    assert [each for each in sent(services) if each.startswith("DELETE")] == ["DELETE /v2.0/security-groups/web-id"]


@pytest.mark.parametrize(("others", "is_deleted"), [([], True), ([THEIRS], False)])
def test_a_rule_that_came_in_does_not_go_with_the_group(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron, others: list[str], is_deleted: bool
) -> None:
    """A group that only lost a rule, as when the group that it admits is deleted, goes all the same."""
    group = neutron.group(rules=[neutron.rule(OURS), neutron.rule(OURS, protocol="tcp")])
    group["revision_number"] = 1

    def delete(request: Any, context: Any) -> Any:
        if group["revision_number"] == 1:  # somebody was faster
            group["security_group_rules"] = [
                group["security_group_rules"][0],
                *(neutron.rule(tag, protocol="udp") for tag in others),
            ]
            services.get(
                f"{NEUTRON}/security-group-rules", json={"security_group_rules": group["security_group_rules"]}
            )
            group["revision_number"] = 2
        is_same = request.headers["If-Match"] == f"revision_number={group['revision_number']}"
        context.status_code = 204 if is_same else 412
        return None if is_same else failure(412)["json"]

    deleted = services.delete(f"{NEUTRON}/security-groups/web-id", json=delete)
    resources = apart(run, SecurityGroup(name="web", rules=(Rule(), Rule(protocol="tcp"))))
    report = executor.execute(planner.plan_destroy("lab", resources, observation.observe(run, resources)), run)
    assert bool(report.failed) is not is_deleted
    assert [each.headers["If-Match"][-1] for each in deleted.request_history] == (["1", "2"] if is_deleted else ["1"])


def test_the_default_group_is_never_managed(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    """Neutron 29.0.0, db/securitygroups_db.py: delete_security_group refuses it unless an administrator asks."""
    neutron.group("default", "[openstack-prep:lab/default]")
    destroy(run, SecurityGroup(name="default"))
    assert [each for each in sent(services) if each.startswith("DELETE")] == []


@pytest.mark.parametrize(("name", "adopt", "valid"), [("default", "permanently", False), ("default", True, True)])
def test_the_default_group_cannot_be_taken_over(name: str, adopt: bool | str, valid: bool) -> None:
    declared = {"name": "lab", "security_groups": [{"name": name, "adopt": adopt}]}
    with contextlib.nullcontext() if valid else pytest.raises(SpecError, match="default belongs to its project"):
        spec_of(declared, "lab.yaml", Path())
