from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.resources.heat.parameters import named_resources, parameter_mistakes
from tests.unit.texts import Wording

DECLARED: dict[str, Any] = {
    "count": {"type": "number", "constraints": [{"range": {"min": 1, "max": 5}}]},
    "policy": {"type": "string", "default": "soft", "constraints": [{"allowed_values": ["soft", "hard"]}]},
    "version": {
        "type": "string",
        "default": "1",
        "constraints": [{"allowed_pattern": "[0-9]+", "description": "digits"}],
    },
    "name": {"type": "string", "default": "ab", "constraints": [{"length": {"max": 3}}]},
    "cni": {"type": "comma_delimited_list", "default": [], "constraints": [{"allowed_values": ["canal", "multus"]}]},
    "flag": {"type": "boolean", "default": True},
    "more": {"type": "json", "default": {}},
    "token": {"type": "string", "default": "", "hidden": True, "constraints": [{"length": {"min": 4}}]},
}


def said(**given: Any) -> list[str]:
    return [each.what for each in parameter_mistakes(DECLARED, {"count": 3} | given)]


def test_what_is_right_is_no_mistake() -> None:
    good = {"policy": "hard", "version": 12, "name": "abc", "cni": "multus,canal", "flag": "no", "more": '{"a": 1}'}
    assert said(**good) == []
    assert said(count="5", cni=["canal"], more={"a": 1}, token=Secret("long enough")) == []


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"count": 6}, "parameters: count: 6 violates the constraint {range: {min: 1, max: 5}}"),
        ({"count": "x"}, "parameters: count: x is not a number"),
        ({"policy": "no"}, 'parameters: policy: no violates the constraint {allowed_values: ["soft", "hard"]}'),
        ({"version": "1.2"}, "parameters: version: 1.2 violates the constraint digits"),
        ({"name": "abcd"}, "parameters: name: abcd violates the constraint {length: {max: 3}}"),
        (
            {"cni": "canal,cilium"},
            'parameters: cni: canal,cilium violates the constraint {allowed_values: ["canal", "multus"]}',
        ),
        ({"flag": "perhaps"}, "parameters: flag: perhaps is not true or false"),
        ({"more": "{"}, "parameters: more: { is not a mapping, a list or JSON"),
        ({"cuont": 1}, "parameters: the template has no parameter cuont"),
    ],
)
def test_each_mistake_is_told_with_its_value(given: dict[str, Any], what: str) -> None:
    assert said(**given) == [what]


@pytest.mark.filterwarnings("error::FutureWarning")
def test_what_python_thinks_of_a_pattern_is_not_told() -> None:
    declared = {"name": {"type": "string", "constraints": [{"allowed_pattern": "[[a-z]+"}]}}
    assert list(parameter_mistakes(declared, {"name": "lab"})) == []


def test_all_are_told_at_once_and_what_is_missing(wording: Wording) -> None:
    found = list(parameter_mistakes(DECLARED, {"policy": "no", "flag": 7}))
    wording([each.what for each in found])
    assert [each.parameter for each in found] == ["count", "policy", "flag"]


def test_a_hidden_value_is_held_against_its_rules_and_not_repeated(wording: Wording) -> None:
    wording(said(token=Secret("abc")))


def test_what_the_constraints_name() -> None:
    declared = {
        "flavor": {"type": "string", "default": "m1.small", "constraints": [{"custom_constraint": "nova.flavor"}]},
        "key": {"type": "string", "default": "", "constraints": [{"custom_constraint": "nova.keypair"}]},
        "groups": {
            "type": "comma_delimited_list",
            "constraints": [{"custom_constraint": "neutron.security_group"}],
        },
        "zone": {"type": "string", "constraints": [{"custom_constraint": "nova.availability_zone"}]},
    }
    found = list(named_resources({"parameters": declared}, {"groups": "a, b", "zone": "nova"}))
    assert found == [("flavor", "m1.small"), ("security_group", "a"), ("security_group", "b")]


def test_what_goes_into_security_groups_names_some() -> None:
    """Also where lists are joined, and in the definition of a group's members; default is every project's."""
    several = {"type": "comma_delimited_list", "default": ["default"]}
    joined = {"list_concat": [[{"get_resource": "own"}], {"get_param": "more"}]}
    template = {
        "parameters": {"groups": several, "more": several, "zones": several},
        "resources": {
            "own": {"type": "OS::Neutron::SecurityGroup"},
            "nodes": {"properties": {"resource_def": {"properties": {"security_groups": {"get_param": "groups"}}}}},
            "port": {"properties": {"security_groups": joined, "zones": {"get_param": "zones"}}},
        },
    }
    assert list(named_resources(template, {"zones": ["z"]})) == []
    given = {"groups": ["k8z", "default"], "more": "servces", "zones": ["z"]}
    assert list(named_resources(template, given)) == [("security_group", "k8z"), ("security_group", "servces")]


def test_a_volume_type_that_may_be_empty_is_named_by_its_property() -> None:
    template = {
        "parameters": {"kind": {"type": "string", "default": ""}, "size": {"type": "number"}},
        "resources": {"nodes": {"properties": {"volume_type": {"get_param": "kind"}, "size": {"get_param": "size"}}}},
    }
    assert list(named_resources(template, {"kind": "fast", "size": 3})) == [("volume_type", "fast")]
    assert not list(named_resources(template, {"size": 3}))


@pytest.mark.parametrize("constraints", [[], [{"allowed_values": ["true", "false"]}]])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_boolean_is_no_text(constraints: list[Any], hidden: bool) -> None:
    declared = {"vxlan": {"type": "string", "constraints": constraints, "hidden": hidden}}
    (found,) = parameter_mistakes(declared, {"vxlan": True})
    assert found.fix == ("write it in quotes" if hidden else 'write "true" in quotes')
    assert ("true" in found.what) is not hidden
    assert list(parameter_mistakes(declared, {"vxlan": "true"})) == []


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("string", 1.2, True),
        ("string", 3, False),
        ("string", "1.20", False),
        ("comma_delimited_list", ["1.20", 1.2], True),
        ("comma_delimited_list", [True], True),
        ("comma_delimited_list", [80, "443"], False),
        ("number", 1.2, False),
        ("json", {"version": 1.2}, False),
    ],
)
def test_a_number_with_a_point_is_no_text(kind: str, value: Any, wrong: bool) -> None:
    found = list(parameter_mistakes({"version": {"type": kind}}, {"version": value}))
    assert [each.fix for each in found] == (["write it in quotes"] if wrong else [])
