from __future__ import annotations

import json
from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.heat.preview import Refused, preview_update
from openstack_prep.resources.heat.stacks import HeatStack
from tests.unit.conftest import failure

STACK = "http://heat/v1/admin-project/stacks/s/root"
RESOURCES = [
    ("s", "nodes", "s-nodes-abcdefghijkl"),
    ("s-nodes-abcdefghijkl", "0", "s-nodes-abcdefghijkl-0-mnopqrstuvwx"),
]


def link(rel: str, stack: str) -> dict[str, str]:
    return {"rel": rel, "href": f"http://heat/v1/p/stacks/{stack}/id-of-{stack}"}


def change(stack: str, name: str, kind: str) -> dict[str, str]:
    return {"stack_name": stack, "resource_name": name, "resource_type": kind}


def changes(**verbs: Any) -> dict[str, Any]:
    none: dict[str, Any] = {verb: [] for verb in ("unchanged", "updated", "replaced", "added", "deleted")}
    return {"resource_changes": none | verbs}


@pytest.fixture
def stack(services: requests_mock.Mocker, run: CloudRun) -> HeatStack:
    listed = [
        {
            "resource_name": name,
            "resource_type": "OS::Heat::Stack",
            "resource_status": "CREATE_COMPLETE",
            "physical_resource_id": f"id-of-{nested}",
            "links": [link("stack", within), link("nested", nested)],
        }
        for within, name, nested in RESOURCES
    ]
    services.get(f"{STACK}/resources", json={"resources": listed})
    has(services, {})
    return HeatStack(run.admin, "s", "root")


def has(services: requests_mock.Mocker, template: Any, **given: Any) -> None:
    """Let the stack have a template, and values of its parameters."""
    services.get(f"{STACK}/template", json=template)
    services.get(f"{STACK}/files", json={})
    services.get(f"{STACK}/environment", json={"parameters": given})


def test_places_in_the_tree_whatever_heat_calls_the_nested_stacks(services: Any, stack: HeatStack) -> None:
    answer = changes(
        updated=[change("s", "nodes", "OS::Heat::ResourceGroup"), change("s-nodes-abcdefghijkl", "0", "node.yaml")],
        replaced=[change("s-nodes-0", "server", "OS::Nova::Server")],
        added=[change("s-nodes", "1", "node.yaml")],
    )
    services.put(f"{STACK}/preview", json=answer)
    found = preview_update(stack, {"template": {}}, [], {}, [])
    assert list(map(str, found)) == ["add nodes.1", "replace nodes.0.server"]


def test_a_group_that_grows_hides_no_replacement(services: Any, stack: HeatStack) -> None:
    """Heat answers 400 to the whole, and to the count; the flavor alone tells what it replaces."""

    def answer(request: Any, context: Any) -> Any:
        given = request.json()["environment"]["parameters"]
        if "show_nested" not in request.query:
            return changes(updated=[change("s", "nodes", "OS::Heat::ResourceGroup")])
        if given["count"] == 2:
            context.status_code = 400
            return failure(400)["json"]
        assert given.items() >= {"count": 1, "password": "hidden"}.items()
        if given["flavor"] == "small":  # nothing but the template is another
            return changes()
        return changes(replaced=[change("s-nodes-0", "server", "OS::Nova::Server")])

    services.put(f"{STACK}/preview", json=answer)
    body = {"template": {}, "environment": {"parameters": {"count": 2, "flavor": "big", "password": "hidden"}}}
    found = preview_update(stack, body, [], {"count": 1, "flavor": "small"}, ["count", "flavor"])
    assert list(map(str, found)) == ["replace nodes.0.server", "update nodes"]


def test_what_heat_refuses_either_way_is_refused(services: Any, stack: HeatStack) -> None:
    services.put(f"{STACK}/preview", **failure(400, "no such network"))
    with pytest.raises(Refused, match="no such network"):
        preview_update(stack, {"template": {}, "environment": {"parameters": {}}}, [], {}, [])


def test_a_reference_to_what_stays_is_no_change(services: Any, stack: HeatStack) -> None:
    """Its id is asked about; the reference itself only when what it names is missing or made anew."""
    asked: list[Any] = []

    def answer(request: Any, context: Any) -> Any:
        port = request.json()["template"]["resources"]["port"]
        asked.append(port["properties"]["network"])
        replaced = [change("s", "nodes", "X")] if request.json()["environment"]["parameters"] else []
        return changes(replaced=replaced)

    services.put(f"{STACK}/preview", json=answer)
    reference = {"get_resource": "nodes"}
    template = {"resources": {"port": {"properties": {"network": reference}}}}
    preview_update(stack, {"template": template, "environment": {"parameters": {}}}, [], {}, [])
    assert asked == ["id-of-s-nodes-abcdefghijkl"]
    preview_update(stack, {"template": template, "environment": {"parameters": {}}}, [], {}, [], missing=["nodes"])
    preview_update(stack, {"template": template, "environment": {"parameters": {"a": 1}}}, [], {"a": 1}, [])
    assert asked[1:] == [reference, "id-of-s-nodes-abcdefghijkl", reference]


GROUP = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": {}}}


def test_a_group_that_its_template_makes_grow_is_asked_about_at_its_present_size(
    services: Any, stack: HeatStack
) -> None:
    def answer(request: Any, context: Any) -> Any:
        if "show_nested" not in request.query:
            return changes(updated=[change("s", "nodes", "OS::Heat::ResourceGroup")])
        if request.json()["template"]["resources"]["nodes"]["properties"]["count"] == 2:
            context.status_code = 400
            return failure(400)["json"]
        return changes(replaced=[change("s-nodes-0", "server", "OS::Nova::Server")])

    services.put(f"{STACK}/preview", json=answer)
    body = {"template": {"resources": {"nodes": GROUP}}, "environment": {"parameters": {}}}
    found = preview_update(stack, body, [], {}, [])
    assert list(map(str, found)) == ["add nodes.1", "replace nodes.0.server", "update nodes"]


@pytest.mark.parametrize("before", [{}, {"a": 1, "b": 1}])
def test_what_heat_does_not_tell_of_a_group_may_be_a_replacement(
    services: Any, stack: HeatStack, before: dict[str, int]
) -> None:
    """The template alone is refused; or two parameters are, and only one of them is the size."""

    def answer(request: Any, context: Any) -> Any:
        if "show_nested" not in request.query:
            return changes(updated=[change("s", "nodes", "OS::Heat::ResourceGroup")])
        if request.json()["environment"]["parameters"] == before != {}:
            return changes()
        context.status_code = 400
        return failure(400)["json"]

    services.put(f"{STACK}/preview", json=answer)
    body = {"template": {}, "environment": {"parameters": dict.fromkeys(before, 2)}}
    assert list(map(str, preview_update(stack, body, [], before, list(before)))) == ["maybe replace nodes"]


SCALING = "OS::Heat::AutoScalingGroup"


@pytest.mark.parametrize(
    ("changed", "formerly", "verb"),
    [("size", "image", "update"), ("image", "image", "maybe replace"), ("size", "flavor", "maybe replace")],
)
def test_a_scaling_group_rolls_when_the_definition_of_its_members_changes(
    services: Any, stack: HeatStack, changed: str, formerly: str, verb: str
) -> None:
    """A preview invents new members for it."""
    answer = changes(
        updated=[change("s", "nodes", SCALING)],
        added=[change("s-nodes", "xyz", "OS::Nova::Server")],
        deleted=[change("s-nodes-abcdefghijkl", "0", "OS::Nova::Server")],
    )
    services.put(f"{STACK}/preview", json=answer)
    member = {"type": "OS::Nova::Server", "properties": {"image": {"get_param": "image"}}}
    group = {"type": SCALING, "properties": {"desired_capacity": {"get_param": "size"}, "resource": member}}
    before = {"size": 1, "image": 1}
    declared = {"size": {"type": "number"}, "image": {"type": "number"}}
    template = {"parameters": declared, "resources": {"nodes": group}}
    has(services, json.loads(json.dumps(template).replace('"image"}', f'"{formerly}"}}')), **before)
    body = {"template": template, "environment": {"parameters": before | {changed: 2}}}
    found = preview_update(stack, body, [], before, list(before))
    assert list(map(str, found)) == [f"{verb} nodes"]


@pytest.mark.parametrize(
    ("image", "given", "verb"),
    [
        ("token", {"token": "new"}, "maybe replace"),
        ("token", {"token": "same"}, ""),
        ("token", {}, "maybe replace"),
        ("plain", {}, "maybe replace"),
        ("other", {}, ""),
    ],
)
def test_hidden_parameters_are_compared_by_heat_and_those_given_no_longer_have_changed(
    services: Any, stack: HeatStack, image: str, given: dict[str, str], verb: str
) -> None:
    """Heat shows the former value of a hidden one as stars."""

    def compare(request: Any, context: Any) -> Any:
        """Return the resources whose condition is true, as Heat does."""
        probe = request.json()["template"]
        assert probe["parameters"] == {"token": {"type": "string", "hidden": True}}
        same = [at for at, each in probe["conditions"].items() if each["equals"] == [{"get_param": "token"}, "same"]]
        return changes(added=[change("s", at, "OS::Heat::Value") for at in same])

    services.patch(f"{STACK}/preview", json=compare)
    services.put(f"{STACK}/preview", json=changes(updated=[change("s", "nodes", SCALING)]))
    member = {"type": "OS::Nova::Server", "properties": {"image": {"get_param": image}}}
    group = {"type": SCALING, "properties": {"desired_capacity": 1, "resource": member}}
    declared: dict[str, Any] = {
        "size": {"type": "number"},
        "token": {"type": "string", "hidden": True, "default": "y"},
        "other": {"type": "string", "default": "z"},
        "plain": {"type": "string", "default": ""},
    }
    template = {"parameters": declared, "resources": {"nodes": group}}
    has(services, template, size=1, plain="a", token="******")
    body = {"template": template, "environment": {"parameters": {"size": 2, **given}}}
    found = preview_update(stack, body, [], {"size": 1, "plain": "a"}, ["size"])
    assert list(map(str, found)) == ([f"{verb} nodes"] if verb else [])


def test_an_update_that_wipes_a_disk_in_place_is_told_apart(services: Any, stack: HeatStack) -> None:
    """Asked a second time, with policies by which Heat would replace instead."""

    def answer(request: Any, context: Any) -> Any:
        server = request.json()["template"]["resources"]["server"]
        kind = change("s", "server", "OS::Nova::Server")
        wiped = server["properties"].get("image_update_policy") == "REPLACE"
        other = change("s", "other", "OS::Neutron::Port")
        return changes(updated=[other], replaced=[kind]) if wiped else changes(updated=[kind, other])

    services.put(f"{STACK}/preview", json=answer)
    template = {"resources": {"server": {"type": "OS::Nova::Server", "properties": {"image": "new"}}}}
    found = preview_update(stack, {"template": template, "environment": {"parameters": {}}}, [], {}, [])
    assert list(map(str, found)) == ["rebuild server", "update other"]
