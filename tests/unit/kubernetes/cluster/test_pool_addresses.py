"""Templates of one's own, which decide by themselves what the ports of nodes may send."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.spec import load_spec
from openstack_prep.spec.resolution import refuse_mistakes

TEMPLATE = "template.yaml"
OWN: dict[str, Any] = {"type": "OS::Neutron::Port", "properties": {"network": {"get_param": "network"}}}
OFF = {"type": OWN["type"], "properties": {**OWN["properties"], "port_security_enabled": False}}


def server(port: object) -> dict[str, Any]:
    return {"type": "OS::Nova::Server", "properties": {"networks": [{"port": port}]}}


def codes(tmp_path: Path, template: dict[str, Any] | None = None) -> list[str]:
    """Return what is refused of a pool without pairs, in the subnet of the nodes."""
    if template:
        (tmp_path / TEMPLATE).write_text(yaml.safe_dump({"heat_template_version": "2018-08-31", **template}))
    given = {"server_image": "i", "agent_image": "i", "server_flavor": "f", "agent_flavor": "f", "key_name": "k"}
    parameters = {"network": "n"} if template else {**given, "network": "n", "subnet": "n"}
    sections = {
        "name": "lab",
        "networks": [{"name": "n"}],
        "subnets": [{"name": "n", "network": "n", "cidr": "10.3.0.0/24", "allocation_pools": ["10.3.0.10-10.3.0.99"]}],
        "stacks": [{"name": "s", "template": TEMPLATE, "parameters": parameters}],
        "rke_clusters": [
            {
                "name": "c",
                "distribution": "rke2",
                "stack": "s",
                "directory": "c",
                "metallb": {"pools": [{"name": "x", "addresses": ["10.3.0.208/29"]}]},
            }
        ],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(sections))
    try:
        refuse_mistakes(load_spec(path))
    except SpecError as error:
        return [each.code for each in error.mistakes if each.code.startswith("pairs.")]
    return []


@pytest.mark.parametrize(
    ("more", "resources", "refused"),
    [
        ({}, {"port": OWN, "server": server({"get_resource": "port"})}, True),
        ({}, {"server": {"type": "OS::Nova::Server", "properties": {"networks": [{"network": "n"}]}}}, True),
        ({}, {"port": OFF, "server": server({"get_resource": "port"})}, False),
        ({"ports": {"type": "comma_delimited_list"}}, {"server": server({"get_param": ["ports", 0]})}, False),
        ({"p": {"type": "string", "constraints": [{"custom_constraint": "neutron.port"}]}}, {"port": OWN}, False),
        ({}, {"server": server("port-of-somebody")}, False),
        (
            {"nets": {"type": "json", "default": []}},
            {"server": {"type": "OS::Nova::Server", "properties": {"networks": {"get_param": "nets"}}}},
            False,
        ),
    ],
    ids=["own", "of-nova", "off", "parameter", "constraint", "name", "networks"],
)
def test_a_template_that_lets_ports_send_is_left_to_heat(
    tmp_path: Path, more: dict[str, Any], resources: dict[str, Any], refused: bool
) -> None:
    template = {"parameters": {"network": {"type": "string"}, **more}, "resources": resources}
    assert codes(tmp_path, template) == ["pairs.missing"] * refused


def test_nested_templates_count(tmp_path: Path) -> None:
    nested = {"heat_template_version": "2018-08-31", "resources": {"port": OFF}}
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(nested))
    resources = {"nodes": {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": {"type": "node.yaml"}}}}
    assert codes(tmp_path, {"parameters": {"network": {"type": "string"}}, "resources": resources}) == []


@pytest.mark.parametrize("off", [False, True])
def test_a_copy_of_the_shipped_template_without_port_security(tmp_path: Path, off: bool) -> None:
    """It still has the parameter for addresses of all nodes, which is then not needed."""
    shutil.copytree(str(files("openstack_prep.heat_templates")), tmp_path, dirs_exist_ok=True)
    shutil.move(tmp_path / "rke2-cluster.yaml", tmp_path / TEMPLATE)
    node, pairs = tmp_path / "rke2-node.yaml", "allowed_address_pairs: {get_param: address_pairs}"
    text = node.read_text()
    assert text.count(pairs) == 1
    node.write_text(text.replace(pairs, "port_security_enabled: false") if off else text)
    assert codes(tmp_path) == ["pairs.missing"] * (not off)
