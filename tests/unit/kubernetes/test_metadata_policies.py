"""The policies of docs/kubernetes.md that keep pods from the metadata service, by the schemas of their kinds."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from openstack_prep import kubernetes
from tests.unit import kubernetes_schemas

METADATA = ip_address("169.254.169.254")
PAGE = (Path(kubernetes.__path__[0]).parents[1] / "docs" / "kubernetes.md").read_text()
CLUSTERWIDE = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "cilium.io/v2"},
        "kind": {"const": "CiliumClusterwideNetworkPolicy"},
        "metadata": {"type": "object", "required": ["name"], "propertyNames": {"const": "name"}},
        "spec": {
            "type": "object",
            "required": ["endpointSelector", "egressDeny"],
            "additionalProperties": False,
            "properties": {
                "endpointSelector": {"const": {}},
                "enableDefaultDeny": {
                    "type": "object",
                    "propertyNames": {"enum": ["ingress", "egress"]},
                    "additionalProperties": {"type": "boolean"},
                },
                "egressDeny": {
                    "type": "array",
                    "items": {"type": "object", "required": ["toCIDR"], "propertyNames": {"const": "toCIDR"}},
                },
            },
        },
    },
}
"""The fields that are used, written by hand from Cilium's pkg/policy/api: rule.go, egress.go (EgressDenyRule)."""


def policy(kind: str) -> dict[str, Any]:
    blocks = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(apiVersion:.*?)```", PAGE, re.DOTALL))
    (found,) = (each for each in blocks if each["kind"] == kind)
    return dict(found)


def test_the_policy_of_cilium_denies_the_metadata_service_alone() -> None:
    found = policy("CiliumClusterwideNetworkPolicy")
    jsonschema.validate(found, CLUSTERWIDE)
    assert found["spec"]["enableDefaultDeny"]["egress"] is False  # or each pod would lose all its connections
    (rule,) = found["spec"]["egressDeny"]
    assert [ip_network(each) for each in rule["toCIDR"]] == [ip_network(METADATA)]


@pytest.mark.parametrize("version", ["1.31", "1.35"])
def test_the_policy_of_kubernetes_allows_everything_else(version: str) -> None:
    found = policy("NetworkPolicy")
    kubernetes_schemas.validate(found, version)
    assert found["spec"]["policyTypes"] == ["Egress"]
    (rule,) = found["spec"]["egress"]
    (peer,) = rule["to"]
    assert "ports" not in rule  # of each protocol
    assert (peer["ipBlock"]["cidr"], peer["ipBlock"]["except"]) == ("0.0.0.0/0", [f"{METADATA}/32"])
