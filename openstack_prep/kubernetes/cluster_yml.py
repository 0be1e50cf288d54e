"""RKE's cluster.yml, from the declaration of a cluster and its machines.

Source: RKE 1.7 (types/rke_types.go, cluster/defaults.go, cluster/plan.go): RKE itself sets
the cloud provider of the kubelet, and enables cri-dockerd for Kubernetes 1.24 and later.

Sources: RKE 1.7 (cluster/defaults.go for the defaults, cluster/plan.go: extra_args override the fields,
cluster/validation.go: several networks, separated by commas, are dual-stack, which calico and aci support).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import is_address, words
from openstack_prep.base.ranges import Net
from openstack_prep.base.raw import Raw, Steps, dotted, value_at
from openstack_prep.kubernetes import networks, rules
from openstack_prep.kubernetes.keys.schema import Fault, find_faults, hide_secrets, load_schema, merge, sort_keys
from openstack_prep.kubernetes.model import KubernetesCluster, Node, Registry
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken, dns_address
from openstack_prep.kubernetes.nodes import (
    REQUIRED,
    etcd_warning,
    group_mistakes,
    missing_roles,
    node_mistakes,
    taint_parts,
    worker_warning,
)

# --- cluster yml ------------------------------------------------------------------------------


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
"""Keys that config must not contain, and the fields for them."""
NODE_FIELDS = {
    "address": "the stack",
    "internal_address": "the stack",
    "role": "roles",
    "hostname_override": "the name of the machine",
    "user": "user",
    "labels": "labels",
    "taints": "taints",
}


def document(cluster: KubernetesCluster, nodes: Sequence[Node], name: str) -> dict[str, object]:
    """Return the cluster.yml of a cluster, valid or not, with secrets as ``Secret``.

    Defaults: ``user`` is ubuntu, the network plugin is canal.  All other omitted keys are left to RKE.
    """
    config = cluster.config or {}
    values = _declared(cluster, name) | {"nodes": [_node(cluster, node) for node in nodes]}
    values |= {name: config[name] for name in values.keys() & {"enable_cri_dockerd"} & config.keys()}
    schema = load_schema("cluster.yml")
    written: dict[str, object] = sort_keys(hide_secrets(merge(values, config), schema), schema)
    return written


def _declared(cluster: KubernetesCluster, name: str) -> dict[str, object]:
    """Return the keys that the fields of a cluster set."""
    services = cluster.service_cidr
    values = {
        "cluster_name": name,
        "kubernetes_version": cluster.kubernetes_version,
        "ssh_key_path": cluster.ssh_key_path,
        "private_registries": [_registry(private_registry) for private_registry in cluster.private_registries],
        "enable_cri_dockerd": rules.needs_cri_dockerd(cluster.kubernetes_version) or None,
        "network": {"plugin": cluster.network_plugin or DEFAULT_PLUGIN},
        "services": {
            "kube-api": {"service_cluster_ip_range": services},
            "kube-controller": {"cluster_cidr": cluster.cluster_cidr, "service_cluster_ip_range": services},
            "kubelet": {"cluster_dns_server": dns_address(cluster)},
        },
        "cloud_provider": {"name": "external"} if cluster.external_cloud_provider else None,
    }
    return _drop_empty(values)


def _drop_empty(values: Mapping[str, object]) -> dict[str, object]:
    kept = {name: _drop_empty(each) if isinstance(each, Mapping) else each for name, each in values.items()}
    return {name: each for name, each in kept.items() if each not in (None, {}, [])}


def _node(cluster: KubernetesCluster, node: Node) -> dict[str, object]:
    taints = [dict(zip(("key", "value", "effect"), taint_parts(taint), strict=True)) for taint in node.taints]
    values = {
        "address": node.address,
        "internal_address": node.internal_address if node.internal_address != node.address else None,
        "role": list(node.roles),
        "hostname_override": node.name.lower(),
        "user": cluster.user or DEFAULT_USER,
        "labels": dict(node.labels),
        "taints": taints,
    }
    return merge(_drop_empty(values), node.config)


def _registry(registry: Registry) -> dict[str, object]:
    values = {"url": registry.url, "user": registry.user, "password": registry.password}
    return _drop_empty(values | {"is_default": registry.is_default})


# --- checks -------------------------------------------------------------------------------


def mistakes(cluster: KubernetesCluster, nodes: Sequence[Node] | None) -> Iterator[Mistake]:
    """Yield everything that RKE refuses or silently ignores; ``nodes`` is None before the machines exist.

    ``where`` of a mistake is the name of the field, or ``config.`` and RKE's key.
    """
    config = cluster.config or {}
    external = {"etcd"} if value_at(config, "services.etcd.external_urls") else set()
    assigned = [role.roles for role in (cluster.roles if nodes is None else nodes)]
    yield from group_mistakes(cluster)
    yield from node_mistakes(nodes or ())
    yield from missing_roles((role for role in REQUIRED if role not in external), assigned)
    if external and any("etcd" in roles for roles in assigned):
        yield Mistake("roles", *rules.TWO_ETCDS)
    yield from _duplicates(cluster, config)
    plugin = cluster.network_plugin or DEFAULT_PLUGIN
    for field, given in (("cluster_cidr", cluster.cluster_cidr), ("service_cidr", cluster.service_cidr)):
        if "," in (given or "") and plugin not in DUAL_STACK:
            yield Mistake(field, f"{plugin} does not support {given}", f"write one network, or choose {DUAL_STACK[0]}")
    wrong = [*rules.keys(config), *_group_faults(cluster)]
    wrong += rules.values(document(cluster, (), "cluster"), has_nodes=False)
    places: set[str] = set()
    for fault in wrong:  # one per place: the others result from it
        if (place := _place(fault)) not in places:
            yield fault.mistake(place)
        places.add(place)


def warnings(cluster: KubernetesCluster, nodes: Sequence[Node] | None) -> Iterator[str]:
    """Yield warnings about valid settings."""
    yield from etcd_warning(sum("etcd" in node.roles for node in nodes or ()))
    yield from worker_warning([node.roles for node in nodes or ()])
    yield from rules.warnings(document(cluster, (), "cluster"))


def _duplicates(cluster: KubernetesCluster, config: Mapping[str, object]) -> Iterator[Mistake]:
    """Yield keys of config that have fields of their own."""
    fields = dict(FIELDS)
    if cluster.private_registries:
        fields["private_registries"] = "private_registries"
    if cluster.external_cloud_provider:
        fields["cloud_provider.name"] = "external_cloud_provider"
    for path, field in fields.items():
        if value_at(config, path) is not None:
            yield Mistake(f"config.{path}", f"is set by the field {field}", f"move the value to {field}")
    for index, group in enumerate(cluster.roles):
        for name in (group.config or {}).keys() & NODE_FIELDS.keys():
            what = f"is set by {NODE_FIELDS[name]}"
            yield Mistake(f"roles[{index}].config.{name}", what, "remove it from config")


def _group_faults(cluster: KubernetesCluster) -> Iterator[Fault]:
    for index, group in enumerate(cluster.roles):
        yield from find_faults(group.config or {}, load_schema("node"), ("roles", index, "config"))


def _place(fault: Fault) -> str:
    """Return the name of the field, or "config." and RKE's key."""
    path = dotted(fault.steps)
    if path.startswith("roles["):
        return path
    return FIELDS.get(path, f"config.{path}")


def kubeconfig_hint(path: str = FILE) -> str:
    """Return the commands, one per line, that create the cluster and use the kubeconfig that RKE writes."""
    folder, _, file = path.rpartition("/")
    kubeconfig = f"{folder}/kube_config_{file}" if folder else f"kube_config_{file}"
    return f"rke up --config {path}\nexport KUBECONFIG={kubeconfig}\nkubectl get nodes"


# --- network ----------------------------------------------------------------------------------


DUAL_STACK = ("calico", "aci")


class _Setting(NamedTuple):
    """A field of a service, and the flag that replaces it in extra_args."""

    service: str
    field: str
    flag: str
    default: str = ""

    def read(self, data: Raw) -> tuple[Steps, str]:
        """Return the value that counts, and where it is; "" when it is neither set nor has a default."""
        section = ("services", self.service)
        replaced = value_at(data, f"services.{self.service}.extra_args.{self.flag}")
        if replaced:
            return (*section, "extra_args", self.flag), str(replaced)
        return (*section, self.field), self.of_field(data)

    def of_field(self, data: Raw) -> str:
        """Return the value of the field alone."""
        value = words(value_at(data, f"services.{self.service}.{self.field}") or self.default)
        return value if isinstance(value, str) else ""


PODS = _Setting("kube-controller", "cluster_cidr", "cluster-cidr", "10.42.0.0/16")
SERVICES = _Setting("kube-controller", "service_cluster_ip_range", "service-cluster-ip-range", "10.43.0.0/16")
OF_API = _Setting("kube-api", "service_cluster_ip_range", "service-cluster-ip-range", "10.43.0.0/16")
DNS = _Setting("kubelet", "cluster_dns_server", "cluster-dns")
NETWORK_FIELDS = {"cluster_cidr": PODS, "service_cidr": SERVICES, "cluster_dns": DNS}


def faults(data: Raw) -> Iterator[Fault]:
    """Yield mistakes in the networks of pods and Services, and nodes with addresses in them."""
    found: dict[_Setting, list[Net]] = {}
    for setting in (PODS, SERVICES, OF_API):
        steps, text = setting.read(data)
        try:
            blanks = " " if steps[-1] == setting.flag else ""  # RKE itself takes none (pki/util.go)
            found[setting] = [ipaddress.ip_network(each.strip(blanks)) for each in text.split(",")]
        except ValueError:
            if text:  # else a value of another type, which is reported elsewhere
                yield Fault(steps, f"{text!r} is not a network", f"write one such as {setting.default}")
    if len(found) < 3:
        return
    if found[SERVICES] != found[OF_API]:
        (steps, of_api), (_, services) = OF_API.read(data), SERVICES.read(data)
        what, fix = f"{of_api} differs from {services} of kube-controller", f"write {services} in both places"
        yield Fault(steps, what, fix)
    yield from _dual_stack(data)
    yield from _per_version(data, found)


def _dual_stack(data: Raw) -> Iterator[Fault]:
    """Yield networks of two IP versions that the plugin does not support; RKE does not look into extra_args."""
    plugin = value_at(data, "network.plugin") or "canal"
    for setting in (PODS, OF_API):
        steps, text = ("services", setting.service, setting.field), setting.of_field(data)
        if "," in text and plugin not in DUAL_STACK:
            yield Fault(steps, f"{plugin} does not support {text}", f"write one network, or choose {DUAL_STACK[0]}")


def _per_version(data: Raw, found: dict[_Setting, list[Net]]) -> Iterator[Fault]:
    """Yield mistakes in the networks of each IP version."""
    pods, services = ({each.version: str(each) for each in found[setting]} for setting in (PODS, SERVICES))
    steps, dns = DNS.read(data)
    if dns and not is_address(dns):
        yield Fault(steps, f"{dns!r} is not an IP address", "remove it")
        dns = ""
    if not pods.keys() & services.keys():  # the check below reports different IP versions
        services = dict(zip(pods, services.values(), strict=False))
    listed = data.get("nodes")
    machines = listed if isinstance(listed, list) else []
    given = value_at(data, "services.kube-controller.extra_args")
    flags = {str(name): str(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
    for name, what, fix in networks.node_size_findings(found[PODS], flags):
        yield Fault(("services", "kube-controller", "extra_args", name), what, fix)
    count = None if any(flag.startswith(networks.NODE_SIZE) for flag in flags) else len(machines)
    taken = [Taken(f"nodes[{index}]", address) for index, address in _addresses(machines)]
    for version in [pod for pod in pods if pod in services]:
        of_version = dns if dns and ipaddress.ip_address(dns).version == version else None
        cluster = KubernetesCluster(cluster_cidr=pods[version], service_cidr=services[version], cluster_dns=of_version)
        for mistake in networks.mistakes(ClusterNetworks(), {"it": cluster}, taken, {"it": count}):
            yield Fault(NETWORK_FIELDS[mistake.field].read(data)[0], mistake.what, mistake.fix)


def _addresses(machines: list[object]) -> Iterator[tuple[int, str]]:
    for index, machine in enumerate(machines):
        values = [value_at(machine, name) for name in ("address", "internal_address")]
        yield from (
            (index, each) for each in {value for value in values if isinstance(value, str) and is_address(value)}
        )
