"""The spec of the new cluster: the example of RKE2, with the nodes, networks, settings and files of a cluster.yml.

Sources: install_configs/rke2.yaml; heat_templates/rke2-cluster.yaml (server_count, extra_files).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret, secrets_in
from openstack_prep.kubernetes import rke2
from openstack_prep.kubernetes.convert.outcome import FOLDER, Content, Draft
from openstack_prep.kubernetes.keys.schema import SECRET, load_schema
from openstack_prep.kubernetes.model import Node, Registry, Role
from openstack_prep.kubernetes.rke2 import is_server

FILE = "new.yaml"
COUNTS = (1, 3, 5, 7)
"""Numbers of servers that the template takes, because etcd needs a majority."""
FIRST: tuple[Role, ...] = ("controlplane", "etcd")
"""Roles without which a node cannot start the cluster."""
NETWORKS = {"cluster-cidr": "cluster_cidr", "service-cidr": "service_cidr", "cluster-dns": "cluster_dns"}
ON_NODES = ("webhook.yaml", "admission.yaml", "audit-policy.yaml", "etcd-s3-ca.pem")
"""Files that config.yaml names."""
PRIVATE = "private-config.yaml"


def planned_nodes(nodes: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Return servers, in a number that a stack takes and with the one first that starts the cluster, and agents."""
    servers = sorted(filter(is_server, nodes), key=lambda each: not {*FIRST} <= {*each.roles})
    first = replace(servers[0], roles=(*FIRST, *(role for role in servers[0].roles if role not in FIRST)))
    wanted = next((count for count in COUNTS if count >= len(servers)), COUNTS[-1])
    servers = [first, *servers[1:wanted], *[first] * (wanted - len(servers))]
    return servers, [node for node in nodes if not is_server(node)]


def new_spec(
    draft: Draft,
    version: str,
    nodes: Sequence[Node],
    plugin: str,
    registries: Sequence[Registry],
    made: Mapping[str, Content],
) -> Values:
    """Return the spec; ``made`` are the converted files by name."""
    spec: Values = yaml.safe_load((files("openstack_prep.install_configs") / "rke2.yaml").read_text())
    servers, agents = planned_nodes(nodes)
    parameters = spec["stacks"][0]["parameters"]
    parameters |= {"server_count": len(servers), "agent_count": len(agents)}
    if shown := shown_files(made):
        parameters["extra_files"] = {f"{FOLDER}/{name}": text for name, text in shown.items()}
    config = {name: each for name, each in draft.config.items() if name not in rke2.FIELDS}
    for name, items in private_config(config).items():
        config[name.removesuffix("+")] = [each for each in config[name.removesuffix("+")] if each not in items]
    cluster = spec["rke_clusters"][0]
    del cluster["cilium"]
    cluster |= {name: draft.config[key] for key, name in NETWORKS.items() if key in draft.config}
    cluster |= {
        "kubernetes_version": version,
        "network_plugin": plugin,
        "external_cloud_provider": draft.external,
        "private_registries": [_fields(registry) for registry in registries],
        "roles": list(_roles([*servers, *agents])),
        "config": {name: each for name, each in config.items() if each != []},
    }
    spec["rke_clusters"][0] = {name: each for name, each in cluster.items() if each not in ([], {}, False)}
    return spec


def shown_files(made: Mapping[str, Content]) -> dict[str, str]:
    """Return the files without secrets that the template puts on the nodes."""
    return {
        name: made[name] if isinstance(made[name], str) else dump(*made[name])  # type: ignore[misc]
        for name in ON_NODES
        if name in made and not any(secrets_in(made[name]))
    }


def hidden_files(made: Mapping[str, Content]) -> dict[str, str]:
    """Return the paths of files with secrets, which Heat would show to readers if the template had them."""
    paths = {name: f"{FOLDER}/{name}" for name in ON_NODES} | {PRIVATE: f"{FOLDER}/config.yaml.d/40-private.yaml"}
    return {name: path for name, path in paths.items() if name in made and any(secrets_in(made[name]))}


def private_config(config: Raw) -> Values:
    """Return the secrets in lists such as kube-apiserver-arg, of which the spec takes none; KEY+ adds to a list."""
    known = load_schema("server")["properties"]
    lists = {name: each for name, each in config.items() if isinstance(each, list) and SECRET not in known[name]}
    found = {f"{name}+": [item for item in each if isinstance(item, Secret)] for name, each in lists.items()}
    return {name: each for name, each in found.items() if each}


def _fields(registry: Registry) -> Values:
    values: Values = {"url": registry.url, "user": registry.user, "password": registry.password}
    values["is_default"] = registry.is_default or None
    return {name: each for name, each in values.items() if each is not None}


def _roles(nodes: Sequence[Node]) -> Any:
    """Yield a group per series of equal nodes; the last one is open, for nodes that are added."""
    start = 0
    for index, node in enumerate(nodes):
        last = index + 1 == len(nodes)
        if last or _group(nodes[index + 1]) != _group(node) or is_server(nodes[index + 1]) != is_server(node):
            indexes = f"{start}-{'' if last and not is_server(node) else index}"
            yield {"nodes": indexes, **_group(node)}
            start = index + 1


def _group(node: Node) -> Raw:
    values = {"roles": list(node.roles), "labels": dict(node.labels), "taints": list(node.taints)}
    return {name: each for name, each in values.items() if each}
