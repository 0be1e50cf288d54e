"""RKE2's config.yaml per node, and registries.yaml, from the declaration of a cluster and its machines.

Sources: RKE2's documentation ("Server Configuration Reference", "High Availability", "Managing Server Roles",
"Private Registry Configuration").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from openstack_prep.base import shell
from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, dotted
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.keys.schema import (
    SAME_ON_SERVERS,
    Fault,
    hide_secrets,
    keys_of_config,
    load_schema,
    sort_keys,
)
from openstack_prep.kubernetes.model import KubernetesCluster, Node, Role
from openstack_prep.kubernetes.networks import dns_address
from openstack_prep.kubernetes.nodes import etcd_warning, group_mistakes, missing_roles, node_mistakes
from openstack_prep.kubernetes.rke2_rules import (
    JOIN_PORT,
    PLUGINS,
    document_faults,
    kubelet_may_set,
    newer_keys,
    refused_label,
)
from openstack_prep.kubernetes.versions import check_version, minor_of

TOKEN_FILE = "/etc/rancher/rke2/token"
DATASTORE = "datastore-endpoint"  # replaces etcd
DEFAULT_PLUGIN = "canal"
NO_PODS = "CriticalAddonsOnly=true:NoExecute"
"""Taint of servers that are not workers, from RKE2's documentation."""
NO_CONTROL_PLANE = {"disable-apiserver": True, "disable-controller-manager": True, "disable-scheduler": True}

FIELDS = {
    "server": "the address of the API",
    "node-name": "the name of the machine",
    "node-ip": "the stack",
    "node-external-ip": "the stack",
    "node-label": "roles[].labels",
    "node-taint": "roles[].taints",
    "cni": "network_plugin",
    "cluster-cidr": "cluster_cidr",
    "service-cidr": "service_cidr",
    "cluster-dns": "cluster_dns",
}
"""Keys that config must not contain, and the source of their values."""


def is_server(node: Node) -> bool:
    """Whether a node runs ``rke2 server``: it is controlplane, etcd or both."""
    return bool({"controlplane", "etcd"} & set(node.roles))


def first_server(nodes: Sequence[Node]) -> Node | None:
    """Return the server that initializes the cluster: the first one with etcd, else the first one."""
    servers = [node for node in nodes if is_server(node)]
    return next((server for server in servers if "etcd" in server.roles), servers[0] if servers else None)


def documents(
    cluster: KubernetesCluster,
    nodes: Sequence[Node],
    *,
    api: str,
    token: Secret | None = None,
    agent_token: Secret | None = None,
    tls_san: Sequence[str] = (),
) -> dict[str, dict[str, object]]:
    """Return the config.yaml of each node by its name, with secrets as ``Secret``.

    ``api`` is the address (IP or name, without port) at which nodes reach the servers; ``tls_san`` are further names
    of the API.  When the first server has etcd only, the other servers join it directly, because no API runs yet.
    Without ``token``, nodes read it from /etc/rancher/rke2/token. Agents join with ``agent_token`` if it is given.
    """
    first = first_server(nodes)
    alone = first is not None and "controlplane" not in first.roles
    works = has_workers(nodes)
    config = cluster.config or {}
    agent_token = agent_token or config.get("agent-token")
    with_agents = cluster
    if agent_token is not None:
        with_agents = replace(cluster, config={name: config[name] for name in config.keys() - {"token", "token-file"}})
    made = {}
    for each in nodes:
        at = first.internal_address if first and alone and is_server(each) else api
        join = None if each is first else join_url(at)
        own = token if is_server(each) or agent_token is None else agent_token
        of = cluster if is_server(each) else with_agents
        made[each.name] = _document(of, each, join, own, [api, *tls_san], has_workers=works)
        if is_server(each) and agent_token is not None:
            made[each.name].setdefault("agent-token", agent_token)
    return made


def has_workers(nodes: Sequence[Node]) -> bool:
    """Whether any node is a worker; else all servers run pods, because no other node does."""
    return any("worker" in node.roles for node in nodes)


def keys_of_role(cluster: KubernetesCluster, node: Node, *, has_workers: bool) -> dict[str, object]:
    """Return the keys of config.yaml that follow from the role of a node, and from its labels and taints."""
    no_pods = has_workers and is_server(node) and "worker" not in node.roles
    keys: dict[str, object] = {
        "node-label": [f"{key}={value}" for key, value in node.labels.items()],
        "node-taint": [*node.taints, *([NO_PODS] if no_pods and NO_PODS not in node.taints else [])],
    }
    if not is_server(node):
        return keys
    if "etcd" not in node.roles and DATASTORE not in (cluster.config or {}):
        keys["disable-etcd"] = True
    return keys | (NO_CONTROL_PLANE if "controlplane" not in node.roles else {})


def _document(
    cluster: KubernetesCluster,
    node: Node,
    join: str | None,
    token: Secret | None,
    names: Sequence[str],
    *,
    has_workers: bool,
) -> dict[str, object]:
    role: Literal["server", "agent"] = "server" if is_server(node) else "agent"
    schema = load_schema(role)
    config = {name: each for name, each in (cluster.config or {}).items() if name in keys_of_config(role)}
    config |= node.config
    values: dict[str, object] = {"server": join}
    if not {"token", "token-file"} & config.keys():
        values |= {"token": token} if token else {"token-file": TOKEN_FILE}
    values |= _of_node(cluster, node) | keys_of_role(cluster, node, has_workers=has_workers)
    if is_server(node):
        values |= _of_server(cluster)
        own = config.pop("tls-san", ())
        values["tls-san"] = list(dict.fromkeys([*names, *([own] if isinstance(own, str) else own)]))
    kept = {name: each for name, each in values.items() if each not in (None, [], "")}
    written: dict[str, object] = sort_keys(hide_secrets(config | kept, schema), schema)
    return written


def _of_node(cluster: KubernetesCluster, node: Node) -> dict[str, object]:
    """Return the keys that describe the node itself."""
    outer = node.address if node.address != node.internal_address else None
    return {
        "node-name": node.name.lower(),
        "node-ip": [node.internal_address, node.second_address] if node.second_address else node.internal_address,
        "node-external-ip": None if cluster.external_cloud_provider else outer,
        "cloud-provider-name": "external" if cluster.external_cloud_provider else None,
    }


def _of_server(cluster: KubernetesCluster) -> dict[str, object]:
    """Return the keys of all servers."""
    return {
        "cni": [each.strip() for each in (cluster.network_plugin or DEFAULT_PLUGIN).split(",")],
        "cluster-cidr": cluster.cluster_cidr,
        "service-cidr": cluster.service_cidr,
        "cluster-dns": dns_address(cluster),
        "disable-cloud-controller": cluster.external_cloud_provider or None,
        "system-default-registry": next(
            (private_registry.url for private_registry in cluster.private_registries if private_registry.is_default),
            None,
        ),
    }


def registries(cluster: KubernetesCluster) -> dict[str, object] | None:
    """Return the registries.yaml of all nodes; None when no registry requires a login."""
    logins = [
        private_registry
        for private_registry in cluster.private_registries
        if private_registry.user or private_registry.password
    ]
    if not logins:
        return None
    return {
        "configs": {
            login.url: {"auth": {"username": login.user or "", "password": login.password or ""}} for login in logins
        }
    }


def join_url(api: str) -> str:
    """Return the URL at which nodes join: https://ADDRESS:9345."""
    return f"https://{_in_url(api)}:{JOIN_PORT}"


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def kubeconfig_hint(
    user: str, server: str, api: str, path: str = "kubeconfig", name: str = "default", bastion: str = ""
) -> str:
    """Return the commands, one per line, that fetch the kubeconfig from a server, if need be by way of a bastion.

    RKE2 names cluster, user and context ``default``; a different ``name`` allows several kubeconfigs side by side.
    """
    local = r"\[::1\]" if ":" in api else r"127\.0\.0\.1"  # K3s, pkg/daemons/config/types.go, Control.Loopback
    changes = shell.join(["-e", f"s/{local}/{_in_url(api)}/", "-e", f"s/: default$/: {name}/"])
    jump = f"-J {shell.quote(bastion)} " if bastion else ""
    fetch = f"ssh {jump}{shell.quote(f'{user}@{server}')} sudo cat /etc/rancher/rke2/rke2.yaml | sed {changes}"
    return f"(umask 077; {fetch} > {path})\nexport KUBECONFIG={path}\nkubectl get nodes"


# --- checks -------------------------------------------------------------------------------


def mistakes(cluster: KubernetesCluster, nodes: Sequence[Node] | None) -> Iterator[Mistake]:
    """Yield everything that RKE2 refuses or silently ignores; ``nodes`` is None before the machines exist.

    ``where`` of a mistake is the name of the field, or ``config.`` and RKE2's key.
    """
    yield from group_mistakes(cluster)
    yield from node_mistakes(nodes or ())
    wanted: tuple[Role, ...] = ("controlplane",) if DATASTORE in (cluster.config or {}) else ("controlplane", "etcd")
    yield from missing_roles(wanted, [role.roles for role in (cluster.roles if nodes is None else nodes)])
    yield from _values(cluster)
    yield from _config(cluster)
    yield from _groups(cluster)


def warnings(cluster: KubernetesCluster, nodes: Sequence[Node] | None) -> Iterator[str]:
    """Yield warnings about valid settings."""
    yield from etcd_warning(sum("etcd" in node.roles for node in nodes or ()))
    if cluster.ssh_key_path:
        yield "ssh_key_path only applies to RKE; RKE2 does not log in to nodes"


def _values(cluster: KubernetesCluster) -> Iterator[Mistake]:
    version = cluster.kubernetes_version
    yield from _version(version)
    if cluster.network_plugin is None:
        return
    *before, plugin = [each.strip() for each in cluster.network_plugin.split(",")]
    if plugin not in PLUGINS or before not in ([], ["multus"]):
        fix = f"write one of {', '.join(PLUGINS)}, optionally after multus: multus,{DEFAULT_PLUGIN}"
        yield Mistake("network_plugin", f"RKE2 does not support {cluster.network_plugin!r}", fix)
    for fault in newer_keys({"cni": cluster.network_plugin}, _minor(cluster)):
        yield fault.mistake("network_plugin")


def _version(version: str | None) -> Iterator[Mistake]:
    try:
        list(check_version(version) if version else ())
    except InvalidValue as error:
        yield Mistake("kubernetes_version", f"{version!r} {error.what}", error.fix)


def _config(cluster: KubernetesCluster) -> Iterator[Mistake]:
    config = cluster.config or {}
    fields = FIELDS | ({"system-default-registry": "private_registries"} if cluster.private_registries else {})
    if cluster.external_cloud_provider:
        fields |= dict.fromkeys(("cloud-provider-name", "disable-cloud-controller"), "external_cloud_provider")
    yield from _taken(config, "config", fields)
    rest = {name: each for name, each in config.items() if name not in fields}
    for fault in _config_faults(cluster, rest, "server"):
        yield fault.mistake(f"config.{dotted(fault.steps)}")


def _config_faults(cluster: KubernetesCluster, config: Raw, form: Literal["server", "agent"]) -> Iterator[Fault]:
    """Yield the faults of keys beside the networks, which are fields of the cluster, and are judged as such."""
    values = {name: getattr(cluster, FIELDS[name]) for name in ("cluster-cidr", "service-cidr")}
    values = {name: value for name, value in values.items() if value}
    for fault in document_faults({**values, **config}, load_schema(form), _minor(cluster)):
        if fault.steps[0] not in values:
            yield fault


def _minor(cluster: KubernetesCluster) -> int | None:
    """Return N of the cluster's Kubernetes 1.N, if it declares a version."""
    return minor_of(cluster.kubernetes_version)


def _taken(config: Mapping[str, object], place: str, fields: Mapping[str, str]) -> Iterator[Mistake]:
    for name in [field for field in fields if field in config]:
        yield Mistake(f"{place}.{name}", f"is set by {fields[name]}", "remove it from config")


def _groups(cluster: KubernetesCluster) -> Iterator[Mistake]:
    for index, group in enumerate(cluster.roles):
        config, place = group.config or {}, f"roles[{index}].config"
        serves = set(group.roles) != {"worker"}
        yield from _taken(config, place, FIELDS)
        for name in config.keys() & set(SAME_ON_SERVERS) - FIELDS.keys():
            yield Mistake(f"{place}.{name}", "must be the same on all servers", "move it to config of the cluster")
        rest = {name: each for name, each in config.items() if name not in (*FIELDS, *SAME_ON_SERVERS)}
        for fault in _config_faults(cluster, rest, "server" if serves else "agent"):
            yield fault.mistake(f"{place}.{dotted(fault.steps)}")
        for key in group.labels or {}:
            if not kubelet_may_set(key):
                yield Mistake(f"roles[{index}].labels", *refused_label(key))
