"""Valid documents that the trials begin with: what is shipped, and the unit tests' stored files."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.unit.exposures.convert.generated import text as services

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "unit" / "data"
ID = "dev-x7k2p"
CLOUDS = {
    "clouds": {
        "lab": {
            "region_name": "one",
            "identity_api_version": "3",
            "verify": True,
            "cacert": "/etc/ssl/certs/ca-certificates.crt",
            "auth": {
                "auth_url": "http://127.0.0.1:1/v3",
                "username": "admin",
                "password": "admin-password",
                "project_name": "admin",
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
        },
        "credential": {
            "auth_type": "v3applicationcredential",
            "auth": {
                "auth_url": "http://127.0.0.1:1/v3",
                "application_credential_id": "0123",
                "application_credential_secret": "word",
            },
        },
    }
}
POOL = {
    "version": 1,
    "pool": "lab",
    "id": "0123456789abcdef",
    "network": {"cidr": "10.0.0.0/24", "gateway": "10.0.0.1", "addresses": ["10.0.0.100-10.0.0.199"]},
    "users": {"lab": {"project": "admin-project"}},
    "claims": {"lab/a": {"address": "10.0.0.100", "mac": "d2:00:00:00:00:01"}, "printer": {"address": "10.0.0.101"}},
}
METADATA = {
    "clusterName": "dev",
    "clusterID": "7f4e3b52-4a3c-4d1e-9d3a-2f6a7f0b1c2d",
    "infraID": ID,
    "openstack": {"cloud": "lab", "identifier": {"openshiftClusterID": ID}},
    "featureSet": "",
}
CONFIG_YAML = {
    "token": "word",
    "tls-san": ["api.example.com"],
    "cni": ["cilium"],
    "cluster-cidr": "10.42.0.0/16",
    "node-label": ["a=b"],
    "write-kubeconfig-mode": "0600",
    "kubelet-arg": ["max-pods=200"],
}
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "description": "one port",
    "parameters": {
        "network": {"type": "string", "constraints": [{"length": {"min": 1, "max": 9}}, {"allowed_pattern": "[a-z]+"}]},
        "count": {"type": "number", "default": 1},
        "word": {"type": "string", "hidden": True, "default": "x"},
        "names": {"type": "comma_delimited_list", "default": "a,b"},
        "more": {"type": "json", "default": {"a": 1}},
        "on": {"type": "boolean", "default": True},
    },
    "conditions": {"is_on": {"equals": [{"get_param": "on"}, True]}},
    "resources": {
        "port": {
            "type": "OS::Neutron::Port",
            "condition": "is_on",
            "properties": {
                "network": {"get_param": "network"},
                "name": {"str_replace": {"template": "p", "params": {}}},
            },
        },
        "servers": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {
                "count": {"get_param": "count"},
                "resource_def": {"type": "OS::Nova::Server", "properties": {"flavor": "m1", "user_data": "#!/bin/sh"}},
            },
        },
        "inner": {"type": "node.yaml", "properties": {"file": {"get_file": "setup.sh"}}},
    },
    "outputs": {"port": {"value": {"get_attr": ["port", "fixed_ips"]}}},
}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@cache
def specs() -> list[Any]:
    """Return the shipped specs, and the examples of docs/spec.md, which have all sections."""
    shipped = [read(path) for path in sorted((ROOT / "install_configs").glob("*.yaml"))]
    text = (ROOT / "docs" / "spec.md").read_text()
    sections = re.findall(r"^## \w+\n```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [*shipped, *({"name": "lab", **yaml.safe_load(each)} for each in sections)]


@cache
def install_configs() -> list[Any]:
    found = [read(path) for path in sorted((DATA / "install_config").glob("*.yaml"))]
    for each in found:
        each["platform"]["openstack"]["cloud"] = "lab"
    return found


@cache
def cluster_ymls() -> list[Any]:
    return [read(path) for path in sorted((ROOT / "tests/unit/kubernetes/data").glob("*.yml"))]


@cache
def streams() -> list[Any]:
    found = [json.loads(path.read_text()) for path in sorted((DATA / "rhcos").glob("*.json"))]
    bootimages = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "coreos-bootimages"},
        "data": {"stream": json.dumps(found[-1]), "releaseVersion": "4.20.1"},
    }
    return [*found, {"rhel-9": found[-1], "rhel-10": found[-1]}, bootimages]


@cache
def service_lists() -> list[Any]:
    """Return lists of Services and Nodes: a short one is changed more."""
    whole = json.loads(services())
    return [{**whole, "items": whole["items"][start : start + 3] + whole["items"][-2:]} for start in range(0, 200, 10)]


@cache
def pools() -> list[Any]:
    """Return old pools."""
    eip = {
        "apiVersion": "network.kubesphere.io/v1alpha2",
        "kind": "Eip",
        "metadata": {"name": "eip", "annotations": {"eip.openelb.kubesphere.io/is-default-eip": "true"}},
        "spec": {"address": "192.0.2.10-192.0.2.20", "protocol": "layer2", "interface": "eth0", "disable": False},
    }
    claim = {
        "apiVersion": "ipcontroller.ext/v1",
        "kind": "IpClaimPool",
        "metadata": {"name": "pool"},
        "spec": {
            "cidr": "192.0.2.128/25",
            "ranges": [["192.0.2.130", "192.0.2.140"]],
            "allocated": {"192.0.2.131": "a"},
        },
    }
    return [eip, claim]


def short_service_lists() -> list[Any]:
    """Return lists of Services alone."""
    return [{**each, "items": each["items"][:3]} for each in service_lists()]
