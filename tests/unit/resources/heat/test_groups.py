from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.heat.changes import TemplateChanges, TemplateVersion
from openstack_prep.resources.heat.preview import (
    GROUP,
    MAYBE,
    SCALING,
    Effect,
    Parameters,
    not_growing,
    with_group_effects,
)
from openstack_prep.resources.heat.stacks import HeatStack
from openstack_prep.resources.orchestration.record import StackRecord, group_names

STACK = "http://heat/v1/admin-project/stacks/s/root"
SERVER = "OS::Nova::Server"


def link(rel: str, stack: str) -> dict[str, str]:
    return {"rel": rel, "href": f"http://heat/v1/p/stacks/{stack}/id-of-{stack}"}


def resource(stack: str, name: str, kind: str, nested: str = "") -> dict[str, Any]:
    links = [link("stack", stack), *([link("nested", nested)] if nested else [])]
    return {
        "resource_name": name,
        "resource_type": kind,
        "resource_status": "CREATE_COMPLETE",
        "physical_resource_id": f"id-of-{stack}-{name}",
        "links": links,
    }


@pytest.fixture
def stack(services: requests_mock.Mocker, run: CloudRun) -> HeatStack:
    """A group of three servers, 0, 2 and 3, since 1 was removed; and one of two nested templates with a server each."""
    listed = [resource("s", "nodes", GROUP, "s-nodes"), resource("s", "agents", GROUP, "s-agents")]
    listed += [resource("s-nodes", name, SERVER) for name in ("0", "2", "3")]
    for name in ("0", "1"):
        listed.append(resource("s-agents", name, "node.yaml", f"s-agents-{name}"))
        listed.append(resource(f"s-agents-{name}", "server", SERVER))
    services.get(f"{STACK}/resources", json={"resources": listed})
    return HeatStack(run.admin, "s", "root")


def group(count: Any, *removed: Any, mode: Any = "append") -> dict[str, Any]:
    policies = [{"resource_list": list(removed)}] if removed else []
    return {"type": GROUP, "properties": {"count": count, "removal_policies": policies, "removal_policies_mode": mode}}


def told(stack: HeatStack, nodes: Any, *found: Effect, given: Any = None, changed: Any = frozenset()) -> list[str]:
    """``changed``: parameters; None if all that the template says of these nodes is new."""
    values = Parameters(given or {}, {"list": {"default": []}})
    template = {"resources": {"nodes": nodes, "agents": group(2)}}
    before = {"resources": {**template["resources"], "nodes": {"type": nodes["type"]}}} if changed is None else template
    changes = changes_of(before, template, changed or frozenset())
    return list(map(str, with_group_effects(list(found), stack, template, values, changes)))


def changes_of(before: Any, after: Any, parameters: Any) -> TemplateChanges:
    old, new = TemplateVersion(before), TemplateVersion(after)
    return TemplateChanges(old, new, parameters, frozenset(), lambda kind, name: True)


DELETE_3 = Effect("delete", "nodes.3", SERVER)
UPDATE_2 = Effect("update", "nodes.2", SERVER)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        (group(3), []),
        (group(3, "1"), []),
        (group(2, "0"), ["delete nodes.0", "update nodes.2"]),
        (group(2, 0), ["delete nodes.0", "update nodes.2"]),
        (group(2, "id-of-s-nodes-2"), ["delete nodes.2"]),
        (group(3, "2"), ["add nodes.4", "delete nodes.2"]),
        (group(1, "0"), ["delete nodes.0", "delete nodes.3", "update nodes.2"]),
        (group(3, mode="update"), ["add nodes.1", "delete nodes.3", "update nodes.2"]),
    ],
)
def test_removal_policies_decide_which_members_go(stack: HeatStack, nodes: Any, found: list[str]) -> None:
    """A preview names the last one, or none."""
    seen = [UPDATE_2, DELETE_3] if nodes["properties"]["count"] < 3 else [UPDATE_2] if found else []
    assert told(stack, nodes, *seen) == found


@pytest.mark.parametrize("given", [{"list": ["0"]}, {"list": "0"}])
def test_they_may_come_from_a_parameter(stack: HeatStack, given: Any) -> None:
    nodes = group(2)
    nodes["properties"]["removal_policies"] = [{"resource_list": {"get_param": "list"}}]
    assert told(stack, nodes, DELETE_3, given=given) == ["delete nodes.0"]
    assert told(stack, nodes, DELETE_3) == ["delete nodes.3"], "the default is an empty list"


@pytest.mark.parametrize(
    "policies", [{"get_param": "policies"}, [{"get_param": "first"}], [{"resource_list": {"get_param": "list"}}]]
)
def test_all_of_them_may(stack: HeatStack, policies: Any) -> None:
    nodes = group(2)
    nodes["properties"]["removal_policies"] = policies
    given = {"list": ["0"], "first": {"resource_list": ["0"]}, "policies": [{"resource_list": ["0"]}]}
    assert told(stack, nodes, DELETE_3, given=given) == ["delete nodes.0"]


@pytest.mark.parametrize(
    "policies",
    [
        {"if": ["a", [{"resource_list": ["0"]}], []]},
        [{"if": ["a", {"resource_list": ["0"]}, {}]}],
        {"get_param": "text"},
        [{"get_param": "text"}],
        "text",
        ["text"],
    ],
)
def test_policies_that_only_heat_can_compute_may_be_a_loss(stack: HeatStack, policies: Any) -> None:
    nodes = group(3)
    nodes["properties"]["removal_policies"] = policies
    assert told(stack, nodes, given={"text": "[]"}, changed=None) == ["maybe replace nodes"]


def test_their_mode_may_come_from_a_parameter(stack: HeatStack) -> None:
    nodes = group(3, mode={"get_param": "mode"})
    assert told(stack, nodes, given={"mode": "append"}) == []
    assert told(stack, nodes, UPDATE_2, given={"mode": "update"}) == [
        "add nodes.1",
        "delete nodes.3",
        "update nodes.2",
    ]


@pytest.mark.parametrize(
    ("nodes", "changed", "found"),
    [
        (group(3, {"get_attr": ["x"]}), None, ["maybe replace nodes"]),
        (group(3, {"get_attr": ["x"]}), {"a"}, ["maybe replace nodes"]),
        (group(3, {"str_split": [",", {"get_param": "a"}]}), {"a"}, ["maybe replace nodes"]),
        (group(3, {"str_split": [",", {"get_param": "a"}]}), {"b"}, []),
        (group(3, "a-name-of-a-nested-template"), None, ["maybe replace nodes"]),
        (group({"if": ["a", 2, 3]}), None, []),
        (group({"if": ["a", 2, 3]}, "0"), None, ["maybe replace nodes"]),
    ],
)
def test_what_only_heat_can_compute_may_be_a_loss(stack: HeatStack, nodes: Any, changed: Any, found: list[str]) -> None:
    assert told(stack, nodes, changed=changed) == found


def test_a_count_that_only_heat_can_compute_may_be_a_loss_where_the_whole_was_not_previewed(stack: HeatStack) -> None:
    update = Effect("update", "nodes", GROUP)
    assert "maybe replace nodes" in told(stack, group({"if": ["a", 2, 3]}), update, changed=None)


def test_a_nested_stack_that_goes_is_named_by_what_it_consists_of(stack: HeatStack) -> None:
    assert told(stack, group(3), Effect("delete", "agents.1", "node.yaml")) == ["delete agents.1.server"]


def test_groups_that_shrink_are_previewed_so(stack: HeatStack) -> None:
    """Others grow in the same update, which Heat cannot preview."""
    template = {"resources": {"nodes": group({"get_param": "n"}), "agents": group(5), "x": {"type": "y"}}}
    asked = not_growing(stack, template, Parameters({"n": "1"}, {}))["resources"]
    assert [asked[name]["properties"]["count"] for name in ("nodes", "agents")] == [1, 2]


@pytest.mark.parametrize("empty", [{}, {"properties": None}])
def test_a_group_without_properties_is_left_to_heat(stack: HeatStack, empty: dict[str, Any]) -> None:
    template = {"resources": {"new": {"type": GROUP} | empty}}
    assert not_growing(stack, template, Parameters({}, {}))["resources"]["new"]["properties"] == {"count": 0}


@pytest.mark.parametrize(
    ("properties", "verb"),
    [
        ({"desired_capacity": 3}, "update"),
        ({"desired_capacity": 2}, "maybe replace"),
        ({"max_size": 2}, "maybe replace"),
        ({"max_size": {"get_attr": ["a", "b"]}}, "maybe replace"),
        ({"min_size": 4}, "update"),
    ],
)
def test_a_scaling_group_that_shrinks_loses_members_that_nobody_names(
    stack: HeatStack, properties: Any, verb: str
) -> None:
    member = {"type": SERVER, "properties": {}}
    nodes = {"type": SCALING, "properties": {"resource": member, **properties}}
    assert told(stack, nodes, Effect("update", "nodes", SCALING)) == [f"{verb} nodes"]


CHANGES = {"equals": [{"get_param": "v"}, "2"]}


@pytest.mark.parametrize(
    ("conditions", "verb"),
    [
        ({"new": CHANGES}, "maybe replace"),
        ({"new": {"not": "x"}, "x": {"and": ["y", True]}, "y": CHANGES}, "maybe replace"),
        ({"new": {"or": [{"condition": "x"}, False]}, "x": CHANGES}, "maybe replace"),
        ({"new": {"equals": [{"get_param": "w"}, "2"]}, "x": CHANGES}, "update"),
        ({"new": {"not": "x"}, "x": {"not": "new"}}, "update"),
        ({}, "update"),
    ],
)
def test_a_member_depends_on_what_its_named_conditions_depend_on(stack: HeatStack, conditions: Any, verb: str) -> None:
    member = {"type": SERVER, "properties": {"image": {"if": ["new", "b", "a"]}}}
    scaling = {"type": SCALING, "properties": {"desired_capacity": 3, "resource": member}}
    template = {"conditions": conditions, "resources": {"nodes": scaling}}
    values, changes = Parameters({"v": "2"}, {}), changes_of(template, template, frozenset({"v"}))
    found = with_group_effects([Effect("update", "nodes", SCALING)], stack, template, values, changes)
    assert list(map(str, found)) == [f"{verb} nodes"]


@pytest.mark.parametrize(
    ("preview", "text"),
    [
        (
            [Effect("add", "agents.2", "node.yaml"), Effect("update", "agents", GROUP)],
            "agents 2 to 3: Heat adds agents.2",
        ),
        (
            [Effect("delete", "agents.1.server", SERVER), Effect("replace", "nodes.0", SERVER)],
            "agents 2 to 1: Heat replaces nodes.0, deletes agents.1.server",
        ),
        (
            [Effect("restore", "nodes.0", SERVER), Effect("update", "nodes", GROUP)],
            "Heat updates nodes, rebuilds nodes.0",
        ),
        (
            [Effect("update", f"nodes.{number}", SERVER) for number in range(9)],
            "Heat updates nodes.0, nodes.1, nodes.2, nodes.3, nodes.4 and 4 more",
        ),
        ([Effect(MAYBE, "nodes", SCALING)], "Heat may replace members of nodes"),
        (
            [Effect("add", "gpus.0", "node.yaml"), Effect("add", "gpus", GROUP), Effect("update", "gpus", GROUP)],
            "Heat adds gpus.0, gpus (fast), updates gpus (fast)",
        ),
    ],
)
def test_what_an_update_does_is_one_sentence(stack: HeatStack, preview: list[Effect], text: str) -> None:
    names = group_names({"resources": {"gpus": group(1)}}, {"gpus_name": "fast", "nodes_name": "other"})
    record = StackRecord(stack=stack, status="UPDATE_COMPLETE", preview=tuple(preview), group_names=names)
    effects = record.effects
    assert effects is not None
    kept = "rebuild" not in text and "replace" not in text
    assert effects.text == text + (", rebuilds none" if kept else "")
    assert {name: len(places) for name, places in effects.data.items() if name == "add"} == {
        "add": sum(each.verb == "add" for each in preview)
    }
