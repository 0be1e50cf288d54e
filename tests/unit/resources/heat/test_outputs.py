from __future__ import annotations

import base64

import pytest
import yaml

from openstack_prep.resources.heat.package import Package, read_package
from openstack_prep.resources.heat.secret_outputs import looks_secret, secret_outputs

TEMPLATE = """
parameters:
  password: {type: string, hidden: true}
  size: {type: number}
resources:
  random: {type: OS::Heat::RandomString}
  pair: {type: OS::Nova::KeyPair, properties: {save_private_key: true}}
  config: {type: OS::Heat::Value, properties: {value: {str_replace: {template: a, params: {a: {get_param: password}}}}}}
  handle: {type: OS::Heat::WaitConditionHandle}
  node: {type: node.yaml}
  nodes: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: Alias::Node}}}
  chain: {type: OS::Heat::ResourceChain, properties: {resources: [node.yaml]}}
  inner: {type: OS::Heat::Stack, properties: {template: {get_file: node.yaml}}}
  drawn: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: OS::Heat::RandomString}}}
outputs:
  of_random: {value: {get_attr: [random, value]}}
  of_random_by_id: {value: {get_resource: random}}
  of_pair: {value: {get_attr: [pair, private_key]}}
  of_parameter: {value: {list_join: ["", [a, {get_param: password}]]}}
  of_value: {value: {get_attr: [config, value]}}
  of_handle: {value: {get_attr: [handle, curl_cli]}}
  of_nested: {value: {get_attr: [node, login]}}
  of_nested_at_large: {value: {get_attr: [node, show]}}
  of_group: {value: {get_attr: [nodes, login]}}
  of_member: {value: {get_attr: [nodes, resource.0.login]}}
  of_chain: {value: {get_attr: [chain, attributes, login]}}
  of_inner: {value: {get_attr: [inner, outputs, login]}}
  of_drawn: {value: {get_attr: [drawn, value]}}
  private_key: {value: x}
  admin-password: {value: x}
  kubeconfig: {value: x}
  open_pair: {value: {get_attr: [pair, public_key]}}
  open_nested: {value: {get_attr: [node, address]}}
  open_group: {value: {get_attr: [nodes, address]}}
  open_size: {value: {get_param: size}}
  open_id: {value: {get_resource: node}}
  public_key: {value: x}
  kubeconfig_hint: {value: x}
  key_name: {value: x}
  tokens_used: {value: x}
"""
NODE = """
parameters: {given: {type: string, default: ""}}
resources:
  secret: {type: OS::Heat::RandomString}
  server: {type: OS::Nova::Server, properties: {user_data: {get_attr: [secret, value]}}}
outputs:
  login: {value: {get_attr: [secret, value]}}
  address: {value: {get_attr: [server, first_address]}}
"""
OPEN = {"public_key", "kubeconfig_hint", "key_name", "tokens_used"}


def test_outputs_are_secret_by_what_makes_them_and_by_name() -> None:
    template = yaml.safe_load(TEMPLATE)
    package = Package(template, {"node.yaml": NODE}, {"resource_registry": {"Alias::Node": "node.yaml"}})
    assert secret_outputs(package) == {
        name for name in template["outputs"] if not name.startswith("open_") and name not in OPEN
    }


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"
KUBECONFIG = "users:\n- name: admin\n  user: {client-key-data: LS0t, client-certificate-data: LS0t}\n"


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        KUBECONFIG,
        base64.b64encode(KUBECONFIG.encode()).decode(),
        '{"key": "' + base64.urlsafe_b64encode(PEM.encode()).decode() + '"}',
        "https://user:pass@registry.example.com",
        "url?temp_url_sig=abc&temp_url_expires=1",
        "curl -H 'X-Auth-Token: gAAAAA'",
        "token: K10abcdef::server:abc",
        "OS_PASSWORD=hunter2hunter2\nexport password=hunter2hunter2",
    ],
)
def test_forms_of_secrets(text: str) -> None:
    assert looks_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://10.0.0.5:6443",
        '["10.0.0.5", "10.0.0.6"]',
        "server: https://10.0.0.5:9345\ntoken: <the cluster's>\n",
        "ssh USER@10.0.0.9 sudo cat /etc/rancher/rke2/rke2.yaml | sed -e 's/127/10.0.0.5/'",
        "5af1896f-1a58-41bd-998d-993d26024cc7",
        "",
        base64.b64encode(b"a certificate or a picture, but no secret of any kind" * 3).decode(),
    ],
)
def test_forms_of_others(text: str) -> None:
    assert not looks_secret(text)


def test_outputs_of_a_template_of_cloudformation() -> None:
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {"drawn": {"Type": "OS::Heat::RandomString"}, "net": {"Type": "OS::Neutron::Net"}},
        "Outputs": {
            "word": {"Value": {"Fn::GetAtt": ["drawn", "value"]}},
            "id": {"Value": {"Fn::GetAtt": ["net", "show"]}},
        },
    }
    assert secret_outputs(Package(template, {}, {})) == {"word"}


def test_outputs_of_a_resource_whose_type_the_environment_replaces() -> None:
    template = {
        "resources": {"one": {"type": "My::Own"}, "other": {"type": "OS::Neutron::Net"}},
        "outputs": {
            "word": {"value": {"get_attr": ["one", "value"]}},
            "id": {"value": {"get_attr": ["other", "name"]}},
        },
    }
    registry = {"My::Own": "OS::Heat::None", "resources": {"one": {"My::Own": "OS::Heat::RandomString"}}}
    assert secret_outputs(Package(template, {}, {"resource_registry": registry})) == {"word"}


NESTED = """
heat_template_version: 2018-08-31
parameters: {name: {type: string}, files: {type: string, hidden: true}}
resources: {server: {type: OS::Nova::Server, properties: {name: {get_param: name}, user_data: {get_param: files}}}}
outputs:
  label: {value: {get_param: name}}
  content: {value: {get_param: files}}
"""


@pytest.mark.parametrize("member", [True, False])
def test_an_output_of_a_nested_template_is_made_of_its_own_parameters(member: bool) -> None:
    """Not of all that the nested stack gets; what it has no output for is doubtful."""
    node = {"type": "node.yaml", "properties": {"name": "n", "files": {"get_param": "token"}}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": node}}
    names = ("label", "content", "other")
    template = {
        "parameters": {"token": {"type": "string", "hidden": True}},
        "resources": {"nodes": group if member else node},
        "outputs": {name: {"value": {"get_attr": ["nodes", name]}} for name in names},
    }
    package = Package(template, {"node.yaml": NESTED}, {})
    assert secret_outputs(package) == {"content", "other"}


@pytest.mark.parametrize("name", ["rke2-cluster.yaml", "rke-cluster.yaml"])
def test_shipped_templates_show_addresses_and_names(name: str) -> None:
    assert secret_outputs(read_package(f"shipped:{name}", ())) == set()
