from __future__ import annotations

import json

import pytest
import yaml

from openstack_prep.resources.heat.package import Package
from openstack_prep.resources.heat.refusals import hide_altered

TEMPLATE = """
heat_template_version: 2018-08-31
parameters: {password: {type: string, hidden: true}, flavor: {type: string}}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      inputs: {str_replace: {template: {get_param: password}, params: {"$": "$$"}}}
      group: {get_param: password}
      options: {str_replace: {template: x, params: {x: {get_param: flavor}}}}
  nodes: {type: node.yaml, properties: {data: {get_param: password}}}
"""
NODE = """
heat_template_version: 2018-08-31
parameters: {data: {type: string}}
resources: {server: {type: "OS::Nova::Server", properties: {user_data: {digest: [md5, {get_param: data}]}}}}
"""
NESTED = json.dumps(yaml.safe_load(NODE), default=str)
PACKAGE = Package(yaml.safe_load(TEMPLATE), {"node.yaml": NESTED}, {})
WORD = "Zq7$$$$word"


@pytest.mark.parametrize(
    "text",
    [
        f"400 Property error: resources.config.properties.inputs: '{WORD}' is not a list",
        f"400 Property error: resources.config.properties.inputs: \"{WORD}'\" and '{WORD}\"' are not a list",
        f"400 Property error: resources.nodes.resources.server.properties.user_data: '{WORD}' is not a list",
        f"400 '{WORD}' is not a list",
    ],
)
def test_what_a_function_makes_of_a_hidden_parameter_is_withheld(text: str) -> None:
    found = hide_altered(text, PACKAGE)
    assert WORD not in found
    assert "'...'" in found
    assert found.endswith("not a list")


@pytest.mark.parametrize("name", ["group", "options", "data"])
def test_other_reasons_are_shown(name: str) -> None:
    text = f"400 Property error: resources.config.properties.{name}: 'x' is not a list"
    assert hide_altered(text, PACKAGE) == text
    plain = Package({"resources": {}}, {}, {})
    assert hide_altered("400 'x' is not a list", plain) == "400 'x' is not a list"
