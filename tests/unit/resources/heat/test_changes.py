"""Which resources an update changes, by the templates alone; test_stack_previews asks a real Heat about the same."""

from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.resources.heat.changes import TemplateChanges, TemplateVersion, changed_parameters

TEMPLATE = """
parameters:
  p: {type: string, default: a}
  n: {type: number, default: 2}
conditions:
  big: {equals: [{get_param: n}, 3]}
  other: {and: [big, {equals: [{get_param: p}, b]}]}
resources:
  port: {type: "OS::Neutron::Port", properties: {network: x, name: {get_param: p}}}
  server:
    type: OS::Nova::Server
    properties: {user_data: {get_attr: [port, fixed_ips]}, flavor: {get_param: p}, image: i}
  nodes:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: n}
      resource_def: {type: node.yaml, properties: {size: {get_attr: [port, mac_address]}}}
  one: {type: T, properties: {a: A}}
"""
NODE = """
parameters: {size: {type: string}, more: {type: string, default: x}}
resources:
  disk: {type: T, properties: {a: {get_param: size}}}
  second: {type: T, properties: {a: {get_param: more}, b: {get_resource: disk}}}
outputs: {size: {value: {get_attr: [disk, size]}}, more: {value: {get_attr: [second, size]}}}
"""


def changes(before: str, after: str, node: str = NODE, unsettled: Any = (), **given: Any) -> TemplateChanges:
    old = TemplateVersion(parse_yaml(before), {"node.yaml": NODE}, values={})
    new = TemplateVersion(parse_yaml(after), {"node.yaml": node}, values=given)
    parameters = changed_parameters(old, new, frozenset())
    return TemplateChanges(old, new, parameters, {*unsettled}, lambda kind, name: name == "name")


def replaced(found: TemplateChanges, *places: str) -> set[str]:
    at = {place: found.at(place) for place in places}
    return {place for place, each in at.items() if each is None or each[0].replaces(*each[1:])}


@pytest.mark.parametrize(
    ("value", "given", "differs"),
    [
        ("{get_attr: [port, show]}", {}, False),
        ("{get_attr: [port, show]}", {"p": "b"}, True),
        ("{get_attr: [port, fixed_ips]}", {"p": "b"}, False),
        ("{get_resource: port}", {"p": "b"}, False),
        ("{get_attr: [nodes, resource.0.size]}", {"n": 3}, False),
        ("{get_attr: [nodes, resource.0]}", {"n": 3}, False),
        ("{get_attr: [nodes, size]}", {"n": 3}, True),
        ("{get_attr: [nodes, refs]}", {"n": "2"}, False),
        ("{get_attr: [nodes, attributes, size]}", {"p": "b"}, False),
        ("{get_attr: [nodes, current_size]}", {"n": 3}, True),
        ("{get_param: [p, key]}", {"p": "b"}, True),
        ("{get_param: 'OS::stack_name'}", {"p": "b"}, False),
        ("{if: [big, x, y]}", {"n": "3"}, True),
        ("{if: [big, x, y]}", {"n": 4}, False),
        ("{if: [big, {get_param: p}, y]}", {"p": "b"}, False),
        ("{if: [other, x, y]}", {"n": 3}, False),
        ("{if: [other, x, y]}", {"n": 3, "p": "b"}, True),
        ("{if: [{not: big}, x, y]}", {"n": 3}, True),
        ("{list_join: ['', [{str_replace: {template: x, params: {y: {get_param: p}}}}]]}", {"p": "b"}, True),
        ("{resource_facade: metadata}", {}, True),
        ("{get_attr: [gone, x]}", {}, True),
        ("{get_attr: [one, x]}", {}, True),
        ("{get_file: node.yaml}", {}, False),
        ("{Ref: port}", {"p": "b"}, False),
        ("{'Fn::GetAtt': port.Show}", {"p": "b"}, True),
    ],
)
def test_a_value_changes_with_what_it_is_made_of(value: str, given: Any, differs: bool) -> None:
    template = TEMPLATE.replace("{a: A}", f"{{a: {value}}}")
    assert (changes(template, template, **given).changed("one") == {"a"}) is differs


def test_what_replaces_a_resource() -> None:
    """Properties that Heat does not change in place, policies of servers, failures, and types."""
    places = ("server", "port", "nodes.0.disk", "nodes.0.second", "one")
    assert replaced(changes(TEMPLATE, TEMPLATE), *places) == set()
    assert replaced(changes(TEMPLATE, TEMPLATE, p="b"), *places) == set()
    after = TEMPLATE.replace("image: i", "flavor_update_policy: REPLACE")
    assert replaced(changes(TEMPLATE, after, p="b"), *places) == {"server"}
    after = TEMPLATE.replace("network: x", "network: y")
    assert replaced(changes(TEMPLATE, after), *places) == {"server", "port", "nodes.0.disk", "nodes.0.second"}
    assert replaced(changes(TEMPLATE, TEMPLATE, unsettled=["nodes.0.disk"]), *places) == {
        "nodes.0.disk",
        "nodes.0.second",
    }
    assert replaced(changes(TEMPLATE, TEMPLATE, unsettled=["nodes.1"]), *places) == set()
    assert replaced(changes(TEMPLATE, TEMPLATE, NODE.replace("default: x", "default: y")), *places) == {
        "nodes.0.second"
    }
    always = TEMPLATE.replace("network: x", "network: x, replacement_policy: REPLACE_ALWAYS")
    assert replaced(changes(always, always), "port", "server") == {"port", "server"}
    assert replaced(changes(TEMPLATE, f"heat_template_version: wallaby\n{TEMPLATE}"), "one") == {"one"}
    assert replaced(changes(TEMPLATE, TEMPLATE.replace("type: T", "type: U")), "one") == {"one"}
    assert replaced(changes(TEMPLATE, TEMPLATE), "unheard.0", "one.two") == {"unheard.0", "one.two"}


@pytest.mark.parametrize(
    ("kind", "part", "other"),
    [
        ("OS::Heat::Stack", "properties: {context: {region_name: a}}", "properties: {context: {region_name: b}}"),
        ("AWS::AutoScaling::LaunchConfiguration", "metadata: {a: 1}", "metadata: {a: 2}"),
    ],
)
def test_heat_replaces_although_the_schema_allows_an_update(kind: str, part: str, other: str) -> None:
    uses = "two: {type: T, properties: {a: {get_resource: one}}}"
    before = f'resources: {{one: {{type: "{kind}", {part}}}, {uses}}}'
    old, new = (TemplateVersion(parse_yaml(each), {}, values={}) for each in (before, before.replace(part, other)))
    found = TemplateChanges(old, new, frozenset(), set(), lambda kind, name: name == "context")
    assert replaced(found, "one", "two") == {"one", "two"}


def test_a_policy_decides_what_wipes_a_disk() -> None:
    after = TEMPLATE.replace("image: i", "image: j")
    found = changes(TEMPLATE, after).at("server")
    assert found is not None
    level, definition, changed = found
    assert changed == {"image"}
    assert not level.replaces(definition, changed)
    assert level.replaces(definition, changed, wiping=True)
