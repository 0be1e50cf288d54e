"""What many deletions take from others is read by few lists, and a service that does not answer is waited for once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import requests
import requests_mock

from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import observation
from openstack_prep.core.deletion_loss import LossEffect
from openstack_prep.core.model import Action, Observed, Resource, Step
from openstack_prep.core.plan import Plan
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.lists.neutron_records import GroupRecord
from openstack_prep.resources.network.security_group import SecurityGroup
from tests.unit.conftest import ENDPOINTS, IDENTITY, failure, sent

NOVA, NEUTRON, CINDER = ENDPOINTS["compute"], "http://neutron/v2.0", ENDPOINTS["block-storage"]
USERS = [f"u{number}" for number in range(1, 7)]


def plan_of(resources: Sequence[tuple[Resource, Observed]]) -> Plan:
    steps = (Step(resource=each, action=Action.DELETE, observed=seen) for each, seen in resources)
    return Plan(spec="lab", purpose="destroy", steps=tuple(steps))


def users() -> Plan:
    return plan_of([(User(name=each, password=Secret("s")), Observed(id=each, ours=True)) for each in USERS])


def losses_in(plan: Plan) -> list[str]:
    return [f"{step.key.name}: {loss.effect} {loss.address}" for step in plan for loss in step.deletion_losses]


def asked(services: requests_mock.Mocker) -> Counter[str]:
    """Return how often each path was asked, whatever the parameters and the user."""
    return Counter(
        re.sub(r"/users/u\d", "/users/U", each.partition("?")[0].removeprefix("GET ")) for each in sent(services)
    )


@pytest.fixture
def keystone(services: requests_mock.Mocker) -> requests_mock.Mocker:
    """A Keystone in which others have something to do with u2 and u3: it filters as Keystone does."""
    trusts = [{"id": "t1", "trustor_user_id": "x", "trustee_user_id": "u2", "impersonation": False, "project_id": ""}]
    credentials = [{"id": "c1", "user_id": "u2", "type": "ec2", "blob": "of-a-secret"}, {"id": "c2", "user_id": "x"}]
    scope = {"project": {"id": "p9", "name": "theirs"}}
    role = {"id": "r1", "name": "member"}
    assignments = [{"user": {"id": each, "name": each}, "role": role, "scope": scope} for each in ("u3", "x")]

    def listed(name: str, rows: list[Any], *fields: str) -> Any:
        def answer(request: Any, _: Any) -> dict[str, Any]:
            wanted = {field: request.qs[field][0] for field in fields if field in request.qs}
            return {name: [raw for raw in rows if all(_at(raw, field) == value for field, value in wanted.items())]}

        return answer

    services.get(f"{IDENTITY}/OS-TRUST/trusts", json=listed("trusts", trusts, "trustor_user_id", "trustee_user_id"))
    services.get(f"{IDENTITY}/credentials", json=listed("credentials", credentials, "user_id"))
    services.get(f"{IDENTITY}/role_assignments", json=listed("role_assignments", assignments, "user.id"))
    group = {"id": "g1", "name": "theirs"}
    services.get(f"{IDENTITY}/domains", json={"domains": [{"id": "default"}, {"id": "d2"}]})
    services.get(f"{IDENTITY}/groups?domain_id=default", json={"groups": []})
    services.get(f"{IDENTITY}/groups?domain_id=d2", json={"groups": [group]})
    services.get(f"{IDENTITY}/groups/g1/users", json={"users": [{"id": "u3"}, {"id": "x"}]})
    services.get(f"{IDENTITY}/users/x", json={"user": {"id": "x", "name": "x"}})
    services.get(f"{NOVA}/os-keypairs", json={"keypairs": []})
    for each in USERS:
        services.get(f"{IDENTITY}/users/{each}", json={"user": {"id": each, "name": each}})
        services.get(f"{IDENTITY}/users/{each}/application_credentials", json={"application_credentials": []})
        services.get(f"{IDENTITY}/users/{each}/groups", json={"groups": [group] if each == "u3" else []})
    return services


def _at(raw: Any, field: str) -> Any:
    for name in field.split("."):
        raw = raw[name]
    return raw


LOST = [
    "u2: deleted credential/c1",
    "u2: deleted trust/t1",
    "u3: deleted role_assignment/user:u3@project:theirs/member",
    "u3: cut off group/g1",
]


def test_one_list_is_read_for_all_users(run: CloudRun, keystone: requests_mock.Mocker) -> None:
    assert losses_in(observation.find_losses(run, users())) == LOST
    found = asked(keystone)
    assert (found["/v3/os-trust/trusts"], found["/v3/credentials"], found["/v3/domains"]) == (1, 1, 1)
    assert (found["/v3/groups"], found["/v3/groups/g1/users"], found["/v3/users/U/groups"]) == (2, 1, 0)
    assert found["/v3/role_assignments"] == 2  # of all, and with names of the one who has more
    assert (found["/v3/users/U/application_credentials"], found["/v2.1/os-keypairs"]) == (6, 6)


@pytest.mark.parametrize("answer", ["refused", "truncated", "failed"])
def test_what_is_not_listed_as_a_whole_is_read_of_each_user(
    run: CloudRun, keystone: requests_mock.Mocker, answer: str
) -> None:
    for path, name in (("OS-TRUST/trusts", "trusts"), ("credentials", "credentials"), ("domains", "domains")):
        answers = {
            "refused": failure(403),
            "truncated": {"json": {name: [], "truncated": True}},
            "failed": failure(504),
        }

        def is_whole(request: Any) -> bool:
            return not request.query

        keystone.get(f"{IDENTITY}/{path}", additional_matcher=is_whole, **answers[answer])
    assert losses_in(observation.find_losses(run, users())) == LOST
    assert asked(keystone)["/v3/users/U/groups"] == 6
    before = asked(keystone)
    observation.find_losses(run.fresh(), users())
    assert asked(keystone)["/v3/domains"] == before["/v3/domains"]  # it is not tried again


def test_flavors_share_the_list_of_servers(run: CloudRun, services: requests_mock.Mocker) -> None:
    names = [f"f{number}" for number in range(1, 7)]
    flavors = [(Flavor(name=each, ram=1, vcpus=1, disk=1), Observed(id=f"id-{each}", ours=True)) for each in names]
    services.get(f"{NOVA}/flavors/detail", json={"flavors": []})
    servers = [{"id": f"s-{each}", "name": each, "flavor": {"original_name": each}} for each in ("f2", "f3", "x")]
    services.get(f"{NOVA}/servers/detail", json={"servers": servers})
    services.get(f"{NOVA}/servers/detail?flavor=id-f2", json={"servers": servers[:1]})
    services.get(f"{NOVA}/servers/detail?flavor=id-f3", json={"servers": []})  # of an earlier flavor of that name
    assert losses_in(observation.find_losses(run, plan_of(flavors))) == ["f2: cut off server/s-f2"]
    assert asked(services)["/v2.1/servers/detail"] == 3


def test_ids_are_asked_for_in_requests_that_servers_take(run: CloudRun, services: requests_mock.Mocker) -> None:
    ids = [f"00000000-0000-0000-0000-{number:012}" for number in range(120)]
    groups = [
        (SecurityGroup(name=each), Observed(id=each, ours=True, record=GroupRecord(id=each, name=each))) for each in ids
    ]
    rules = services.get(f"{NEUTRON}/security-group-rules", json={"security_group_rules": []})
    observation.find_losses(run, plan_of(groups))
    assert rules.call_count == 2 * 3
    assert all(len(request.url) < 4096 for request in rules.request_history)
    of_groups = [each.qs["security_group_id"] for each in rules.request_history if "security_group_id" in each.qs]
    assert sorted(each for listed in of_groups for each in listed) == ids


@pytest.mark.parametrize("answer", [failure(503), {"exc": requests.exceptions.ConnectionError("refused")}])
def test_a_service_that_does_not_answer_is_waited_for_once(
    run: CloudRun, services: requests_mock.Mocker, answer: dict[str, Any]
) -> None:
    services.get(
        re.compile("^http://"), json=lambda request, _: {request.path.rpartition("/")[2].replace("-", "_"): []}
    )
    cinder = services.get(re.compile(f"^{CINDER}/"), **answer)
    (step,) = observation.find_losses(run, plan_of([(Project(name="lab"), Observed(id="p1", ours=True))]))
    unread = {loss.id: loss.detail for loss in step.deletion_losses if loss.effect is LossEffect.UNREAD}
    assert {"volume", "snapshot", "backup"} <= unread.keys()
    assert all(f"GET block-storage/{kind}s/detail: " in unread[kind] for kind in ("volume", "snapshot", "backup"))
    texts = {unread[kind].replace(kind, "KIND") for kind in ("volume", "snapshot", "backup")}
    assert len(texts) == 1  # plans are compared: it does not matter which was asked first
    assert cinder.call_count == 2
