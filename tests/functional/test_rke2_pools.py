"""Pools of agents of rke2-cluster.yaml on a real Heat: what their nodes get, and that each scales by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from tests.functional.rke2_cluster import BASE, Cluster, made, stack_values

__all__ = ["made"]  # a fixture

GPU: dict[str, Any] = {
    "pool1_name": "gpu",
    "pool1_count": 1,
    "pool1_flavor": "m1.medium",
    "pool1_config": {"node-label": ["gpu=yes"], "node-taint": ["gpu=yes:NoSchedule"]},
}
PLAIN = {"server_count": 1, "agent_count": 1, "wait_timeout": 0, "rke2_version": "v1.35.7+rke2r1"}
TAKEN = ("replace", "rebuild", "unknown", "delete")
SECRETS = {"token": Secret("T0kenOfTheCluster123"), "agent_token": Secret("T0ken-of-the-agents_4")}


def config_of(files: dict[str, str], name: str = "config.yaml") -> Any:
    return yaml.safe_load(files.get(f"/etc/rancher/rke2/{name}", "{}"))


@pytest.mark.more  # six updates of a stack take minutes
def test_pools_of_agents(made: Cluster, tmp_path: Path) -> None:
    cluster = RkeCluster(
        name=made.name,
        stack=made.name,
        directory=str(tmp_path / "files"),
        distribution="rke2",
        config={"kube-proxy-arg": ["v=2"]},
    )

    def applied(**more: Any) -> tuple[Any, dict[str, str]]:
        """Return what the plan says that Heat will do, and the nodes that the apply leaves."""
        stack = made.stack(**PLAIN, **more, secret_parameters=SECRETS)
        (step,) = (each for each in made.lab.plan(*BASE, stack, cluster).data() if each["resource"] == str(stack.key))
        made.lab.apply(*BASE, stack, cluster, allow_replace=True)
        return step.get("effects"), made.nodes()

    # a pool for a cluster that has none
    _, before = applied()
    effects, with_gpu = applied(**GPU)
    assert {"pool1", "pool1.0"} <= {*effects["add"]}
    assert not [each for name in TAKEN for each in effects[name]]
    assert with_gpu.items() >= before.items()
    assert with_gpu.keys() - before.keys() == {f"{made.name}-gpu-0"}

    # its nodes have what agents have, and their own; no secret of servers
    files, of_agent = (made.files(with_gpu[f"{made.name}-{name}-0"]) for name in ("gpu", "agent"))
    assert config_of(files) == config_of(of_agent)
    assert (config_of(files)["token"], config_of(files)["kube-proxy-arg"]) == ("T0ken-of-the-agents_4", ["v=2"])
    assert "T0kenOfTheCluster123" not in str(files)
    assert config_of(files, "config.yaml.d/25-pool.yaml") == GPU["pool1_config"]
    server = made.lab.admin.compute.get_server(with_gpu[f"{made.name}-gpu-0"])
    assert server.flavor["original_name"] == "m1.medium"
    assert (server.metadata["pool"], server.metadata["role"]) == ("gpu", "agent")
    written = yaml.safe_load((tmp_path / "files" / f"{made.name}-gpu-0.yaml").read_text())
    assert {key: written[key] for key in GPU["pool1_config"]} == GPU["pool1_config"]
    assert "node-label" not in yaml.safe_load((tmp_path / "files" / f"{made.name}-agent-0.yaml").read_text())

    # one pool grows, another one comes, one shrinks: no other node changes
    effects, grown = applied(**GPU | {"pool1_count": 2})
    assert effects["sizes"] == {"pool1": {"before": 1, "after": 2}}
    assert effects["add"] == ["pool1.1"]
    assert not [each for name in TAKEN for each in effects[name]]
    assert grown.items() >= with_gpu.items()
    _, two = applied(**GPU | {"pool1_count": 2}, pool2_name="edge", pool2_count=1)
    assert two.items() >= grown.items()
    shown = {each["output_key"]: each["output_value"] for each in stack_values(made)["outputs"]}
    names = [f"{made.name}-{name}" for name in ("agent-0", "gpu-0", "gpu-1", "edge-0")]
    assert shown["agent_names"] == names
    assert len({*shown["agent_addresses"]}) == len(names)
    _, left = applied(**GPU | {"pool1_count": 1, "pool1_to_remove": ["0"]}, pool2_name="edge", pool2_count=1)
    assert left == {name: each for name, each in two.items() if name != f"{made.name}-gpu-0"}
    _, without = applied(pool2_name="edge", pool2_count=1)
    assert without == {name: each for name, each in left.items() if name != f"{made.name}-gpu-1"}
    assert not made.lab.plan(
        *BASE, made.stack(**PLAIN, pool2_name="edge", pool2_count=1, secret_parameters=SECRETS), cluster
    )
