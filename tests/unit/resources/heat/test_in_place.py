from __future__ import annotations

import json
from typing import Any

import pytest

from openstack_prep.resources.heat.preview import revealing

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "a"}}
REVEALED = {"type": "OS::Nova::Server", "properties": {"image": "a", "image_update_policy": "REPLACE"}}


def body(resource: Any, **more: Any) -> dict[str, Any]:
    return {"template": {"resources": {"x": resource}}, "files": {}, "environment": {}, **more}


@pytest.mark.parametrize(
    ("resource", "revealed"),
    [
        (SERVER, REVEALED),
        (
            {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": SERVER}},
            {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": REVEALED}},
        ),
        (
            {"Type": "OS::Nova::Server", "Properties": {}},
            {"Type": "OS::Nova::Server", "Properties": {"image_update_policy": "REPLACE"}},
        ),
        (
            {"type": "OS::Neutron::Port", "properties": {"name": "x"}},
            {"type": "OS::Neutron::Port", "properties": {"name": "x"}},
        ),
        (
            {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
            {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
        ),
    ],
)
def test_servers_ask_for_a_replacement_wherever_they_are(resource: Any, revealed: Any) -> None:
    assert revealing(body(resource)) == body(revealed)


@pytest.mark.parametrize(
    ("policy", "revealed"),
    [
        ("REBUILD", "REPLACE"),
        ("IGNORE", "IGNORE"),
        ({"get_param": "p"}, {"str_replace": {"template": {"get_param": "p"}, "params": {"REBUILD": "REPLACE"}}}),
    ],
)
def test_user_data_that_rebuild(policy: Any, revealed: Any) -> None:
    server = {"type": "OS::Nova::Server", "properties": {"user_data_update_policy": policy}}
    found = revealing(body(server))["template"]["resources"]["x"]["properties"]
    assert found["user_data_update_policy"] == revealed


def test_a_volume_with_a_backup_cannot_be_updated_in_place() -> None:
    volume = {"type": "OS::Cinder::Volume", "properties": {"backup_id": "b"}}
    assert "scheduler_hints" in revealing(body(volume))["template"]["resources"]["x"]["properties"]


def test_nested_templates_and_types_of_other_names() -> None:
    """What declares no server keeps its text to the letter, and what is no YAML too."""
    node = "heat_template_version: 2018-08-31\nresources: {x: {type: My::Node, properties: {image: a}}}\n"
    files = {"node.yaml": node, "script": "# OS::Nova::Server: {", "other.yaml": "a:   b"}
    registry = {"resource_registry": {"My::Node": "OS::Nova::Server"}}
    found = revealing(body({}, files=files, environment=registry))["files"]
    assert json.loads(found.pop("node.yaml")) == {
        "heat_template_version": "2018-08-31",
        "resources": {"x": {"type": "My::Node", "properties": {"image": "a", "image_update_policy": "REPLACE"}}},
    }
    assert found == {name: files[name] for name in ("script", "other.yaml")}
