"""Where a placeholder may stand, and where it would become a password that anybody can compute."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from openstack_prep.resources.heat.flow import Destinations, list_kept
from openstack_prep.resources.heat.package import Package, read_package

DATABASE = "{type: 'OS::Trove::Instance', properties: {users: [{name: u, password: %s}]}}"
NODE = "{type: 'OS::Nova::Server', properties: {user_data: %s, metadata: {image: {get_param: secrets}}}}"
CONFIG = "{type: 'OS::Heat::SoftwareConfig', properties: {config: %s}}"
TO_FILES = "{str_replace: {template: 'pw: $p', params: {$p: {get_param: pw}}}}"
NESTED = """\
parameters: {files: {type: json}, word: {type: string}, image: {type: string}}
resources:
  server: {type: OS::Nova::Server, properties: {user_data: {list_join: ["", [{get_param: [files, a]}]]}}}
  other: {type: OS::Nova::Server, properties: {admin_pass: {get_param: word}}}
"""


def elsewhere(parts: dict[str, str], outputs: str = "{}", **given: Any) -> list[str]:
    """Return the places, by a template with these resources, whose servers ``node`` have the image."""
    resources = {name: yaml.safe_load(text) for name, text in parts.items()}
    conditions = {"off": {"equals": [{"get_param": "mode"}, "x"]}}
    parameters = {"pw": {"type": "string"}, "mode": {"type": "string"}, "secrets": {"type": "string"}}
    template = {
        "parameters": parameters,
        "conditions": conditions,
        "resources": resources,
        "outputs": yaml.safe_load(outputs),
    }
    files = {"node.yaml": NESTED}
    found = Destinations(template, files, {"My::Node": "node.yaml"}, given, frozenset({"node"}))
    return [each.place for each in found.find_elsewhere("pw")]


VALUE = "{type: 'OS::Heat::Value', properties: {value: {password: %s, other: x}}}"


@pytest.mark.parametrize(
    "parts",
    [
        {"node": NODE % TO_FILES},
        {"node": NODE % "{list_join: ['', [{get_param: pw}]]}"},
        {
            "v": VALUE % "{get_param: pw}",
            "node": NODE % "{str_replace: {template: $v, params: {$v: {get_attr: [v, value]}}}}",
        },
        {
            "v": VALUE % "{get_param: pw}",
            "node": NODE % "{get_attr: [v, value, password]}",
            "db": DATABASE % "{get_attr: [v, value, other]}",
        },
        {
            "c": CONFIG % TO_FILES,
            "node": NODE % "{get_resource: c}",
        },
        {"node": "{type: My::Node, properties: {files: {a: {get_param: pw}}, image: {get_param: secrets}}}"},
        {
            "node": "{type: 'OS::Heat::ResourceGroup', properties: {resource_def: {type: node.yaml, properties: "
            "{files: {a: {get_param: pw}}}}}}"
        },
        {"node": NODE % TO_FILES, "db": "{condition: 'off', " + (DATABASE % "{get_param: pw}")[1:]},
    ],
)
def test_files_of_servers_with_the_image(parts: dict[str, str]) -> None:
    assert elsewhere(parts, mode="y") == []


PASSWORD = "resources.db.properties.users[0].password"


@pytest.mark.parametrize(
    ("parts", "outputs", "place"),
    [
        ({"node": NODE % TO_FILES, "db": DATABASE % "{get_param: pw}"}, "{}", PASSWORD),
        ({"db": "{condition: 'off', " + (DATABASE % "{get_param: pw}")[1:]}, "{}", PASSWORD),
        ({"v": VALUE % "{get_param: pw}", "db": DATABASE % "{get_attr: [v, value, password]}"}, "{}", PASSWORD),
        ({"v": VALUE % "{get_param: pw}", "db": DATABASE % "{get_attr: [v, show]}"}, "{}", PASSWORD),
        (
            {"node": "{type: 'OS::Nova::Server', properties: {admin_pass: {get_param: pw}}}"},
            "{}",
            "resources.node.properties.admin_pass",
        ),
        ({"node": NODE % "{digest: [sha256, {get_param: pw}]}"}, "{}", "resources.node.properties.user_data.digest[1]"),
        (
            {"node": NODE % "{yaql: {expression: $.data.p, data: {p: {get_param: pw}}}}"},
            "{}",
            "resources.node.properties.user_data.yaql.data.p",
        ),
        ({"node": NODE % "{get_param: [pw, key]}"}, "{}", "resources.node.properties.user_data"),
        ({"else": NODE % TO_FILES}, "{}", "resources.else.properties.user_data.str_replace.params.$p"),
        (
            {"node": "{type: node.yaml, properties: {word: {get_param: pw}}}"},
            "{}",
            "node.yaml: resources.other.properties.admin_pass",
        ),
        (
            {"node": "{type: 'http://host/n.yaml', properties: {files: {get_param: pw}}}"},
            "{}",
            "resources.node.properties.files",
        ),
        ({"node": "{type: node.yaml, metadata: {get_param: pw}}"}, "{}", "resources.node.metadata"),
        ({}, "{o: {value: {get_param: pw}}}", "outputs.o.value"),
    ],
)
def test_everything_else(parts: dict[str, str], outputs: str, place: str) -> None:
    assert elsewhere(parts, outputs) == [place]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ({}, {}, []),
        ({"rke2_version": ""}, {"rke2_version": "v1.36.1+rke2r1", "server_image": "new"}, ["rke2_version"]),
        ({"server_flavor": "one", "server_count": 1}, {"server_flavor": "two", "server_count": 3}, []),
        ({"agent_count": 1}, {"agent_count": 3}, []),  # which decides no condition
        ({"agent_count": 0}, {"agent_count": 1}, ["agent_count"]),  # without agents, servers have no taint
        ({}, {"server_taint": "false", "external_cloud_provider": True}, ["external_cloud_provider", "server_taint"]),
        ({"cni": "cilium", "tls_san": ["a"]}, {"cni": ["cilium"], "tls_san": ["b"]}, ["tls_san"]),
        ({}, {"agent_node_configs": {"0": {}}, "server_config": {"v": 2}}, ["agent_node_configs", "server_config"]),
        ({}, {"etcd_s3_bucket": "b", "etcd_s3_folder": "f"}, ["etcd_s3_bucket", "etcd_s3_folder"]),
    ],
    ids=str,
)
def test_parameters_that_only_new_servers_of_the_shipped_template_get(
    before: dict[str, Any], after: dict[str, Any], kept: list[str]
) -> None:
    package = shipped()
    assert list_kept(package.template, package.files, {}, before, after) == kept


@cache
def shipped() -> Package:
    return read_package("shipped:rke2-cluster.yaml", ())


@pytest.mark.parametrize("policy", ["IGNORE", "REPLACE", None])
def test_servers_that_heat_replaces_keep_nothing(policy: str | None) -> None:
    properties = {"user_data": {"get_param": "x"}} | ({"user_data_update_policy": policy} if policy else {})
    server = {"type": "OS::Nova::Server", "properties": properties}
    template = {"parameters": {"x": {"type": "string"}}, "resources": {"server": server}}
    assert list_kept(template, {}, {}, {"x": "1"}, {"x": "2"}) == (["x"] if policy == "IGNORE" else [])
