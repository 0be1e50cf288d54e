from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Loss, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, permission, planner
from openstack_prep.core.model import COPIED, Action, Observed, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.identity import project
from openstack_prep.resources.identity import project as identity_project
from openstack_prep.resources.identity.project import LeftGroup, Project, ProjectRecord
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, failure
from tests.unit.resources.identity.tags import Tags

pytestmark = pytest.mark.usefixtures("administrator")

LAB = Project(name="lab", description="a lab", tags=("blue",))
NAMED = OwnershipTag("lab").name_tag("project", "default", "lab")


def answer(**fields: Any) -> dict[str, Any]:
    """Return a project as Keystone tells it."""
    tags = ["blue", "green", OwnershipTag("lab").tag]
    whole = {"id": "p1", "name": "lab", "domain_id": "default", "description": "a lab", "enabled": True, "tags": tags}
    return whole | fields


@pytest.fixture
def listed(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    services.get(f"{IDENTITY}/projects", json=lambda *_: {"projects": found})
    return found


def plan(run: CloudRun, project: Project) -> Plan:
    observed, mistakes = observation.examine(run, [project])
    return planner.plan_apply("lab", [project], observed, mistakes=mistakes)


def test_it_is_made_by_one_request_with_our_mark(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    made = services.post(f"{IDENTITY}/projects", json={"project": answer()}, status_code=201)
    executor.execute(plan(run, LAB), run).raise_for_failures()
    assert made.last_request.json()["project"] == {
        "name": "lab",
        "domain_id": "default",
        "description": "a lab",
        "enabled": True,
        "tags": [NAMED, "openstack-prep:lab", "blue"],
    }


def test_a_tag_is_added_alone_so_that_others_stay(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(tags=["green"]))
    wanted = plan(run, LAB)
    tags = Tags(services, answer(tags=["green", "meanwhile"]))
    executor.execute(wanted, run).raise_for_failures()
    assert tags.sent == [("PUT", "blue")]
    assert tags.project["tags"] == ["green", "meanwhile", "blue"]
    assert not [each for each in services.request_history if each.method == "PATCH"]


def test_a_field_is_changed_without_a_look_at_the_tags(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(tags=["openstack-prep:lab", NAMED], description="old"))
    changed = services.patch(f"{IDENTITY}/projects/p1", json={"project": answer(tags=["openstack-prep:lab", NAMED])})
    executor.execute(plan(run, Project(name="lab", description="a lab")), run).raise_for_failures()
    assert changed.last_request.json() == {"project": {"description": "a lab"}}


def test_other_fields_are_changed_without_the_tags(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    tags = ["openstack-prep:lab", NAMED]
    listed.append(answer(tags=tags, description="old"))
    changed = services.patch(f"{IDENTITY}/projects/p1", json={"project": answer(tags=tags)})
    added = Tags(services, answer(tags=tags))
    executor.execute(plan(run, LAB), run).raise_for_failures()
    assert changed.last_request.json() == {"project": {"description": "a lab"}}
    assert added.sent == [("PUT", "blue")]


@pytest.mark.parametrize(("undone", "passes"), [(["blue"], True), (["blue", "blue"], True), (["blue"] * 9, False)])
def test_a_tag_that_a_concurrent_change_has_undone_is_added_again(
    run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, undone: list[str], passes: bool
) -> None:
    monkeypatch.setattr(identity_project, "TAG_PAUSE", 0.0)
    tags = Tags(services, answer(tags=["green"]))
    tags.undone = list(undone)
    if passes:
        assert identity_project.change_tags(run, "p1", add=["red", "blue"]) == {"green", "red", "blue"}
        assert tags.sent == [("PUT", "red"), *[("PUT", "blue")] * (len(undone) + 1)]
    else:
        with pytest.raises(CloudError, match="blue") as refusal:
            identity_project.change_tags(run, "p1", add=["red", "blue"])
        assert refusal.value.retryable


def test_a_tag_that_a_concurrent_change_has_restored_is_removed_again(
    run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_project, "TAG_PAUSE", 0.0)
    tags = Tags(services, answer(tags=["green", "blue"]))
    tags.undone = ["blue"]
    assert identity_project.change_tags(run, "p1", remove=["blue"]) == {"green"}
    assert tags.sent == [("DELETE", "blue")] * 2


def test_a_change_that_a_proxy_reports_as_failed_is_judged_by_the_tags(
    run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_project, "TAG_PAUSE", 0.0)
    tags = Tags(services, answer(tags=["green"]))

    def put(request: Any, context: Any) -> str:
        tags.project["tags"] = ["green", "red"]
        context.status_code = 503
        return ""

    services.put(f"{IDENTITY}/projects/p1/tags/red", text=put)
    assert identity_project.change_tags(run, "p1", add=["red"]) == {"green", "red"}


@pytest.mark.parametrize("meanwhile", [[], ["blue"]], ids=["alone", "another program adds it"])
def test_a_tag_whose_answer_was_lost_is_there(
    run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, meanwhile: list[str]
) -> None:
    monkeypatch.setattr(identity_project, "TAG_PAUSE", 0.0)
    tags = Tags(services, answer(tags=["green", *meanwhile]))
    tags.lost = ["red"]
    assert identity_project.change_tags(run, "p1", add=["red", "blue"]) == {"green", "red", "blue"}
    services.put(f"{IDENTITY}/projects/p1/tags/black", **failure(403))
    with pytest.raises(CloudError) as refusal:
        identity_project.change_tags(run, "p1", add=["black"])
    assert refusal.value.status == 403
    services.put(f"{IDENTITY}/projects/p1/tags/black", **failure(400))
    with pytest.raises(CloudError) as refusal:
        identity_project.change_tags(run, "p1", add=["black"])
    assert refusal.value.status == 400


def test_a_change_names_the_project_of_an_earlier_version_in_its_tags(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(tags=["openstack-prep:lab"]))
    tags = Tags(services, answer(tags=["openstack-prep:lab"]))
    executor.execute(plan(run, LAB), run).raise_for_failures()
    assert {*tags.sent} == {("PUT", "blue"), ("PUT", NAMED)}


def test_the_ownership_tags_are_added_alone(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    services.get(f"{IDENTITY}/projects?name=home", json={"projects": [answer(id="p0", name="home")]})
    listed.append(answer(tags=["green"]))
    tags = Tags(services, answer(tags=["green", "meanwhile"]))
    beside = CloudRun(run.admin, run.ownership, homes=[Project(name="home"), LAB])
    taken = LAB.take_over(beside, observation.observe(beside, [LAB])[LAB.key])
    assert taken.ours
    assert taken.home == "p0"
    sent = [tag for _, tag in tags.sent]
    assert sent == [NAMED, "openstack-prep:lab~p0", "openstack-prep:lab"]  # a kill leaves it unmanaged


def test_what_is_not_declared_is_left_alone(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(enabled=False, description="other"))
    assert [step.action for step in plan(run, Project(name="lab"))] == [Action.KEEP]


def test_it_is_ours_by_the_tag_alone(run: CloudRun, listed: list[Any]) -> None:
    for tags, ours in (([OwnershipTag("lab").tag], True), ([OwnershipTag("other").tag], False), ([], False)):
        listed[:] = [answer(tags=tags)]
        assert observation.observe(run.fresh(), [LAB])[LAB.key].ours is ours


@pytest.mark.parametrize(
    "other", [("project", "default", "other"), ("project", "d2", "lab"), ("stack", "default", "lab")]
)
def test_copied_tags_name_another_project(run: CloudRun, listed: list[Any], other: tuple[str, ...]) -> None:
    own = OwnershipTag("lab")
    listed.append(answer(tags=[own.tag, own.name_tag(*other)], description="theirs"))
    found = observation.observe(run, [LAB])[LAB.key]
    assert (found.ours, found.doubt) == (False, COPIED)
    (refusal,) = plan(run, LAB).refusals
    assert refusal.code == Code.PLAN_ADOPTS
    assert COPIED in refusal.what


def test_two_of_a_name_are_an_error_that_names_both(run: CloudRun, listed: list[Any]) -> None:
    listed += [answer(), answer(id="p2")]
    with pytest.raises(PlanRefused, match="p1, p2"):
        plan(run, LAB)


def test_somebody_else_made_it_meanwhile(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    wanted = plan(run, LAB)
    listed.append(answer(tags=["blue"]))
    services.post(f"{IDENTITY}/projects", **failure(409, "Duplicate entry"))
    (result,) = executor.execute(wanted, run).results
    assert result.error is None
    assert result.observed is not None
    assert not result.observed.ours


@pytest.fixture
def empty(services: requests_mock.Mocker) -> requests_mock.Mocker:
    """A project with nothing in it but Neutron's default group."""
    services.get(f"{ENDPOINTS['compute']}/servers", json={"servers": []})
    services.get(f"{ENDPOINTS['block-storage']}/volumes/detail", json={"volumes": []})
    services.get("http://glance/", json={"versions": [_version("v2.9", "http://glance/v2/")]}, status_code=300)
    services.get("http://glance", json={"versions": [_version("v2.9", "http://glance/v2/")]}, status_code=300)
    services.get("http://glance/v2/images", json={"images": []})
    services.get(f"{ENDPOINTS['orchestration']}/stacks", json={"stacks": []})
    services.get(f"{ENDPOINTS['orchestration']}/software_configs", json={"software_configs": []})
    services.get("http://swift/v1/AUTH_p1/?format=json", json=[])
    for plural in ("networks", "routers", "floatingips"):
        services.get(f"http://neutron/v2.0/{plural}", json={plural: []})
    group = {"id": "g1", "name": "default"}
    services.get("http://neutron/v2.0/security-groups", json={"security_groups": [group]})
    return services


def _version(number: str, address: str) -> dict[str, Any]:
    return {"id": number, "status": "CURRENT", "links": [{"rel": "self", "href": address}]}


def test_destroy_takes_the_default_group_along(run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]) -> None:
    listed.append(answer())
    asked = [
        empty.put("http://neutron/v2.0/security-groups/g1/tags/openstack-prep%3Alab~default"),
        empty.delete(f"{IDENTITY}/projects/p1"),
        empty.delete("http://neutron/v2.0/security-groups/g1"),
    ]
    observed = observation.observe(run, [LAB])
    executor.execute(planner.plan_destroy("lab", [LAB], observed), run).raise_for_failures()
    assert all(each.called_once for each in asked)
    writes = [each for each in empty.request_history if each.method in ("PUT", "DELETE")]
    assert [each.path.split("/")[2] for each in writes] == ["security-groups", "projects", "security-groups"]


@pytest.mark.parametrize(("refusals", "fails"), [(3, False), (9, True)])
def test_a_default_group_that_neutron_does_not_let_go_is_not_forgotten(
    refusals: int,
    fails: bool,
    run: CloudRun,
    empty: requests_mock.Mocker,
    listed: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step that is decided again finds no project, and would be done with."""
    monkeypatch.setattr(project, "PAUSE", 0)
    listed.append(answer())
    empty.put("http://neutron/v2.0/security-groups/g1/tags/openstack-prep%3Alab~default")
    empty.delete(f"{IDENTITY}/projects/p1", [{"status_code": 204}, failure(404)])
    empty.delete("http://neutron/v2.0/security-groups/g1", [*[failure(412)] * refusals, {"status_code": 204}])
    observed = observation.observe(run, [LAB])
    report = executor.execute(planner.plan_destroy("lab", [LAB], observed), run)
    assert [("is left; run destroy again" in str(each.error)) for each in report.failed] == ([True] if fails else [])


def test_a_group_that_a_killed_destroy_left_behind_is_found_once_its_project_is_gone(
    run: CloudRun, services: requests_mock.Mocker
) -> None:
    groups = [
        {"id": f"g{n}", "name": "default", "project_id": f"p{n}", "tags": ["openstack-prep:lab~default"]}
        for n in (1, 2)
    ]
    groups.append(groups[0] | {"id": "g3", "tags": ["openstack-prep:another~default"]})
    listed = services.get("http://neutron/v2.0/security-groups", json={"security_groups": groups})
    services.get(f"{IDENTITY}/projects/p1", **failure(404))
    services.get(f"{IDENTITY}/projects/p2", json={"project": {"id": "p2"}})
    left = dict(LeftGroup.scan(run, None))
    assert listed.last_request.qs["tags"] == ["openstack-prep:lab~default"]
    assert [each.name for each in left] == ["g1"]
    observed = {each.key: found for each, found in left.items()}
    deleted = services.delete("http://neutron/v2.0/security-groups/g1")
    executor.execute(planner.plan_destroy("lab", list(left), observed), run).raise_for_failures()
    assert deleted.called_once


def losses(run: CloudRun, plan: Plan, *allowed: str) -> list[Loss]:
    """Return what a plan takes from others, as refusals."""
    found = permission.refuse_losses(observation.find_losses(run, plan), frozenset(allowed))
    return [each for each in found if isinstance(each, Loss)]


def test_a_project_below_it_refuses_the_plan(run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]) -> None:
    listed.append(answer())
    below = {"projects": [{"id": "p2", "name": "below"}]}
    empty.get(f"{IDENTITY}/projects?parent_id=p1", json=below)
    doomed = planner.plan_destroy("lab", [LAB], observation.observe(run, [LAB]))
    (mistake,) = observation.examine_deletes(run, doomed)
    assert (mistake.code, mistake.keys) == ("plan.still-used", (LAB.key,))
    assert "below (p2)" in mistake.what


@pytest.mark.parametrize("options", [{}, {"immutable": False}, {"immutable": True}])
def test_an_immutable_project_refuses_the_plan(
    run: CloudRun, empty: requests_mock.Mocker, listed: list[Any], options: dict[str, bool]
) -> None:
    listed.append(answer(options=options))
    doomed = planner.plan_destroy("lab", [LAB], observation.observe(run, [LAB]))
    found = [(each.code, each.keys) for each in observation.examine_deletes(run, doomed)]
    assert found == ([("plan.still-used", (LAB.key,))] if options.get("immutable") else [])


def test_a_scan_yields_what_a_spec_would_declare(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed += [answer(), answer(id="p2", domain_id="d2", description="", tags=["openstack-prep:lab"], enabled=False)]
    services.get(f"{IDENTITY}/domains/d2", json={"domain": {"id": "d2", "name": "corp"}})
    assert [each for each, _ in Project.scan(run, None)] == [
        Project(name="lab", description="a lab", tags=("blue", "green"), enabled=True),
        Project(name="lab", domain="corp", enabled=False),
    ]


def test_who_may_not_list_projects_is_refused_by_other_rules(
    run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]
) -> None:
    empty.get(f"{IDENTITY}/projects?parent_id={ADMIN_PROJECT}", **failure(403, "not authorized"))
    (mistake,) = LAB.check_delete(
        run, Observed(id=ADMIN_PROJECT, ours=True, record=ProjectRecord(frozenset())), frozenset()
    )
    assert mistake.code == "plan.own-connection"


def test_destroy_refuses_to_orphan_what_others_made(
    run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer())
    empty.get(f"{ENDPOINTS['compute']}/servers", json={"servers": [{"id": "s1", "name": "theirs"}]})
    held = {"floatingips": [{"id": "f1", "floating_ip_address": "192.0.2.7"}]}
    empty.get("http://neutron/v2.0/floatingips", json=held)
    observed = observation.observe(run, [LAB])
    doomed = planner.plan_destroy("lab", [LAB], observed)
    servers, addresses = losses(run, doomed)
    assert (servers.code, servers.lost) == ("plan.still-used", ("server/s1",))
    assert "--allow-loss server/s1" in servers.fix
    assert addresses.lost == ("floating_ip/f1",)
    assert losses(run, doomed, "server/s1", "floating_ip/f1") == []


def test_a_server_that_came_after_the_plan_keeps_the_project(
    run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer())
    deleted = empty.delete(f"{IDENTITY}/projects/p1")
    doomed = planner.plan_destroy("lab", [LAB], observation.observe(run, [LAB]))
    assert losses(run, doomed) == []
    empty.get(f"{ENDPOINTS['compute']}/servers", json={"servers": [{"id": "s1", "name": "theirs"}]})
    (result,) = executor.execute(doomed, run).results
    assert isinstance(result.error, PlanRefused)
    assert [loss.lost for loss in result.error.mistakes if isinstance(loss, Loss)] == [("server/s1",)]
    assert not deleted.called


def test_a_project_beside_the_home_project_names_it(
    services: requests_mock.Mocker, run: CloudRun, listed: list[Any]
) -> None:
    services.get(f"{IDENTITY}/projects?name=home", json={"projects": [answer(id="p0", name="home")]})
    made = services.post(f"{IDENTITY}/projects", json={"project": answer()}, status_code=201)
    LAB.create(CloudRun(run.admin, run.ownership, homes=[Project(name="home"), Project(name="lab")]))
    tags = [NAMED, "openstack-prep:lab~p0", "openstack-prep:lab", "blue"]
    assert made.last_request.json()["project"]["tags"] == tags


@pytest.mark.parametrize(("named", "ours"), [("p0", True), ("gone", True), ("their", False)])
def test_a_project_beside_the_home_project_is_managed_unless_it_names_another(
    services: requests_mock.Mocker, run: CloudRun, listed: list[Any], named: str, ours: bool
) -> None:
    services.get(f"{IDENTITY}/projects?name=home", json={"projects": [answer(id="p0", name="home")]})
    services.get(f"{IDENTITY}/projects/gone", **failure(404))
    services.get(f"{IDENTITY}/projects/their", json={"project": answer(id="their")})
    listed.append(answer(tags=[f"openstack-prep:lab~{named}", "openstack-prep:lab"]))
    home = Project(name="home")
    found = observation.observe(CloudRun(run.admin, run.ownership, homes=[home, LAB]), [home, LAB])
    assert found[home.key].ours
    assert (found[LAB.key].ours, found[LAB.key].managed_by) == (ours, "" if ours else "lab")


def test_a_clusters_machines_have_a_way_of_their_own(
    run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer())
    empty.get(f"{ENDPOINTS['compute']}/servers", json={"servers": [{"id": "s1", "name": "dev-x7k2p-master-0"}]})
    doomed = planner.plan_destroy("lab", [LAB], observation.observe(run, [LAB]))
    (mistake,) = losses(run, doomed)
    assert "openstack-prep cleanup --infra-id dev-x7k2p " in mistake.fix


def test_nobody_destroys_the_project_that_he_works_in(
    run: CloudRun, empty: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(id=ADMIN_PROJECT))
    empty.get("http://swift/v1/AUTH_admin-project/?format=json", json=[])
    doomed = planner.plan_destroy("lab", [LAB], observation.observe(run, [LAB]))
    (mistake,) = observation.examine_deletes(run, doomed)
    assert (mistake.code, mistake.keys) == ("plan.own-connection", (LAB.key,))
    assert "--os-cloud" in mistake.fix
