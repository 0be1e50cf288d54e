"""What the files of an RKE2 cluster show is what its nodes get, on a real Heat."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.cilium import Cilium
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.model import NodeGroup, Registry
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.verbs.audit import audit
from tests.functional.lab import Lab
from tests.functional.rke2_cluster import BASE, KEY, Cluster, made, stack_values

__all__ = ["made"]  # a fixture

OF_THE_NODE = {"node-name", "node-ip", "server"}
"""Keys that a node finds out by itself, or that its setup script writes when it joins."""
CONFIG = {
    "profile": "cis",
    "secrets-encryption": True,
    "etcd-snapshot-retention": 30,
    "disable-kube-proxy": True,
    "tls-san": ["api.example.com"],
    "kubelet-arg": ["max-pods=200"],
    "etcd-s3-session-token": Secret("session-s3cret"),
    "token": Secret("T0kenOfTheCluster123"),
}
AUDIT = "/etc/rancher/rke2/audit-policy.yaml"
LOGIN = Registry(url="registry.example.com", user="u", password=Secret("p:#4word"), is_default=True)
BUNDLE = '<%path%> {{ a }} \\ "\n' * 1000
"""More than Heat's yaql takes, with what a template could replace."""
ROLES = (
    NodeGroup(nodes="0", roles=("controlplane", "etcd"), labels={"first": "yes"}),
    NodeGroup(nodes="1-2", roles=("controlplane", "etcd"), taints=("a=b:NoSchedule",)),
    NodeGroup(nodes="3-", roles=("worker",), labels={"disk": "fast"}, config={"kubelet-arg": ["v=2"]}),
)


def configuration(files: dict[str, str]) -> dict[str, Any]:
    """Return what RKE2 reads of a node's files: config.yaml, then those of config.yaml.d by name."""
    folder = "/etc/rancher/rke2/config.yaml"
    found: dict[str, Any] = {}
    for path in sorted(path for path in files if path == folder or path.startswith(f"{folder}.d/")):
        found |= yaml.safe_load(files[path])
    return {key: each for key, each in found.items() if each != ""}  # an empty flag is none


def shown(folder: Path, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / f"{name}.yaml").read_text()))


def test_nodes_get_what_the_files_show(made: Cluster, tmp_path: Path) -> None:
    """config, roles and logins of registries; a later change reaches new nodes alone, which plan and apply say."""
    stack = made.stack(
        **{"server_count": 3, "agent_count": 1, "wait_timeout": 0, "etcd_s3_bucket": "b"},
        server_config={"etcd-snapshot-schedule-cron": "0 3 * * *"},
        extra_files={AUDIT: 'rules: [{level: "Metadata"}]\n', "/etc/ssl/bundle.pem": BUNDLE},
        secret_parameters={"agent_token": Secret("T0kenOfTheAgents1234"), "etcd_s3_secret_key": Secret("key-s3cret")},
    )
    cluster = RkeCluster(
        name=made.name,
        stack=made.name,
        directory=str(tmp_path / "files"),
        distribution="rke2",
        kubernetes_version="v1.35.7+rke2r1",
        cluster_dns="10.43.0.20",
        config=CONFIG,
        roles=ROLES,
        private_registries=(LOGIN,),
    )
    plan = made.lab.plan(*BASE, stack, cluster)
    made.lab.apply(*BASE, stack, cluster)
    assert list(map(str, audit(made.lab.cloud, made.lab.spec(*BASE, stack, cluster)))) == []
    told = str(plan) + json.dumps(stack_values(made))
    assert not [each for each in ("session-s3cret", "p:#4word", "T0kenOf", "key-s3cret") if each in told]
    nodes = made.nodes()
    assert len(nodes) == 4
    for name, node in nodes.items():
        files, written = made.files(node), shown(tmp_path / "files", name)
        got = configuration(files)
        assert {key: each for key, each in written.items() if key not in OF_THE_NODE} == got, name
        assert files[AUDIT] == 'rules: [{level: "Metadata"}]\n'
        assert files["/etc/ssl/bundle.pem"] == BUNDLE
        assert "profile='cis'" in files["/var/lib/rke2-node/setup"]  # which prepares the kernel
        logins = yaml.safe_load(files["/etc/rancher/rke2/registries.yaml"])
        assert logins == yaml.safe_load((tmp_path / "files" / "registries.yaml").read_text())
    first, agent = (configuration(made.files(nodes[f"{made.name}-{each}-0"])) for each in ("server", "agent"))
    assert (first["node-label"], agent["node-label"]) == (["first=yes"], ["disk=fast"])
    assert (first["kubelet-arg"], agent["kubelet-arg"]) == (["max-pods=200"], ["v=2"])
    assert not made.lab.plan(*BASE, stack, cluster)

    later = replace(cluster, config={"debug": True, "token": CONFIG["token"]}, roles=())
    plan = made.lab.plan(*BASE, stack, later)
    assert not plan.refusals, plan.refusals
    (step,) = (each for each in plan.data() if each["resource"].startswith("stack/"))
    assert step["effects"]["kept"] == KEPT
    (label,) = (each for each in plan.warnings if "kubectl label" in each and "disk" in each)
    assert label.endswith(f"kubectl label nodes --overwrite {made.name}-agent-0 disk-")
    report = made.lab.run(*BASE, stack, later)
    report.raise_for_failures()
    assert made.nodes() == nodes
    kept = {each["path"]: each["content"] for each in made.user_data(nodes[f"{made.name}-server-0"])["write_files"]}
    assert not configuration(kept).get("debug")
    check_upgrade(made, stack, later)


def check_upgrade(made: Cluster, stack: Stack, cluster: RkeCluster) -> None:
    """A new version is for new nodes, which may not be agents; the files upgrade the nodes that run."""
    newer = replace(cluster, kubernetes_version="v1.36.1+rke2r1")
    more = replace(stack, parameters={**(stack.parameters or {}), "agent_count": 2})
    (refused,) = made.lab.plan(*BASE, more, newer).refusals
    assert (refused.code, "agent_count 1" in refused.fix) == ("cluster.version", True)
    nodes = made.nodes()
    made.lab.apply(*BASE, stack, newer)
    assert made.nodes() == nodes
    plans = list(yaml.safe_load_all((Path(cluster.directory) / "upgrade.yaml").read_text()))
    assert [(each["metadata"]["name"], each["spec"]["version"]) for each in plans] == [
        ("rke2-servers", "v1.36.1+rke2r1"),
        ("rke2-agents", "v1.36.1+rke2r1"),
    ]
    assert not made.lab.plan(*BASE, stack, newer)


KEPT = ["agent_config", "profile", "server_config", "server_node_configs", "tls_san"]


DUAL = (
    Network(name="nodes"),
    Subnet(name="nodes", network="nodes", cidr="203.0.113.0/24"),
    Subnet(name="nodes6", network="nodes", cidr="2001:db8:1::/64"),  # sorts before the other
    Keypair(name="key", public_key=KEY),
)


def test_dual_stack(devcloud: Any, images: tuple[str, str], tmp_path: Path) -> None:
    """Nodes have an address of each IP version, which RKE2 gets in the order of cluster_cidr; so do the rules."""
    lab = Lab(devcloud)
    lab.apply(*DUAL)
    made = Cluster(lab, images[0])
    stack = made.stack(server_count=1, agent_count=1, wait_timeout=0, second_subnet="nodes6")
    cluster = RkeCluster(
        name=made.name,
        stack=made.name,
        directory=str(tmp_path / "files"),
        distribution="rke2",
        cluster_cidr="10.42.0.0/16,fd00:42::/56",
        service_cidr="10.43.0.0/16,fd00:43::/112",
        cilium=Cilium(cluster_id=1, mesh="none"),
    )
    lab.apply(*DUAL, stack, cluster)
    for role in ("server", "agent"):
        name = f"{made.name}-{role}-0"
        got, written = configuration(files := made.files(made.nodes()[name])), shown(tmp_path / "files", name)
        addresses = [ipaddress.ip_address(each) for each in got["node-ip"]]
        assert [each.version for each in addresses] == [4, 6]
        found = OF_THE_NODE - {"node-ip"} | {"cluster-dns", "token", "token-file"}
        assert {key: each for key, each in written.items() if key not in found} == {
            key: each for key, each in got.items() if key not in found
        }
        assert ("cluster-dns" in written) == (role == "server")
        assert f"role='{role}'" in files["/var/lib/rke2-node/setup"]
    values = yaml.safe_load((tmp_path / "files" / "rke2-cilium-config.yaml").read_text())["spec"]["valuesContent"]
    families = yaml.safe_load(values)
    assert (families["ipv4"], families["ipv6"]) == ({"enabled": True}, {"enabled": True})
    rules = list(lab.as_user().connection.network.security_group_rules(direction="ingress"))
    between = {
        version: {
            (each.protocol, each.port_range_min) for each in rules if each.ether_type == version and each.protocol
        }
        for version in ("IPv4", "IPv6")
    }
    assert {port for protocol, port in between["IPv4"]} == {port for protocol, port in between["IPv6"]}
    assert ("icmp", None) in between["IPv4"]
    assert ("ipv6-icmp", None) in between["IPv6"]
    assert not lab.plan(*DUAL, stack, cluster)
    lab.destroy()
