"""rke2-cluster.yaml with an Octavia load balancer: the devcloud has none, so stand-ins and Heat's own schemas help."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.functional.rke2_cluster import (
    BASE,
    MANIFESTS,
    TEMPLATES,
    Cluster,
    checked_config,
    files_of,
    made,
    stack_values,
)

__all__ = ["made"]  # a fixture

OCTAVIA = Path(__file__).parent / "data" / "octavia" / "environment.yaml"


def test_load_balancer(made: Cluster) -> None:
    """In place of kube-vip; with stand-ins for Octavia's resources, which the devcloud does not have."""
    declared = {"server_count": 1, "agent_count": 1, "wait_timeout": 0, "api_address": "10.0.0.7"}
    balanced = {"api_load_balancer": "amphora", "api_load_balancer_cidrs": ["10.0.0.0/24"]}
    stack = replace(made.stack(**declared, **balanced), environments=(str(OCTAVIA),))
    made.lab.apply(*BASE, stack)
    heat: Any = made.lab.as_user().connection.orchestration
    found = heat.find_stack(made.name)
    shown = heat.get(f"/stacks/{made.name}/{found.id}/resources?nested_depth=3").json()["resources"]
    kinds = [each["resource_type"] for each in shown]
    assert kinds.count("OS::Octavia::PoolMember") == kinds.count("OS::Octavia::Pool") == 2
    outputs = {each["output_key"]: each["output_value"] for each in stack_values(made)["outputs"]}
    assert outputs["api_endpoint"] == "https://10.0.0.7:6443"
    server = files_of(made, "server")
    assert f"{MANIFESTS}/kube-vip.yaml" not in server
    assert checked_config(server, "server")["tls-san"] == ["10.0.0.7"]
    assert "api='10.0.0.7'" in files_of(made, "agent")["/var/lib/rke2-node/setup"]
    network = made.lab.as_user().connection.network
    (port,) = outputs["server_ports"]
    assert network.get_port(port).allowed_address_pairs == []
    rules = {(each.port_range_min, each.remote_ip_prefix) for each in network.security_group_rules()}
    assert {(6443, "10.0.0.0/24"), (9345, "10.0.0.0/24")} <= rules


def test_load_balancer_by_heats_own_schemas(devcloud: Any) -> None:
    """The properties of Octavia's resources, by the classes of the Heat that the devcloud has installed."""
    found = {}
    for name in ("rke2-balancer.yaml", "rke2-node.yaml"):
        resources = yaml.safe_load((TEMPLATES / name).read_text())["resources"]
        found |= {f"{name} {each}": value for each, value in resources.items() if "Octavia" in value["type"]}
    assert len(found) == 9
    judge = Path(__file__).parent / "data" / "octavia" / "judge.py"
    command = [str(devcloud.layout.venv / "bin" / "python"), str(judge)]
    done = subprocess.run(command, input=json.dumps(found), text=True, capture_output=True)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
