from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import requests_mock
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.errors import ResourceFailed
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss
from openstack_prep.core.model import Action, Key
from openstack_prep.resources.compute.flavor import Flavor
from tests.unit.conftest import ENDPOINTS, IDENTITY, declared_mistakes, failure, sent
from tests.unit.texts import Wording

NOVA = ENDPOINTS["compute"]
MASTER = Flavor(name="master", vcpus=4, ram=16384, disk=25)
KEY = Key("flavor", "master")


def answer(**fields: Any) -> dict[str, Any]:
    """Return a flavor as Nova tells it."""
    return {
        "id": "f1",
        "name": "master",
        "vcpus": 4,
        "ram": 16384,
        "disk": 25,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "swap": "",
        "rxtx_factor": 1.0,
        "os-flavor-access:is_public": True,
        "description": "[openstack-prep:lab/master]",
        "extra_specs": {},
    } | fields


@pytest.fixture
def listed(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """What Nova lists; a test fills it."""
    flavors: list[dict[str, Any]] = []
    services.get(f"{NOVA}/flavors/detail", json=lambda *_: {"flavors": flavors})
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "enabled": True}]})
    return flavors


def plan(run: CloudRun, flavor: Flavor) -> Any:
    observed, mistakes = observation.examine(run, [flavor])
    return planner.plan_apply("lab", [flavor], observed, mistakes=mistakes)


def apply(run: CloudRun, flavor: Flavor) -> Any:
    return executor.execute(plan(run, flavor), run)


def test_it_is_made_by_one_request(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    made = services.post(f"{NOVA}/flavors", json={"flavor": answer()})
    apply(run, MASTER).raise_for_failures()
    assert made.last_request.json()["flavor"] == {
        "name": "master",
        "vcpus": 4,
        "ram": 16384,
        "disk": 25,
        "description": "[openstack-prep:lab/master]",
    }
    assert made.last_request.headers["X-OpenStack-Nova-API-Version"] == "2.64"
    assert sent(services) == ["GET /v2.1/flavors/detail?is_public=none", "POST /v2.1/flavors"]


def test_a_deletion_takes_access_from_projects_that_the_spec_does_not_declare(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(**{"os-flavor-access:is_public": False, "description": "big [openstack-prep:lab/master]"}))
    rows = [{"flavor_id": "f1", "tenant_id": each} for each in ("p1", "p9")]
    services.get(f"{NOVA}/flavors/f1/os-flavor-access", json={"flavor_access": rows})
    services.get(f"{NOVA}/servers/detail", json={"servers": []})
    services.get(f"{IDENTITY}/projects/p9", json={"project": {"id": "p9", "name": "theirs"}})
    private = replace(MASTER, is_public=False, access=("lab",))
    observed = Flavor.find(run, [private])[KEY]
    losses = Flavor.find_losses(run, [Deletion(private, observed)], frozenset())
    assert [(key, found.address) for key, found in losses if isinstance(found, DeletionLoss)] == [(KEY, "project/p9")]
    ((declared, _),) = Flavor.scan(run, None)
    assert (declared.description, declared.is_public) == ("big", False)


def test_it_is_kept(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(extra_specs={"hw:cpu_policy": "dedicated", "theirs": "stays"}))
    (step,) = plan(run, Flavor(name="master", ram=16384, swap=0, extra_specs={"hw:cpu_policy": "dedicated"}))
    assert step.action is Action.KEEP
    assert step.observed.ours


def test_killed_before_its_extra_specs_and_access(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(**{"os-flavor-access:is_public": False}))
    services.get(f"{NOVA}/flavors/f1/os-flavor-access", json={"flavor_access": []})
    specs = services.post(f"{NOVA}/flavors/f1/os-extra_specs", json={})
    access = services.post(f"{NOVA}/flavors/f1/action", json={})
    flavor = Flavor(name="master", is_public=False, extra_specs={"a": "1"}, access=("lab",))
    report = apply(run, flavor)
    report.raise_for_failures()
    assert [change.field for change in report.results[0].step.changes] == ["extra_specs", "access"]
    assert specs.last_request.json() == {"extra_specs": {"a": "1"}}
    assert access.last_request.json() == {"addTenantAccess": {"tenant": "p1"}}
    assert planner.diff(flavor, report.results[0].observed) == ()


def test_access_is_for_the_projects_of_its_domain(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(**{"os-flavor-access:is_public": False}))
    services.get(f"{NOVA}/flavors/f1/os-flavor-access", json={"flavor_access": []})
    services.get(f"{IDENTITY}/domains", json={"domains": [{"id": "corp-id", "name": "corp"}]})
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    for number, name in enumerate(("a", "b"), start=1):
        found = [{"id": f"p{number}", "enabled": True}]
        services.get(f"{IDENTITY}/projects?name={name}&domain_id=corp-id", json={"projects": found})
    access = services.post(f"{NOVA}/flavors/f1/action", json={})
    flavor = Flavor(name="master", is_public=False, access=("a", "b"), access_domain="corp")
    apply(run, flavor).raise_for_failures()
    added = [each.json()["addTenantAccess"]["tenant"] for each in access.request_history]
    assert added == ["p1", "p2"]


def test_another_size_is_refused_and_shown(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(vcpus=2, disk=10))
    made = plan(run, MASTER)
    assert [step.action for step in made] == [Action.REPLACE]
    assert "vcpus 2 -> 4, disk 10 -> 25" in str(made.refusals[0])


@pytest.fixture
def smaller(services: requests_mock.Mocker, listed: list[Any]) -> Any:
    """A flavor of the spec to replace, at which others have set extra specs, also after it was listed."""
    listed.append(answer(vcpus=2, description="theirs [openstack-prep:lab/master]", extra_specs={"a": "0", "b": "2"}))
    now = {"a": "0", "b": "3", "c": "4"}
    services.get(f"{NOVA}/flavors/f1/os-extra_specs", json={"extra_specs": now})
    services.delete(f"{NOVA}/flavors/f1", status_code=202)
    return services


WANTED = replace(MASTER, extra_specs={"a": "1"})


def test_a_replacement_keeps_what_others_have_set(run: CloudRun, smaller: requests_mock.Mocker) -> None:
    made = smaller.post(f"{NOVA}/flavors", json={"flavor": answer(id="f2")})
    specs = smaller.post(f"{NOVA}/flavors/f2/os-extra_specs", json={})
    observed = observation.observe(run, [WANTED])[WANTED.key]
    again = WANTED.recreate(run, observed)
    assert again.id == "f2"
    assert planner.diff(WANTED, again) == ()
    assert made.last_request.json()["flavor"]["description"] == "theirs [openstack-prep:lab/master]"
    assert specs.last_request.json() == {"extra_specs": {"a": "1", "b": "3", "c": "4"}}


def test_a_replacement_that_fails_names_what_others_have_set(run: CloudRun, smaller: requests_mock.Mocker) -> None:
    smaller.post(f"{NOVA}/flavors", **failure(403, "quota"))
    observed = observation.observe(run, [WANTED])[WANTED.key]
    with pytest.raises(ResourceFailed, match=": b=3, c=4"):
        WANTED.recreate(run, observed)


@pytest.mark.parametrize(
    ("before", "after"),
    [("[openstack-prep:lab/master]", "big [openstack-prep:lab/master]"), ("theirs", "big")],
)
def test_a_foreign_flavor_gets_no_mark(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], before: str, after: str
) -> None:
    listed.append(answer(description=before))
    changed = services.put(f"{NOVA}/flavors/f1", json={"flavor": answer()})
    apply(run, Flavor(name="master", description="big")).raise_for_failures()
    assert changed.last_request.json() == {"flavor": {"description": after}}


def test_a_lost_answer_makes_no_second_one(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    def make(request: Any, context: Any) -> Any:
        listed.append(answer())
        context.status_code = 502
        return {}

    services.post(f"{NOVA}/flavors", json=make)
    apply(run, MASTER).raise_for_failures()
    assert sent(services).count("POST /v2.1/flavors") == 1


def test_without_sizes_it_must_exist(run: CloudRun, listed: list[Any], wording: Wording) -> None:
    wording(str(plan(run, Flavor(name="master")).refusals[0]))


@pytest.mark.parametrize("name", ["m1.größe", "GPU (A100)", "4C/8G", "c+x", "a:b", "a\u00a0b"])
def test_a_new_name_has_any_printable_characters(run: CloudRun, listed: list[Any], name: str) -> None:
    """Only the id of a flavor is letters, digits and a few others; openstack-prep sets none."""
    assert not plan(run, Flavor(name=name, vcpus=1, ram=1)).refusals


@pytest.mark.parametrize("name", ["small ", " small", "small\u3000", "a\u200bb"])
def test_a_new_name_that_nova_refuses(run: CloudRun, listed: list[Any], name: str) -> None:
    flavor = Flavor(name=name, vcpus=1, ram=1)
    (mistake,) = plan(run, flavor).refusals
    assert (mistake.code, mistake.field) == ("spec.invalid-value", "name")
    listed.append(answer(name=name, description=""))
    assert not plan(run.fresh(), Flavor(name=name)).refusals


@pytest.mark.parametrize("is_public", [None, True])
def test_access_to_a_public_flavor_is_a_mistake(run: CloudRun, listed: list[Any], is_public: bool | None) -> None:
    flavor = Flavor(name="new", vcpus=1, ram=1, access=("lab",), is_public=is_public)
    (mistake,) = declared_mistakes(flavor) if is_public else plan(run, flavor).refusals
    assert (mistake.code, mistake.field, mistake.keys) == ("spec.contradiction", "access", (flavor.key,))


def test_a_refused_request_says_why(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    services.post(f"{NOVA}/flavors", **failure(403, "Policy doesn't allow"))
    (result,) = apply(run, MASTER).failed
    assert "Policy doesn't allow" in str(result.error)


def read(**fields: Any) -> Flavor:
    return TypeAdapter(Flavor).validate_json(json.dumps({"name": "master", **fields}))


def test_sizes_and_extra_specs_as_people_write_them() -> None:
    flavor = read(ram="16GiB", disk="25", swap="512MiB", rxtx_factor=2, extra_specs={"hw:numa_nodes": 2, "x": True})
    assert (flavor.ram, flavor.disk, flavor.swap, flavor.rxtx_factor) == (16384, 25, 512, 2.0)
    assert flavor.extra_specs == {"hw:numa_nodes": "2", "x": "true"}


@pytest.mark.parametrize(
    "fields",
    [{"ram": 0}, {"ram": 16 * 2**30}, {"ram": -1}, {"vcpus": 0}, {"vcpus": 10**6}, {"disk": "-5GiB"}, {"disk": 2**40}],
)
def test_absurd_sizes(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(**fields)


def test_those_with_the_tag_of_the_spec_are_scanned_among_many(run: CloudRun, listed: list[Any]) -> None:
    tags = (
        "[openstack-prep:lab/a]",
        "text [openstack-prep:lab/a@home]",
        "[openstack-prep:lab]",
        "[openstack-prep:lab2/a]",
    )
    for number, text in enumerate((*tags, "lab", None)):
        listed.append(answer(id=str(number), name=str(number), description=text))
    every = [observed for _, observed in Flavor.scan(run, None)]
    tagged = [observed for _, observed in Flavor.scan_tagged(run, None)]
    assert len(every) == 6
    assert [each for each in tagged if each.ours] == [each for each in every if each.ours] != []
    assert "4" not in {each.id for each in tagged}


@pytest.mark.parametrize(
    ("tag", "action", "owner"),
    [
        ("[openstack-prep:lab/master]", Action.CREATE, None),  # of a request whose answer was lost
        ("[openstack-prep:other/master]", Action.KEEP, "spec other"),
        ("", Action.KEEP, "not managed"),
    ],
)
def test_what_somebody_else_has_created_meanwhile_is_not_reported_as_created(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], tag: str, action: Action, owner: str | None
) -> None:
    made = plan(run, MASTER)

    def conflict(request: Any, context: Any) -> Any:
        listed.append(answer(description=tag))
        context.status_code = 409
        return failure(409)["json"]

    services.post(f"{NOVA}/flavors", json=conflict)
    notes: list[str] = []
    report = executor.execute(made, run, tell=lambda event: notes.append(event.note))
    report.raise_for_failures()
    assert [each.step.action for each in report.results] == [action]
    assert [owner in note for note in notes if owner and "somebody else" in note] == ([True] if owner else [])


def test_a_creation_returns_the_extra_specs_and_access_that_it_has_set(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    services.post(f"{NOVA}/flavors", json={"flavor": answer(**{"os-flavor-access:is_public": False})})
    services.post(f"{NOVA}/flavors/f1/os-extra_specs", json={})
    services.post(f"{NOVA}/flavors/f1/action", json={})
    wanted = replace(MASTER, is_public=False, extra_specs={"a": "1", "b": "2"}, access=("lab",))
    report = apply(run, wanted)
    report.raise_for_failures()
    created = report.results[0].observed
    assert (created.ours, created.values["extra_specs"], created.values["access"]) == (
        True,
        {"a": "1", "b": "2"},
        {"lab"},
    )
    assert planner.diff(wanted, created) == ()
