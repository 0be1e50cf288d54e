"""The conversion of a cluster.yml: a handler per key, so that no key is dropped in silence.

The addresses are those of the old machines; a stack gives the new ones theirs.

Source: Rancher's documentation of the end of life of RKE1: clusters are replatformed to RKE2; Rancher does not support
a migration in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from openstack_prep.base import shell
from openstack_prep.base.fields import is_address, words
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw, Values, value_at
from openstack_prep.base.secret import HIDDEN, Secret, masked, secrets_in
from openstack_prep.kubernetes import rke2, rke2_rules
from openstack_prep.kubernetes.convert import chart_keys, service_keys
from openstack_prep.kubernetes.convert.chart_keys import plugin
from openstack_prep.kubernetes.convert.new_spec import (
    FILE,
    FIRST,
    PRIVATE,
    hidden_files,
    new_spec,
    planned_nodes,
    private_config,
)
from openstack_prep.kubernetes.convert.outcome import (
    ENABLED,
    ChartConfig,
    Content,
    ConvertedKey,
    Draft,
    Handler,
)
from openstack_prep.kubernetes.convert.service_keys import NODE, included
from openstack_prep.kubernetes.keys.schema import SINCE, hide_in_url
from openstack_prep.kubernetes.model import KubernetesCluster, Node, Registry, Role
from openstack_prep.kubernetes.rke2 import is_server
from openstack_prep.kubernetes.versions import TargetRelease, target

# --- node -------------------------------------------------------------------------------------


OF_SERVERS = ("kube-apiserver-", "kube-controller-manager-", "kube-scheduler-", "etcd-", "audit-", "pod-security-")
"""Keys of config.yaml, by their beginnings, that only affect pods of the control plane."""
ADDRESSES = {name: NODE[name] for name in ("internal_address", "address")}


def nodes_of(draft: Draft) -> list[Node]:
    """Return the nodes, with a note for each of their keys."""
    external = bool(value_at(draft.data, "services.etcd.external_urls"))
    return [_node(draft, node, external) for node in draft.data["nodes"]]


def _node(draft: Draft, given: Mapping[str, Any], external: bool) -> Node:
    roles = [cast(Role, each) for each in given["role"]]
    if external and "controlplane" in roles:
        roles.append("etcd")
        draft.note("nodes[].role", NODE["role"], "the control plane gets role etcd in place of the external etcd")
    address = str(given["address"])
    inner = str(given.get("internal_address") or address)
    for name in NODE:
        if name in ADDRESSES and given.get(name):
            _note_address(draft, f"nodes[].{name}", str(given[name]), inner)
        elif given.get(name) not in (None, "", [], {}):
            draft.note(f"nodes[].{name}", NODE[name])
    return Node(
        name=str(given.get("hostname_override") or address).lower(),
        address=address,
        internal_address=inner,
        roles=tuple(roles),
        labels=dict(_labels(draft, given.get("labels") or {})),
        taints=tuple(_taints(given.get("taints") or ())),
        config={},
    )


def _note_address(draft: Draft, key: str, address: str, inner: str) -> None:
    """Record what becomes of an address; RKE takes host names, RKE2 addresses alone."""
    becomes = NODE["internal_address" if address == inner else "address"]
    if _is_dual_stack(draft):
        draft.note(key, None, "node-ip needs an address of each IP version: add both on the new nodes")
    elif not is_address(address):
        draft.note(key, None, f"{becomes} must be an IP address, not a host name")
    elif draft.external and becomes == NODE["address"]:
        draft.note(key, None, "the cloud controller manager sets it")
    else:
        draft.note(key, becomes)


def _is_dual_stack(draft: Draft) -> bool:
    return "," in str(draft.config.get("cluster-cidr", ""))


def _labels(draft: Draft, labels: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in labels.items():
        if rke2_rules.kubelet_may_set(str(name)):
            yield str(name), "" if value is None else str(value)
        else:
            command = f"kubectl label node NAME {shell.quote(f'{name}={value}')}"
            note = f"a kubelet may not set {name}: {command}"
            draft.note("nodes[].labels", None, note)


def _taints(taints: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for taint in taints:
        value = taint.get("value")
        yield f"{taint['key']}{'' if value in (None, '') else f'={value}'}:{taint.get('effect') or 'NoSchedule'}"


def documents(draft: Draft, nodes: Sequence[Node]) -> dict[str, dict[str, object]]:
    """Return the config.yaml of each node by its name."""
    config = dict(draft.config)
    sans = config.pop("tls-san", [])
    first = rke2.first_server(nodes)
    assert first is not None  # rke check refuses a cluster without servers
    found = rke2.documents(_cluster(draft, config), nodes, api=first.internal_address, tls_san=sans)
    named = {str(node.get("hostname_override") or "").lower() for node in draft.data["nodes"]}
    for name, document in found.items():
        for key in ADDRESSES.values():
            if _is_dual_stack(draft) or not is_address(str(document.get(key, ""))):
                document.pop(key, None)  # _note_address says why
        if "tls-san" not in document:  # an agent runs no pods of the control plane
            for key in [each for each in document if each.startswith(OF_SERVERS)]:
                del document[key]
        if name not in named:
            document.pop("node-name")  # RKE names such a node by its address, RKE2 by its host name
    return found


def _cluster(draft: Draft, config: Mapping[str, Any]) -> KubernetesCluster:
    return KubernetesCluster(
        distribution="rke2",
        network_plugin=plugin(draft),
        external_cloud_provider=draft.external,
        private_registries=tuple(_registries(draft)),
        config=config,
    )


def _registries(draft: Draft) -> Iterator[Registry]:
    for private_registry in draft.data.get("private_registries") or ():
        password = private_registry.get("password")
        yield Registry(
            url=_host(str(private_registry.get("url") or "docker.io")),
            user=private_registry.get("user") or None,
            password=Secret(str(password)) if password not in (None, "") else None,
            is_default=private_registry.get("is_default") is True,
        )


def _host(url: str) -> str:
    """Return the host and port of a registry: RKE2 takes neither a scheme nor a login nor a path."""
    host = url.partition("://")[2].partition("/")[0] if "://" in url else url.partition("/")[0]
    return host.rpartition("@")[2]


def registries(draft: Draft) -> dict[str, object] | None:
    """Return the registries.yaml."""
    return rke2.registries(_cluster(draft, {}))


# --- addon ------------------------------------------------------------------------------------


FOR_KUBECTL = ("addons.yaml", "rke2-")
FOR_CLOUD = "cloud.conf"
DAEMON_SETS = (
    *("antrea-agent", "calico-node", "cilium", "kube-flannel", "kube-flannel-ds", "kube-ovn-cni", "kube-router"),
    "weave-net",
)
"""Names of the DaemonSets of network plugins, which a cluster with the plugin none has among its addons."""


def moving_steps(
    data: Raw, target: TargetRelease, nodes: Sequence[Node], files: Mapping[str, Content]
) -> tuple[str, ...]:
    """Return the steps, in their order, for this cluster; ``files`` are the converted files by name."""
    new_cluster = _new_cluster(data, target, nodes, files)
    return (*_before(), *new_cluster, *_workloads(), *_addresses(data), *_end())


def _before() -> Iterator[str]:
    yield "Keep the old cluster running: Rancher supports no migration in place, only a new cluster next to the old."
    yield "Save the state of the old cluster: rke etcd snapshot-save, and kubectl get all,pv,pvc,ingress -A -o yaml."
    yield "Lower the TTL of the DNS names of Services and of the API to 60 seconds, a day before the move."


def _new_cluster(
    data: Raw,
    target: TargetRelease,
    nodes: Sequence[Node],
    files: Mapping[str, Content],
) -> Iterator[str]:
    servers, agents = planned_nodes(nodes)
    yield (
        f"{FILE} is the spec of the new cluster, the example rke2 with this configuration for RKE2 {target.version}. "
        "Change in it the source of the image, the file of your public key, the external network, api_allowed_cidrs, "
        "the names that the old cluster has as well, and the address pool, which must not overlap with the old one. "
        "Then go to its folder, and check it: openstack-prep validate new.yaml. If pods of both clusters talk to each "
        "other, their networks must not overlap."
    )
    if any(secrets_in(files[FILE])):
        yield f"{FILE} has secrets of the old cluster in plain text: keep its mode 0600, and commit it nowhere."
    yield from _other_nodes(nodes, servers)
    yield from _one_plugin(data, plugin(Draft(data, target.minor)))
    for name, path in hidden_files(files).items():
        yield f"Put {name} as {path}, mode 0600, into the image of the nodes: Heat shows readers what a template has."
    if "," in str(value_at(data, "services.kube-controller.cluster_cidr")):
        yield f"Declare a subnet of the other IP version in {FILE}, and set second_subnet of the stack to its name."
    apply = "openstack-prep plan new.yaml, then openstack-prep apply new.yaml; nodes are NotReady until the CNI runs."
    yield apply + " Without agents, servers have no taint, and so run all pods." * (not agents)
    applied = [file for file in files if file.startswith(FOR_KUBECTL)]
    urls = included(value_at(data, "addons_include"))
    shown = [hide_in_url(url) for url in urls]
    public = [url for url in urls if url in shown]
    commands = [f"kubectl apply -f {shell.quote(each)}" for each in [*applied, *public]]
    if commands:
        yield f"In the new cluster: {'; '.join(commands)}."
    if private := [url for url in shown if url not in urls]:
        where = "other users see the arguments of a command, and a shell keeps them"
        yield f"Download {', '.join(private)} by a program that reads the login from a file ({where}), and apply it."
    if value_at(data, "cloud_provider.name") not in (None, "", "none"):
        settings = ", with cloud.conf" if FOR_CLOUD in files else ""
        yield (
            f"Install the cloud controller manager and the CSI driver in the new cluster{settings}, with a cluster "
            "name of its own: until then nodes keep the taint node.cloudprovider.kubernetes.io/uninitialized."
        )
    yield "Install the load balancer, in the order that openstack-prep kubernetes checklist new.yaml prints."


def _other_nodes(nodes: Sequence[Node], servers: Sequence[Node]) -> Iterator[str]:
    """Yield how the servers of the spec differ from those of the old cluster."""
    before = [node for node in nodes if is_server(node)]
    if len(before) != len(servers):
        yield f"The new cluster has {len(servers)} servers in place of {len(before)}: etcd needs a majority."
    if not any({*FIRST} <= {*node.roles} for node in before):
        yield "The first server has the roles controlplane and etcd, because it starts the cluster."


def _one_plugin(data: Raw, chosen: str) -> Iterator[str]:
    """Yield what keeps a second plugin out of the new cluster: addons may have another."""
    manifests = str(words(value_at(data, "addons") or ""))
    names = re.findall(r"^\s*name: ([\w-]+)\s*$", manifests, re.MULTILINE)
    contained = [name for name in dict.fromkeys(names) if name in DAEMON_SETS]
    if contained and chosen != "none":
        yield f"Remove {', '.join(contained)} from addons.yaml: RKE2 installs {chosen}, and a cluster has one plugin."


def _workloads() -> Iterator[str]:
    yield "Apply the manifests of the workloads to the new cluster, without Services of type LoadBalancer; test them."
    yield (
        "Move data. With cinder-csi in both clusters of one project: set the reclaim policy of the volumes to Retain "
        '(kubectl patch pv NAME -p \'{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}\'), scale the workload in '
        "the old cluster to 0, and create a PersistentVolume with the same volumeHandle and a claimRef in the new one. "
        "Otherwise back up and restore, for instance with Velero and its file system backup. Never attach a volume in "
        "both clusters."
    )


def _addresses(data: Raw) -> Iterator[str]:
    names = [str(each) for each in value_at(data, "authentication.sans") or ()]
    yield (
        "Create the Services of type LoadBalancer in the new cluster: they get addresses of the new pool, which the "
        "pairs on the new ports allow. Test each at its new address."
    )
    yield "Point the DNS names of the Services to the new addresses, and wait until the old ones see no more requests."
    yield (
        "To keep an address instead: delete the Service in the old cluster, remove the address from the pool in the "
        "old spec and apply it, then add the address to the pool in new.yaml and apply it. Pairs follow their pools."
    )
    if names:
        yield f"Point the names of the API to the new cluster: {', '.join(names)}."


def _end() -> Iterator[str]:
    yield "Check the new cluster: kubectl get nodes; openstack-prep plan new.yaml; with Cilium: cilium status --wait."
    yield (
        "Keep the old cluster until a backup of the new one was restored once. Then delete its Services and claims "
        "with kubectl, run openstack-prep destroy old.yaml, and openstack-prep cleanup --cluster NAME for what is left."
    )


# --- conversion -------------------------------------------------------------------------------


HANDLERS: Mapping[str, Handler] = {
    **service_keys.CLUSTER_HANDLERS,
    **service_keys.HANDLERS,
    **service_keys.ETCD_HANDLERS,
    **chart_keys.HANDLERS,
}
"""By key, with [] for the members of a list; a key converts everything below it."""
STEPS = "moving.txt"


@dataclass(frozen=True)
class Conversion:
    """The files for RKE2, and what became of each key."""

    target: TargetRelease
    entries: tuple[ConvertedKey, ...]
    empty: tuple[str, ...]
    """Keys without a value, for which RKE and RKE2 have defaults."""
    files: Mapping[str, Content]
    steps: tuple[str, ...]
    """How workloads move to a new cluster."""

    def texts(self, *, openly: bool) -> dict[str, str]:
        """Return the files' texts by name, with secrets as asterisks unless ``openly``."""
        return {name: _text(content, openly) for name, content in self.files.items()}

    def data(self) -> Values:
        """Return the conversion as data, without secrets."""
        return {
            "kubernetes_version": self.target.version,
            "keys": [{"key": entry.key, "becomes": entry.becomes, "note": entry.note} for entry in self.entries],
            "empty": list(self.empty),
            "files": self.texts(openly=False),
            "steps": list(self.steps),
        }

    def __str__(self) -> str:
        """Return the table of keys, and the steps."""
        lines = [f"RKE2 {self.target.version}: {self.target.note}"]
        for title, chosen in (
            ("carries over", [entry for entry in self.entries if entry.becomes]),
            ("does not carry over", [entry for entry in self.entries if not entry.becomes]),
        ):
            lines += ["", f"{title}:", *_table(chosen)] if chosen else []
        lines += ["", f"keys without a value: {len(self.empty)}"] if self.empty else []
        lines += ["", "moving to a new cluster:", *(f"{n}. {step}" for n, step in enumerate(self.steps, 1))]
        return "\n".join(lines)


def _table(entries: Sequence[ConvertedKey]) -> list[str]:
    width = max(len(entry.key) for entry in entries)
    return [
        f"  {entry.key:<{width}}  {'; '.join(filter(None, (entry.becomes, entry.note))) or 'the default'}"
        for entry in entries
    ]


def _text(content: Content, openly: bool) -> str:
    if isinstance(content, Secret):
        return content.reveal() if openly else f"{HIDDEN}\n"
    if isinstance(content, ChartConfig):
        return dump(content.document(openly=openly))
    return content if isinstance(content, str) else dump(*(content if openly else map(masked, content)))


def convert(data: Raw, *, version: str | None = None) -> Conversion:
    """Convert a cluster.yml that ``rke check`` accepts; ``version`` chooses the release of RKE2."""
    source = "kubernetes_version" if data.get("kubernetes_version") else "system_images.kubernetes"
    declared = str(value_at(data, source) or "").rpartition(":")[2]  # an image has its version as tag
    chosen = target(declared, version)
    draft, empty = Draft(data, chosen.minor), []
    if declared:
        draft.note(source, chosen.version, chosen.note)
    for key in _walk(draft, data, ""):
        empty.append(key)
    if chosen.minor >= chart_keys.TRAEFIK_DEFAULT and not value_at(data, "ingress.provider"):
        draft.config["ingress-controller"] = "ingress-nginx"  # RKE's default
    chart_keys.default_ingress_class(draft)
    if len(draft.admission) > 1:
        draft.config.setdefault("kube-apiserver-arg", []).append(f"{ENABLED}={','.join(draft.admission)}")
    _drop_newer_keys(draft)
    found = nodes_of(draft)
    shared = _shared_files(draft)
    files: dict[str, Content] = {
        f"{'node-' if f'{name}.yaml' in shared else ''}{name}.yaml": [each]
        for name, each in documents(draft, found).items()
    }
    files |= shared
    if private := private_config(draft.config):
        files[PRIVATE] = shared[PRIVATE] = [private]
    registered = tuple(_registries(draft))
    files[FILE] = [new_spec(draft, chosen.version, found, plugin(draft), registered, shared)]
    steps = moving_steps(data, chosen, found, files)
    files[STEPS] = "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))
    return Conversion(chosen, tuple(draft.entries), tuple(dict.fromkeys(empty)), files, steps)


def _shared_files(draft: Draft) -> dict[str, Content]:
    """Return the files that do not belong to one node."""
    logins = registries(draft)
    files: dict[str, Content] = {"registries.yaml": [logins]} if logins else {}
    files |= {f"{chart}-config.yaml": ChartConfig(chart, values) for chart, values in draft.charts.items()}
    return files | draft.files


def _walk(draft: Draft, value: Any, key: str) -> list[str]:
    """Convert a value and everything below it; return the keys without a value."""
    if value in (None, "", {}, []):
        return [key]
    if handler := HANDLERS.get(key):
        handler(draft, key, value)
        return []
    if isinstance(value, Mapping):
        return [found for name, each in value.items() for found in _walk(draft, each, f"{key}.{name}".lstrip("."))]
    assert isinstance(value, list), key  # rke check refuses keys that have no handler
    return [found for each in value for found in _walk(draft, each, f"{key}[]")]


def _drop_newer_keys(draft: Draft) -> None:
    """Drop keys that this version of RKE2 does not have yet."""
    newer = {name for name in draft.config if SINCE.get(name, 0) > draft.minor}
    for name in newer:
        del draft.config[name]
    for index, entry in enumerate(draft.entries):
        if entry.becomes in newer:
            why = f"RKE2 has {entry.becomes} since 1.{SINCE[entry.becomes]}"
            draft.entries[index] = replace(entry, becomes=None, note=why)
