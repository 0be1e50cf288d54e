from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed, PlanRefused, ResourceFailed
from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import COPIED, MANAGED, UNNAMED, Action, Key, OwnershipTag
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.orchestration.stack import Stack
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, failure, resolved
from tests.unit.texts import Wording, contains

HEAT = "http://heat/v1/admin-project"
TEMPLATE = """
heat_template_version: wallaby
parameters:
  network: {type: string, constraints: [{custom_constraint: neutron.network}]}
  password: {type: string, hidden: true, default: ""}
resources: {}
"""


@pytest.fixture
def template(tmp_path: Path) -> str:
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    return str(tmp_path / "t.yaml")


def test_what_its_parameters_name_must_exist_or_be_declared(
    services: requests_mock.Mocker, run: CloudRun, template: str, wording: Wording
) -> None:
    services.get(f"{HEAT}/stacks", json={"stacks": []})
    services.get("http://neutron/v2.0/networks", json={"networks": []})
    services.get("http://neutron/", json={"versions": []})
    services.get(f"{HEAT}/resource_types", json={"resource_types": ["OS::Neutron::Port"]})
    services.post(f"{HEAT}/validate", json={})
    stack = Stack(name="s", template=template, parameters={"network": "nodes"})
    _, mistakes = observation.examine(run, [stack])
    wording([str(each) for each in mistakes])
    _, mistakes = observation.examine(run, [Network(name="nodes"), stack])
    assert mistakes == []


def test_it_comes_after_all_else_of_its_project(run: CloudRun, template: str) -> None:
    stack = Stack(name="s", template=template, parameters={"network": "other"})
    completed = resolved(stack, [Network(name="nodes"), stack], run.admin)
    assert {Key("network", "nodes"), Key("network", "other")} <= set(completed.needs())
    assert stack.key not in completed.needs()


def test_hidden_parameters_have_a_place_of_their_own(run: CloudRun, template: str, wording: Wording) -> None:
    open_ = Stack(name="s", template=template, parameters={"network": "n", "password": "seen"})
    shown = Stack(name="s", template=template, secret_parameters={"network": Secret("n")})
    found = [each for stack in (open_, shown) for each in stack.mistakes()]
    assert [each.parameter for each in found] == ["password", "network"]
    wording(found[0].what)
    wording(found[1].what)
    assert "seen" not in str(open_.desired())
    body, secrets = Stack(name="s", template=template, secret_parameters={"password": Secret("x")}).body(("mine",))
    assert (body["environment"]["parameters"], [each.reveal() for each in secrets]) == ({"password": "x"}, ["x"])
    assert body["tags"] == "mine"


def test_a_file_that_nobody_writes_is_missing(run: CloudRun, tmp_path: Path, template: str) -> None:
    secret = from_spec({"content": "clouds.yaml"}, base=tmp_path)
    stack = Stack(name="s", template=template, parameters={"network": "n"}, secret_parameters={"password": secret})
    credential = ApplicationCredential(name="c", clouds_yaml=str(tmp_path / "clouds.yaml"), cloud="c")
    alone, beside = (resolved(stack, [*more, stack], run.admin) for more in ([], [credential]))
    (found,) = alone.mistakes()
    assert (found.parameter, "clouds.yaml does not exist" in found.what) == ("password", True)
    assert list(beside.mistakes()) == []
    (tmp_path / "clouds.yaml").write_text("clouds: {}")
    assert list(alone.mistakes()) == []


def test_what_nobody_can_look_at_is_not_taken_for_absent(
    services: Any, run: CloudRun, template: str, wording: Wording
) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "enabled": True, "tags": []}]})
    with pytest.raises(NotAllowed) as caught:
        Stack.find(run, [Stack(name="s", template=template, project="lab")])
    wording(caught.value)


NAMED = OwnershipTag("lab").name_tag("stack", ADMIN_PROJECT, "s")


@pytest.mark.parametrize(
    ("tags", "ours", "doubt"),
    [
        (["openstack-prep:lab", NAMED], True, ""),
        (["openstack-prep:lab"], True, UNNAMED),
        (["openstack-prep:lab", OwnershipTag("lab").name_tag("stack", ADMIN_PROJECT, "t")], False, COPIED),
        (["openstack-prep:lab", OwnershipTag("other").name_tag("stack", ADMIN_PROJECT, "t")], True, UNNAMED),
        ([NAMED], False, ""),
    ],
)
def test_the_tags_of_a_stack_name_it(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, tags: list[str], ours: bool, doubt: str
) -> None:
    stack = Stack(name="s", template=standing(services, tmp_path, ",".join(tags)))
    observed = observation.observe(run, [stack])[stack.key]
    ((_, scanned),) = Stack.scan(run, None)
    assert {(each.ours, each.doubt) for each in (observed, scanned)} == {(ours, doubt)}


def standing(services: requests_mock.Mocker, folder: Path, tag: str) -> str:
    """Let a stack stand that is as declared but for its tag; return the path of its template."""
    (folder / "bare.yaml").write_text("heat_template_version: wallaby\nresources: {}\n")
    row = {"id": "i1", "stack_name": "s", "stack_status": "CREATE_COMPLETE", "tags": tag.split(",") if tag else None}
    services.get(f"{HEAT}/stacks", json={"stacks": [row]})
    path = f"{HEAT}/stacks/s/i1"
    services.get(path, json={"stack": row})
    services.get(f"{path}/template", json={"heat_template_version": "wallaby", "resources": {}})
    services.get(f"{path}/files", json={})
    services.get(f"{path}/environment", json={})
    services.get(f"{path}/resources", json={"resources": []})
    nothing: dict[str, list[Any]] = {verb: [] for verb in ("unchanged", "updated", "replaced", "added", "deleted")}
    services.put(f"{path}/preview", json={"resource_changes": nothing})
    return str(folder / "bare.yaml")


@pytest.mark.parametrize(
    ("tag", "adopt", "action"),
    [
        ("openstack-prep:lab", "permanently", "keep"),
        ("", "permanently", "adopt"),
        ("", True, "keep"),
        ("", False, "keep"),
    ],
)
def test_taking_over_is_a_change_of_its_own_and_no_status(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, tag: str, adopt: Any, action: str
) -> None:
    template = standing(services, tmp_path, tag)
    stack = Stack(name="s", template=template, adopt=adopt)
    observed, mistakes = observation.examine(run, [stack])
    (step,) = planner.plan_apply("lab", [stack], observed, mistakes=mistakes).steps
    assert (step.action, observed[stack.key].values["status"]) == (action, "complete")
    assert [each.field for each in step.changes] == ([MANAGED] if action == "adopt" else [])


@pytest.mark.parametrize(("adopt", "refused"), [("permanently", True), (True, False), (False, False)])
def test_what_another_spec_manages_is_not_taken_over(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, adopt: Any, refused: bool
) -> None:
    stack = Stack(name="s", template=standing(services, tmp_path, "openstack-prep:theirs"), adopt=adopt)
    observed, mistakes = observation.examine(run, [stack])
    assert not mistakes
    planned = planner.plan_apply("lab", [stack], observed)
    assert [each.keys for each in planned.refusals] == ([(stack.key,)] if refused else [])
    assert observed[stack.key].managed_by == "theirs"
    assert [found.managed_by for _, found in Stack.scan(run, None)] == ["theirs"]


@pytest.mark.parametrize(
    ("adopt", "tags"), [(True, {"a", "theirs"}), ("permanently", {"a", "theirs", "openstack-prep:lab", NAMED})]
)
def test_one_update_changes_it_and_only_taking_over_adds_the_ownership_tag(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, adopt: Any, tags: set[str]
) -> None:
    stack = Stack(name="s", template=standing(services, tmp_path, "theirs"), tags=("a",), adopt=adopt)
    planned = planner.plan_apply("lab", [stack], observation.observe(run, [stack]))
    assert not planned.refusals

    def put(request: Any, context: Any) -> str:
        standing(services, tmp_path, request.json()["tags"])
        context.status_code = 202
        return ""

    put_ = services.put(f"{HEAT}/stacks/s/i1", text=put)
    services.get(re.compile(f"{HEAT}/stacks/s/i1/events"), json={"events": []})
    executor.execute(planned, run.fresh()).raise_for_failures()
    assert [set(each.json()["tags"].split(",")) for each in put_.request_history] == [tags]
    assert run.known[stack.key].values == {**stack.desired(), "tags": {"a"}}


def test_what_another_spec_has_marked_since_the_plan_is_not_taken_over(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path
) -> None:
    stack = Stack(name="s", template=standing(services, tmp_path, ""), adopt="permanently")
    planned = planner.plan_apply("lab", [stack], observation.observe(run, [stack]))
    standing(services, tmp_path, "openstack-prep:theirs")
    put = services.put(f"{HEAT}/stacks/s/i1")
    (failed,) = executor.execute(planned, run.fresh()).failed
    assert isinstance(failed.error, PlanRefused)
    assert "theirs" in str(failed.error)
    assert not put.called


@pytest.mark.usefixtures("administrator")
def test_an_update_after_a_failed_deletion_names_what_it_takes_from_others(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path
) -> None:
    """It first deletes what is left; --allow-replace covers that alone."""
    stack = Stack(name="s", template=standing(services, tmp_path, "openstack-prep:lab"))
    path = f"{HEAT}/stacks/s/i1"
    row = {"id": "i1", "stack_name": "s", "stack_status": "DELETE_FAILED", "tags": ["openstack-prep:lab"]}
    left = {"resource_name": "r", "resource_type": "OS::Neutron::Router", "physical_resource_id": "r1"}
    left |= {"resource_status": "DELETE_FAILED", "links": [{"rel": "stack", "href": path}]}
    route = {"destination": "10.2.0.0/16", "nexthop": "10.0.0.5"}
    router = {"id": "r1", "name": "r", "project_id": "p", "external_gateway_info": None, "routes": [route]}
    services.get(path, json={"stack": row})
    services.get(f"{path}/resources", json={"resources": [left]})
    services.get(f"{path}/template", json={"heat_template_version": "wallaby", "resources": {"r": {}}})
    services.get("http://neutron/v2.0/extensions", json={"extensions": []})
    services.get("http://neutron/v2.0/routers?id=r1", json={"routers": [router]})
    services.get("http://neutron/v2.0/ports", json={"ports": []})
    made = planner.plan_apply("lab", [stack], observation.observe(run, [stack]), allow_replace=True)
    (step,) = observation.find_losses(run, made)
    assert step.action is Action.UPDATE
    assert [each.address for each in step.deletion_losses] == ["route/r1/10.2.0.0/16"]


def test_outputs_that_are_secrets_are_stars(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, template: str
) -> None:
    """By the spec, by the template, and by what they contain; nothing prints them, and they are at hand by name."""
    standing(services, tmp_path, "openstack-prep:lab")
    row = {"id": "i1", "stack_name": "s", "stack_status": "CREATE_COMPLETE", "tags": ["openstack-prep:lab"]}
    values = {"address": "10.0.0.5", "coded": "eCBodW50ZXIyMiB5", "said": "declared so", "ports": [1], "none": None}
    outputs = [{"output_key": name, "output_value": value} for name, value in values.items()]
    services.get(f"{HEAT}/stacks/s/i1", json={"stack": row | {"outputs": outputs}})
    given = {"password": Secret("hunter22")}
    stack = Stack(name="s", template=template, secret_parameters=given, secret_outputs=("said",), parameters={})
    (found,) = Stack.find(run, [stack]).values()
    stars = {"coded": "********", "said": "********"}
    assert found.outputs == {"address": "10.0.0.5", "none": "null", "ports": "[1]"} | stars
    assert {name: each.reveal() for name, each in found.secrets.items()} == {
        name: values[name] for name in ("coded", "said")
    }
    assert "declared so" not in repr(found)
    unread = Stack(name="s", template="/missing.yaml")
    (found,) = Stack.find(run, [unread]).values()
    assert set(found.outputs.values()) == {"********", "null"}


def test_outputs_are_secrets_by_the_template_that_heat_has(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path
) -> None:
    bare = standing(services, tmp_path, "openstack-prep:lab")
    row = {"id": "i1", "stack_name": "s", "stack_status": "CREATE_COMPLETE", "tags": ["openstack-prep:lab"]}
    outputs = [{"output_key": name, "output_value": "horse"} for name in ("login", "plain")]
    services.get(f"{HEAT}/stacks/s/i1", json={"stack": row | {"outputs": outputs}})
    made = {"login": {"value": {"get_resource": "word"}}, "plain": {"value": "horse"}}
    former = {"resources": {"word": {"type": "OS::Heat::RandomString"}}, "outputs": made}
    services.get(f"{HEAT}/stacks/s/i1/template", json={"heat_template_version": "wallaby"} | former)
    (found,) = Stack.find(run, [Stack(name="s", template=bare)]).values()
    assert found.outputs == {"login": "********", "plain": "horse"}


@pytest.mark.parametrize("refused", ["create", "preview", "update"])
def test_what_heat_refuses_repeats_no_hidden_parameter(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, template: str, refused: str
) -> None:
    standing(services, tmp_path, f"openstack-prep:lab,{NAMED}")
    secrets = {"password": Secret("qwertz")}
    stack = Stack(name="s", template=template, parameters={"network": "n"}, secret_parameters=secrets)
    answer = failure(400, "qwertz is too short")
    services.get("http://neutron/v2.0/networks", json={"networks": [{"id": "n1", "name": "n"}]})
    services.get(f"{HEAT}/resource_types", json={"resource_types": []})
    services.post(f"{HEAT}/validate", json={})
    if refused == "create":
        services.get(f"{HEAT}/stacks", json={"stacks": []})
        services.post(f"{HEAT}/stacks/preview", json={"stack": {"resources": []}})
        services.get(f"{ENDPOINTS['compute']}/flavors/detail", json={"flavors": []})
        services.post(f"{HEAT}/stacks", **answer)
    elif refused == "preview":
        services.put(f"{HEAT}/stacks/s/i1/preview", **answer)
    else:
        services.put(f"{HEAT}/stacks/s/i1", **answer)
    observed, mistakes = observation.examine(run, [stack])
    planned = planner.plan_apply("lab", [stack], observed, mistakes=mistakes)
    texts = [str(each) for each in planned.refusals]
    texts += [] if planned.refusals else [str(each.error) for each in executor.execute(planned, run).failed]
    (text,) = texts
    assert "******** is too short" in text
    assert "qwertz" not in text


def test_what_is_missing_is_named_by_place_and_id(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path
) -> None:
    """A server without its last port beside a server that was deleted."""
    stack = Stack(name="s", template=standing(services, tmp_path, f"openstack-prep:lab,{NAMED}"))
    path = f"{HEAT}/stacks/s/i1"
    kinds = {"bare": "OS::Nova::Server", "gone": "OS::Nova::Server", "whole": "OS::Nova::Server"}
    listed = [
        {"resource_name": name, "resource_type": kind, "physical_resource_id": f"{name}-id"}
        | {"resource_status": "CREATE_COMPLETE", "links": [{"rel": "stack", "href": path}]}
        for name, kind in kinds.items()
    ]
    services.get(f"{path}/resources", json={"resources": listed})
    server = {"status": "ACTIVE", "os-extended-volumes:volumes_attached": []}
    servers = [
        {"id": f"{name}-id", "addresses": found, **server} for name, found in (("bare", {}), ("whole", {"n": [1]}))
    ]
    services.get(f"{ENDPOINTS['compute']}/servers/detail", json={"servers": servers})
    (found,) = Stack.find(run, [stack]).values()
    assert found.values["missing"] == {"bare bare-id without a port", "gone gone-id"}


@pytest.mark.parametrize(("status", "deletes"), [("DELETE_IN_PROGRESS", 0), ("CREATE_COMPLETE", 1)])
def test_a_deletion_in_progress_is_not_asked_for_again(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, status: str, deletes: int
) -> None:
    """Nor if the spec no longer declares the stack."""
    standing(services, tmp_path, f"openstack-prep:lab,{NAMED}")
    path = f"{HEAT}/stacks/s/i1"
    row = {"id": "i1", "stack_name": "s", "stack_status": status, "tags": ["openstack-prep:lab", NAMED]}
    services.get(f"{HEAT}/stacks", json={"stacks": [row]})
    ((scanned, observed),) = Stack.scan(run, None)
    deleted = services.delete(path, status_code=204)
    services.get(path, **failure(404))
    scanned.delete(run, observed)
    assert deleted.call_count == deletes


@pytest.mark.parametrize("declared", [True, False])
def test_a_failed_deletion_repeats_no_hidden_parameter(
    services: requests_mock.Mocker, run: CloudRun, tmp_path: Path, declared: bool
) -> None:
    """Of a stack that is no longer declared only Heat knows the values, and its template tells who gets them."""
    standing(services, tmp_path, f"openstack-prep:lab,{NAMED}")
    path = f"{HEAT}/stacks/s/i1"
    resources = {
        "vpn": {"type": "OS::Neutron::VPNService", "properties": {"psk": {"get_param": "password"}}},
        "router": {"type": "OS::Neutron::Router", "properties": {"name": "r"}},
    }
    parameters = {name: {"type": "string", "hidden": True} for name in ("password", "not_given")}
    resources["router"]["properties"]["description"] = {"get_param": "not_given"}
    template = {"heat_template_version": "wallaby", "parameters": parameters, "resources": resources}
    services.get(f"{path}/template", json=template)
    services.get(f"{path}/environment", json={"parameters": {"password": "******"}})
    (tmp_path / "own.yaml").write_text(json.dumps(template))
    links = [{"rel": "stack", "href": path}]
    reasons = {"vpn": "qwertz is too short", "router": "Router is in use"}
    events = [
        {"id": name, "resource_name": name, "physical_resource_id": name, "links": links, "event_time": "2"}
        | {"resource_status": "DELETE_FAILED", "resource_status_reason": reason}
        for name, reason in reasons.items()
    ]
    services.get(f"{path}/events", json={"events": events})
    services.delete(path, status_code=204)
    ((scanned, observed),) = Stack.scan(run, None)
    own = Stack(name="s", template=str(tmp_path / "own.yaml"), secret_parameters={"password": Secret("qwertz")})
    failed = {"id": "i1", "stack_name": "s", "stack_status": "DELETE_FAILED", "stack_status_reason": "qwertz"}
    services.get(path, json={"stack": failed})
    with pytest.raises(ResourceFailed) as refusal:
        (own if declared else scanned).delete(run, observed)
    assert "qwertz" not in str(refusal.value)
    assert ("******** is too short" in str(refusal.value)) is declared
    assert ("openstack stack event list" in str(refusal.value)) is not declared
    assert refusal.value.code == "cloud.resource-failed"
    assert contains(str(refusal.value), "router: Router is in use")
