"""RKE's cluster.yml: from what is declared and the machines there are.

Source: RKE 1.7 (types/rke_types.go, cluster/defaults.go, cluster/plan.go): it gives the kubelet the
cloud provider's name, and cri-dockerd to Kubernetes 1.24 and later, by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base.errors import Mistake
from openstack_prep.kubernetes import rules
from openstack_prep.kubernetes.keys.schema import (
    Fault,
    dotted,
    find_faults,
    hide_secrets,
    load_schema,
    merge,
    sort_keys,
    value_at,
)
from openstack_prep.kubernetes.model import Cluster, Node, Registry
from openstack_prep.kubernetes.networks import dns_said
from openstack_prep.kubernetes.nodes import MASTER, etcd_warning, group_mistakes, missing, node_mistakes, taint_parts

FILE = "cluster.yml"
DEFAULT_PLUGIN = "canal"
DEFAULT_USER = "ubuntu"

FIELDS = {
    "cluster_name": "name",
    "kubernetes_version": "kubernetes_version",
    "nodes": "roles",
    "ssh_key_path": "ssh_key_path",
    "network.plugin": "network_plugin",
    "services.kube-api.service_cluster_ip_range": "service_cidr",
    "services.kube-controller.service_cluster_ip_range": "service_cidr",
    "services.kube-controller.cluster_cidr": "cluster_cidr",
    "services.kubelet.cluster_dns_server": "cluster_dns",
}
"""What fields of ours say, and config may not."""
NODE_FIELDS = {
    "address": "the stack",
    "internal_address": "the stack",
    "role": "roles",
    "hostname_override": "the machine's name",
    "user": "user",
    "labels": "labels",
    "taints": "taints",
}


def document(cluster: Cluster, nodes: Sequence[Node], name: str) -> dict[str, object]:
    """Return the cluster.yml of a cluster, whether right or not, its keys in the order of a reader.

    What nobody may see stays a Secret in it.  ``user`` is ubuntu and the plugin canal when nothing is
    said of them; other things that are not said are left to RKE.
    """
    config = cluster.config or {}
    said = _declared(cluster, name) | {"nodes": [_node(cluster, node) for node in nodes]}
    said |= {name: config[name] for name in said.keys() & {"enable_cri_dockerd"} & config.keys()}
    schema = load_schema("cluster.yml")
    written: dict[str, object] = sort_keys(hide_secrets(merge(said, config), schema), schema)
    return written


def _declared(cluster: Cluster, name: str) -> dict[str, object]:
    """Return what the fields of a cluster say."""
    services = cluster.service_cidr
    said = {
        "cluster_name": name,
        "kubernetes_version": cluster.kubernetes_version,
        "ssh_key_path": cluster.ssh_key_path,
        "private_registries": [_registry(each) for each in cluster.private_registries],
        "enable_cri_dockerd": rules.needs_cri_dockerd(cluster.kubernetes_version) or None,
        "network": {"plugin": cluster.network_plugin or DEFAULT_PLUGIN},
        "services": {
            "kube-api": {"service_cluster_ip_range": services},
            "kube-controller": {"cluster_cidr": cluster.cluster_cidr, "service_cluster_ip_range": services},
            "kubelet": {"cluster_dns_server": dns_said(cluster)},
        },
        "cloud_provider": {"name": "external"} if cluster.external_cloud_provider else None,
    }
    return _without_nothing(said)


def _without_nothing(said: Mapping[str, object]) -> dict[str, object]:
    kept = {name: _without_nothing(each) if isinstance(each, Mapping) else each for name, each in said.items()}
    return {name: each for name, each in kept.items() if each not in (None, {}, [])}


def _node(cluster: Cluster, node: Node) -> dict[str, object]:
    taints = [dict(zip(("key", "value", "effect"), taint_parts(each), strict=True)) for each in node.taints]
    said = {
        "address": node.address,
        "internal_address": node.internal_address if node.internal_address != node.address else None,
        "role": list(node.roles),
        "hostname_override": node.name.lower(),
        "user": cluster.user or DEFAULT_USER,
        "labels": dict(node.labels),
        "taints": taints,
    }
    return merge(_without_nothing(said), node.config)


def _registry(registry: Registry) -> dict[str, object]:
    said = {"url": registry.url, "user": registry.user, "password": registry.password}
    return _without_nothing(said | {"is_default": registry.is_default})


# --- what is wrong ------------------------------------------------------------------------


def mistakes(cluster: Cluster, nodes: Sequence[Node] | None) -> Iterator[Mistake]:
    """Yield everything that RKE refuses, or passes over without a word; ``nodes`` is None before there are any.

    ``where`` of a mistake is our name of the field, or ``config.`` and RKE's.
    """
    config = cluster.config or {}
    external = {"etcd"} if value_at(config, "services.etcd.external_urls") else set()
    said = [each.roles for each in (cluster.roles if nodes is None else nodes)]
    yield from group_mistakes(cluster)
    yield from node_mistakes(nodes or ())
    yield from missing((role for role in MASTER if role not in external), said)
    if external and any("etcd" in each for each in said):
        remedy = "take the role etcd away, or external_urls"
        yield Mistake("roles", "there is etcd inside and outside of the cluster", remedy)
    yield from _said_twice(cluster, config)
    wrong = [*rules.keys(config), *_of_groups(cluster)]
    wrong += rules.values(document(cluster, (), "cluster"), has_nodes=False)
    told: set[str] = set()
    for fault in wrong:  # one a place: others follow from it
        if (place := _place(fault)) not in told:
            yield fault.mistake(place)
        told.add(place)


def warnings(cluster: Cluster, nodes: Sequence[Node] | None) -> Iterator[str]:
    """Yield what works, but not as well as it could."""
    yield from etcd_warning(sum("etcd" in each.roles for each in nodes or ()))
    yield from rules.warnings(document(cluster, (), "cluster"))


def _said_twice(cluster: Cluster, config: Mapping[str, object]) -> Iterator[Mistake]:
    """Yield keys of config that fields of ours are for."""
    fields = dict(FIELDS)
    if cluster.private_registries:
        fields["private_registries"] = "private_registries"
    if cluster.external_cloud_provider:
        fields["cloud_provider.name"] = "external_cloud_provider"
    for path, field in fields.items():
        if value_at(config, path) is not None:
            yield Mistake(f"config.{path}", f"is what the field {field} is for", f"write it there: {field}")
    for index, group in enumerate(cluster.roles):
        for name in (group.config or {}).keys() & NODE_FIELDS.keys():
            what = f"comes from {NODE_FIELDS[name]}"
            yield Mistake(f"roles[{index}].config.{name}", what, "take it out of config")


def _of_groups(cluster: Cluster) -> Iterator[Fault]:
    for index, group in enumerate(cluster.roles):
        yield from find_faults(group.config or {}, load_schema("node"), ("roles", index, "config"))


def _place(fault: Fault) -> str:
    """Return our name of the field, or "config." and RKE's."""
    path = dotted(fault.steps)
    if path.startswith("roles["):
        return path
    return FIELDS.get(path, f"config.{path}")


def kubeconfig_hint(path: str = FILE) -> str:
    """Return how to come by the kubeconfig, which RKE writes beside cluster.yml: one command a line."""
    folder, _, file = path.rpartition("/")
    kubeconfig = f"{folder}/kube_config_{file}" if folder else f"kube_config_{file}"
    return f"rke up --config {path}\nexport KUBECONFIG={kubeconfig}\nkubectl get nodes"
